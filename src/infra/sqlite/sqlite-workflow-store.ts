/**
 * Owns: of `WorkflowStore` in SQLite what `RunStore` does not have, on the connection and in the write queue of the ledger.
 */
import { hash } from "node:crypto";
import type BetterSqlite3 from "better-sqlite3";
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
import { createOnceLoader } from "../../agents/coordination/std/load-once.ts";
import { assertMemoryWritesMatchEvents } from "../ledger/memory-entries.ts";
import { assertWorkspaceWritesMatchEvents } from "../ledger/workspace-versions.ts";
import { createMemoryJournal, writeMemoryEntry } from "./workflows/memory-journal.ts";
import { createWorkspaceFiles, type WorkspaceFiles } from "./workflows/workspace-files.ts";
import { loadMigrations } from "./database/migrate.ts";
import { createRequestLog } from "./workflows/request-log.ts";
import { createRunOwners } from "./database/owner-rows.ts";
import { WORKFLOWS_SINCE_VERSION } from "./database/run-reads.ts";
import { createSchemaStatements } from "./database/schema-statements.ts";
import { findBrokenWorkflowRule } from "../ledger/workflow-rules.ts";
import {
  prepareWorkflowReads,
  prepareWorkflowWrites,
  type WorkflowReads,
  type WorkflowWrites,
} from "./workflows/workflow-statements.ts";
import type { OpenLedger } from "./database/write-queue.ts";
import { createSqliteRunStore, type RunRules } from "./sqlite-run-store.ts";

/**
 * Creates the store of workflows in a ledger file: of their runs, definitions, memory, workspaces and keyed requests.
 */
export function createSqliteWorkflowStore(ledger: OpenLedger): WorkflowStore {
  const { database, guarded, queued } = ledger;
  const reads = createWorkflowReads(database);
  const writes = createOnceLoader(() => prepareWorkflowWrites(database));
  const read: WorkflowReadCall = (run) => guarded(() => run(reads()));
  const write: WorkflowWriteCall = (work) => queued((queue) => queue.run(() => work(writes())));
  const workspace = createWorkspaceFiles(ledger);
  return {
    ...createSqliteRunStore(ledger, createWorkflowRules(writes, workspace)),
    putDefinition: async (definition) => {
      const isItsHash = hash("sha256", definition.text) === definition.sha256;
      assertInvariant(isItsHash, `a definition of ${definition.workflowId} comes with another hash`);
      await write((prepared) => {
        storeDefinition(prepared, definition);
      });
    },
    definition: (sha256) => read((prepared) => prepared?.definition.get(sha256)),
    registered: (tenant, workflowId) =>
      read((prepared) => {
        const row = prepared?.registered.get(tenant, workflowId);
        return row && { ...row, tenant, workflowId };
      }),
    memory: createMemoryJournal(read, write),
    workspace: workspace.store,
    requests: createRequestLog(write),
    owners: createRunOwners(ledger, "workflow"),
  };
}

/** Calls a function with the statements that read workflows. */
type WorkflowReadCall = <T>(run: (reads: WorkflowReads | undefined) => T) => Promise<T>;
/** Calls a function with the statements that write workflows. */
type WorkflowWriteCall = <T>(work: (writes: WorkflowWrites) => T) => Promise<T>;

/**
 * Returns a getter of the statements that read definitions of workflows and their memory; it gives `undefined` while
 * the schema has none.
 */
function createWorkflowReads(database: BetterSqlite3.Database): () => WorkflowReads | undefined {
  return createSchemaStatements(database, loadMigrations().length, (version) =>
    version < WORKFLOWS_SINCE_VERSION ? undefined : prepareWorkflowReads(database),
  );
}

function createWorkflowRules(
  writes: () => WorkflowWrites,
  workspace: WorkspaceFiles,
): RunRules<WorkflowEvent, WorkflowSummary, WorkflowAppend> {
  return {
    kind: "workflow",
    decode: decodeWorkflowEvent,
    hasEnded: ({ status }) => hasRunEnded(status),
    check: (request) => {
      assertMemoryWritesMatchEvents(request);
      assertWorkspaceWritesMatchEvents(request);
    },
    findConflict: (request, head) => findBrokenWorkflowRule(request, head) ?? workspace.conflict(request),
    writeBeside: (request, runKey) => {
      // In the order of their events: so the database knows which entry replaces which.
      for (const each of (request.memory ?? []).toSorted((a, b) => a.sequence - b.sequence))
        writeMemoryEntry(writes(), { runKey, write: each });
      workspace.write(request, runKey);
    },
  };
}

/** Stores a definition by its hash, and registers it as the newest of its workflow where a tenant is named. */
function storeDefinition(
  { putDefinition: put, register }: WorkflowWrites,
  { sha256, tenant, workflowId, text }: StoredDefinition,
): void {
  put.run(sha256, text);
  if (tenant !== undefined) register.run(tenant, workflowId, sha256);
}
