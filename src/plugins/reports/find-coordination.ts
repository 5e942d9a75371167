/** Owns: which coordination or workflow run an id or the beginning of one means, and the texts that events name. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { WorkflowEntry } from "../../agents/coordination/ports/workflow-store.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

export type RunEntry = Awaited<ReturnType<ReportedLedger["list"]>>[number];

const CANDIDATES_MAX = 10;

/**
 * Returns the view of the coordination that an id or a unique prefix of one names; of the newest one without an id.
 * @throws CoordinationError
 */
export async function findCoordination(
  reader: ReportedLedger,
  id: string | undefined,
): Promise<CoordinationView> {
  const runId = id === undefined ? await findNewestId(reader) : await resolveCoordinationId(reader, id);
  const view = await readCoordinationView(reader, runId);
  if (view) return view;
  throw new CoordinationError("COORDINATION_NOT_FOUND", `no coordination ${JSON.stringify(runId)}`);
}

async function findNewestId(reader: ReportedLedger): Promise<CoordinationId> {
  const [entry] = await reader.list({ limit: 1 });
  if (entry) return entry.runId;
  throw new CoordinationError("COORDINATION_NOT_FOUND", "the ledger holds no coordination yet");
}

/**
 * Returns the whole id of the coordination that an id or a unique prefix of one names. @throws CoordinationError
 * `COORDINATION_NOT_FOUND`, or `INPUT_INVALID` for a prefix of several.
 */
export async function resolveCoordinationId(reader: ReportedLedger, id: string): Promise<CoordinationId> {
  const only = await chooseOnlyCandidate(reader, id, await listCandidates(reader, id));
  if (only !== undefined) return only;
  throw new CoordinationError("COORDINATION_NOT_FOUND", `no coordination begins with ${JSON.stringify(id)}`);
}

/**
 * Returns the ledger's entry of the workflow run that an id or a unique prefix of one names. @throws CoordinationError
 * `COORDINATION_NOT_FOUND`, or `INPUT_INVALID` for a prefix of several
 */
export async function findWorkflowEntry(reader: ReportedLedger, id: string): Promise<WorkflowEntry> {
  const runId = await resolveRunId(reader, id);
  const entry = await reader.workflows.entry(runId);
  if (entry) return entry;
  // It was pruned in this moment.
  const pruned = await findPrunedError(reader, runId);
  throw pruned ?? new RunNotFoundError("COORDINATION_NOT_FOUND", `no workflow run ${JSON.stringify(runId)}`);
}

async function resolveRunId(reader: ReportedLedger, id: string): Promise<CoordinationId> {
  const only = await chooseOnlyCandidate(reader, id, await listCandidates(reader.workflows, id));
  if (only !== undefined) return only;
  throw new RunNotFoundError("COORDINATION_NOT_FOUND", `no workflow run begins with ${JSON.stringify(id)}`);
}

/** A whole id, and whether it is of a coordination or of a workflow run. */
interface ResolvedId {
  readonly kind: "coordination" | "run";
  readonly id: CoordinationId;
}

/**
 * Returns the whole id that an id or a unique prefix names, and whether it is that of a coordination or of a workflow
 * run. @throws CoordinationError `COORDINATION_NOT_FOUND`, or `INPUT_INVALID` for a prefix of several.
 */
export async function resolveEitherId(reader: ReportedLedger, id: string): Promise<ResolvedId> {
  const runs = await listCandidates(reader.workflows, id);
  const candidates = [...runs, ...(await listCandidates(reader, id))];
  const only = await chooseOnlyCandidate(reader, id, candidates);
  if (only !== undefined) return { kind: runs.includes(only) ? "run" : "coordination", id: only };
  throw new EitherNotFoundError(
    "COORDINATION_NOT_FOUND",
    `no coordination and no workflow run begins with ${JSON.stringify(id)}`,
  );
}

export class PrunedError extends CoordinationError {
  override get advice(): string {
    return "What the run did is in backups that were made before `ledger prune`.";
  }
}

class RunNotFoundError extends CoordinationError {
  override get advice(): string {
    return "Run `openclaw coordination runs` to see the ids of workflow runs; a unique prefix is enough.";
  }
}

class EitherNotFoundError extends CoordinationError {
  override get advice(): string {
    return "Run `openclaw coordination list` to see the ids of coordinations, and `openclaw coordination runs` those of workflow runs; a unique prefix is enough.";
  }
}

/** The runs of one kind. */
interface RunsByPrefix {
  list(query: {
    readonly limit: number;
    readonly idPrefix: string;
  }): Promise<readonly { readonly runId: CoordinationId }[]>;
  entry(id: CoordinationId): Promise<{ readonly runId: CoordinationId } | undefined>;
}

/**
 * Lists the run that has exactly this id, or those whose ids begin so, not all where there are many; throws
 * `INPUT_INVALID` for an empty id.
 */
async function listCandidates(runs: RunsByPrefix, id: string): Promise<readonly CoordinationId[]> {
  if (id === "")
    throw new CoordinationError(
      "INPUT_INVALID",
      "id: expected a coordination id, or that of a workflow run, got nothing",
    );
  const entries = await runs.list({ limit: CANDIDATES_MAX + 1, idPrefix: id });
  const ids = entries.map(({ runId }) => runId);
  // The page of candidates may not reach back to the one with exactly this id.
  const exact = ids.length > 1 ? await runs.entry(id as CoordinationId) : undefined;
  return exact ? [exact.runId] : ids;
}

/**
 * Returns the candidate that the id names; `undefined` where there is none.
 *
 * @throws CoordinationError `COORDINATION_NOT_FOUND` for the id of a pruned run, `INPUT_INVALID` where there are several
 */
async function chooseOnlyCandidate(
  reader: ReportedLedger,
  id: string,
  candidates: readonly CoordinationId[],
): Promise<CoordinationId | undefined> {
  const exact = candidates.find((candidate) => candidate === id);
  if (exact !== undefined) return exact;
  // Whoever types the whole id of a run that was pruned means no other run.
  const pruned = await findPrunedError(reader, id);
  if (pruned) throw pruned;
  if (candidates.length <= 1) return candidates[0];
  const named = candidates.slice(0, CANDIDATES_MAX).join(", ");
  const more = candidates.length > CANDIDATES_MAX ? " and more" : "";
  throw new CoordinationError("INPUT_INVALID", `id: ${JSON.stringify(id)} is a prefix of ${named}${more}`);
}

/**
 * Returns, without throwing it, the error that says when a run was removed by `ledger prune`; `undefined` where the
 * ledger has no trace of that.
 */
export async function findPrunedError(
  { pruned }: Pick<ReportedLedger, "pruned">,
  id: string,
): Promise<PrunedError | undefined> {
  const trace = await pruned.find(id);
  if (!trace) return undefined;
  const at = new Date(trace.prunedAtMs).toISOString();
  return new PrunedError(
    "COORDINATION_NOT_FOUND",
    `${id} was pruned from the ledger at ${at}; it had ${formatCount(trace.events, "event")}`,
  );
}

/** Returns the text in the ledger that events name by this reference; `null` once it is no longer kept. */
export async function readKeptText(reader: ReportedLedger, { sha256 }: ContentRef): Promise<string | null> {
  return (await reader.get(sha256)) ?? null;
}
