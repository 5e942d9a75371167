/**
 * Owns: the parts of `WorkflowStore` in PostgreSQL that `RunStore` does not have. Writes that must be in order with the log go
 * through the write queue of the ledger; those to rows of their own are one statement each.
 */
import { hash } from "node:crypto";
import { assertInvariant } from "../../agents/coordination/contracts/errors.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../agents/coordination/contracts/workflows/workflow-events.ts";
import {
  hasRunEnded,
  type WorkflowSummary,
} from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  StoredDefinition,
  WorkflowAppend,
  WorkflowStore,
} from "../../agents/coordination/ports/workflow-store.ts";
import { assertMemoryWritesMatchEvents } from "../ledger/memory-entries.ts";
import { findBrokenWorkflowRule } from "../ledger/workflow-rules.ts";
import { assertWorkspaceWritesMatchEvents } from "../ledger/workspace-versions.ts";
import type { SendQuery } from "./database/connect.ts";
import type { OpenLedger } from "./database/commit-queue.ts";
import { createPostgresRunStore, type RunRules } from "./postgres-run-store.ts";
import { createMemoryJournal } from "./workflows/memory-table.ts";
import { createRunOwners } from "./database/owner-table.ts";
import { createRequestLog } from "./workflows/request-table.ts";
import {
  addWorkspaceWrites,
  createWorkspaceFiles,
  findFilesConflict,
  addWantedFiles,
} from "./workflows/workspace-table.ts";

/**
 * Creates the store of workflows in a PostgreSQL ledger: of their runs, definitions, memory, workspaces and keyed
 * requests.
 */
export function createPostgresWorkflowStore(ledger: OpenLedger): WorkflowStore {
  const {
    database: { query },
    guarded,
    written,
  } = ledger;
  return {
    ...createPostgresRunStore(ledger, WORKFLOW_RUNS),
    putDefinition: async (definition) => {
      const isItsHash = hash("sha256", definition.text) === definition.sha256;
      assertInvariant(isItsHash, `a definition of ${definition.workflowId} comes with another hash`);
      await written((write) => storeDefinition(write, definition));
    },
    definition: (sha256) =>
      guarded(async () => {
        const [row] = await query<{ text: string }>(
          "select text from workflow_definition where sha256 = @sha256",
          { sha256 },
        );
        return row?.text;
      }),
    registered: (tenant, workflowId) =>
      guarded(async () => {
        const [row] = await query<{ sha256: string; text: string }>(
          `select sha256, text
           from workflow_registration
           join workflow_definition using (sha256)
           where tenant = @tenant and workflow_id = @workflowId`,
          { tenant, workflowId },
        );
        return row && { ...row, tenant, workflowId };
      }),
    memory: createMemoryJournal(ledger),
    workspace: createWorkspaceFiles(ledger),
    requests: createRequestLog(ledger),
    owners: createRunOwners(ledger, "workflow"),
  };
}

const WORKFLOW_RUNS: RunRules<WorkflowEvent, WorkflowSummary, WorkflowAppend> = {
  kind: "workflow",
  decode: decodeWorkflowEvent,
  hasEnded: ({ status }) => hasRunEnded(status),
  check: (request) => {
    assertMemoryWritesMatchEvents(request);
    assertWorkspaceWritesMatchEvents(request);
  },
  want: addWantedFiles,
  findConflict: (request, head, group) =>
    findBrokenWorkflowRule(request, head) ?? findFilesConflict(request, group),
  writeBeside: (request, grown, group) => {
    const { memory = [] } = request;
    // In the order of their events: so the database knows which entry replaces which.
    for (const write of memory.toSorted((a, b) => a.sequence - b.sequence))
      group.rows.memory.push({ eventKey: grown.eventKeyOf(write.sequence), write });
    addWorkspaceWrites(request, grown, group);
  },
};

/** Stores a definition by its hash, and then registers it as the newest of its workflow where a tenant is named. */
async function storeDefinition(
  write: SendQuery,
  { sha256, tenant, workflowId, text }: StoredDefinition,
): Promise<void> {
  await write(
    "insert into workflow_definition (sha256, text) values (@sha256, @text) on conflict do nothing",
    { sha256, text },
  );
  if (tenant === undefined) return;
  await write(
    `insert into workflow_registration (tenant, workflow_id, sha256)
     values (@tenant, @workflowId, @sha256)
     on conflict (tenant, workflow_id) do update set sha256 = excluded.sha256`,
    { tenant, workflowId, sha256 },
  );
}
