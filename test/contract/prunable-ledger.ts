/** Owns: ledgers with runs that pruning may remove, and some that it has to keep. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  LedgerPruning,
  PrunableRun,
  PruningBasis,
} from "../../src/agents/coordination/ports/run-store.ts";
import { pruneLedger, type PruneReport } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { createAuthor, contentOf, openingOf, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { readLastToken } from "./ledger-store-claim-play.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import {
  branchOf,
  COMPLETED,
  createMemoryEntry,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "./workflow-store-tested.ts";

/** Later than every event of the fixtures. */
export const LATER_MS = (TEST_EPOCH_MS + 60_000) as EpochMs;

interface RunOptions {
  readonly isOpen?: boolean;
  /** The coordination that it is part of. */
  readonly parent?: string;
  /** The coordination that it was forked from. */
  readonly source?: string;
  /** How many claims it acquires. */
  readonly claims?: number;
}

/** Appends a coordination of one step, which has ended unless it is to be open. */
export async function addCoordination(
  store: OpenedLedger,
  name: string,
  { isOpen = false, parent, source, claims = 0 }: RunOptions = {},
): Promise<CoordinationId> {
  const author = createAuthor(name);
  const opening = openingOf(`trace-${name}`);
  const around = parent && { coordinationId: runIdOf(parent), stepId: "step-1" as StepId };
  const forkedFrom = source && { coordinationId: runIdOf(source), sequence: 2 };
  const first = author.append(
    { ...opening, ...(around && { parent: around }), ...(forkedFrom && { forkedFrom }) },
    spawnOf(`call-${name}`),
  );
  await store.append({ ...first, contents: [{ ...contentOf(`task of ${name}`), keepWhileRunning: true }] });
  for (let index = 0; index < claims; index += 1)
    await store.append(author.append(createClaim((await readLastToken(store)) + 1, name)));
  if (!isOpen) await store.append(appendEnd(author));
  return author.runId;
}

function createClaim(token: number, name: string): Command {
  const expiresAtMs = (TEST_EPOCH_MS + 60_000) as EpochMs;
  const requests = [{ resource: `queue:${name}-${token}`, token, expiresAtMs }];
  return { type: "requestResources", stepId: "step-1" as StepId, requests };
}

/** A fork has the workflow of its source. */
const WORKFLOW_ID = "wf-pruned";

interface WorkflowOptions {
  readonly isOpen?: boolean;
  /** The run that it was forked from. */
  readonly source?: string;
  readonly hasMemory?: boolean;
}

/** Appends a workflow run, which has ended unless it is to be open. */
export async function addWorkflow(
  { workflows }: OpenedLedger,
  name: string,
  { isOpen = false, source, hasMemory = false }: WorkflowOptions = {},
): Promise<CoordinationId> {
  const origin = source === undefined ? undefined : branchOf(nameWorkflowRun(source), name, 1);
  const author = createWorkflowAuthor(name, origin);
  const entries = hasMemory ? [createMemoryEntry(`memory-${name}`)] : [];
  const started = author.append([createRunStarted(WORKFLOW_ID), createNodeStarted("a")], {
    entries,
  });
  await workflows.append({ ...started, summary: { ...started.summary, workflowId: WORKFLOW_ID } });
  if (isOpen) return author.runId;
  const ended = author.append([COMPLETED], { status: "completed" });
  await workflows.append({ ...ended, summary: { ...ended.summary, workflowId: WORKFLOW_ID } });
  return author.runId;
}

/** Nothing has begun since the newest run was looked at, and no run is related to another one. */
export function createPruningBasis({ ordinal }: Pick<PrunableRun, "ordinal">): PruningBasis {
  return { newest: ordinal, familyOf: (runId) => runId };
}

/** Removes all that ended before the time. */
export function prune(
  store: OpenedLedger,
  beforeMs: EpochMs = LATER_MS,
  silentExporter?: string,
): Promise<PruneReport> {
  return pruneLedger(store, { beforeMs, isDryRun: false, silentExporter });
}

/** Does something before one call of many. */
export function wrapNthCall(
  pruning: LedgerPruning,
  { call, time }: { readonly call: keyof LedgerPruning; readonly time: number },
  before: () => Promise<unknown>,
): LedgerPruning {
  let calls = 0;
  const count = async (made: keyof LedgerPruning): Promise<void> => {
    if (made === call) calls += 1;
    if (made === call && calls === time) await before();
  };
  return {
    page: async (place) => {
      await count("page");
      return pruning.page(place);
    },
    remove: async (runs, basis) => {
      await count("remove");
      return pruning.remove(runs, basis);
    },
  };
}

/** Returns everything that is wrong with the ledger. */
export async function listProblems(store: OpenedLedger): Promise<readonly unknown[]> {
  const coordinations = await verifyLedger(store);
  const runs = await verifyWorkflowRuns(store.workflows);
  return [...coordinations.problems, ...runs.problems];
}

/** Returns the ids of all runs that are there, oldest first. */
export async function listRunIds(store: OpenedLedger): Promise<string[]> {
  const query = { limit: 1_000, order: "oldest" } as const;
  return [...(await store.list(query)), ...(await store.workflows.list(query))].map(({ runId }) => runId);
}
