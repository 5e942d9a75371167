/** Owns: which coordination an id or the beginning of one means, and the texts that events name. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import {
  readCoordination,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

export type RunEntry = Awaited<ReturnType<ReportedLedger["list"]>>[number];

const CANDIDATES_MAX = 10;

/** The coordination that an id or a unique prefix of one names; the newest one without. @throws CoordinationError */
export async function findCoordination(
  reader: ReportedLedger,
  id: string | undefined,
): Promise<CoordinationView> {
  const runId = id === undefined ? await findNewest(reader) : await resolveId(reader, id);
  const view = await readCoordination(reader, runId);
  if (view) return view;
  throw new CoordinationError("COORDINATION_NOT_FOUND", `no coordination ${JSON.stringify(runId)}`);
}

async function findNewest(reader: ReportedLedger): Promise<CoordinationId> {
  const [entry] = await reader.list({ limit: 1 });
  if (entry) return entry.runId;
  throw new CoordinationError("COORDINATION_NOT_FOUND", "the ledger holds no coordination yet");
}

/** @throws CoordinationError `COORDINATION_NOT_FOUND`, or `INPUT_INVALID` for a prefix of several. */
export async function resolveId(reader: ReportedLedger, id: string): Promise<CoordinationId> {
  if (id === "") throw new CoordinationError("INPUT_INVALID", "id: expected a coordination id, got nothing");
  const entries = await reader.list({ limit: CANDIDATES_MAX + 1, idPrefix: id });
  const named = entries.find(({ runId }) => runId === id) ?? (entries.length === 1 ? entries[0] : undefined);
  if (named) return named.runId;
  if (entries.length === 0) {
    const trace = await describeTrace(reader, id);
    throw new CoordinationError(
      "COORDINATION_NOT_FOUND",
      trace ?? `no coordination begins with ${JSON.stringify(id)}`,
    );
  }
  // The page of candidates may not reach back to the one with exactly this id.
  const [exact] = await reader.read(id as CoordinationId, { from: 0, limit: 1 });
  if (exact) return exact.runId;
  const candidates = entries.slice(0, CANDIDATES_MAX).map(({ runId }) => runId);
  const more = entries.length > CANDIDATES_MAX ? " and more" : "";
  throw new CoordinationError(
    "INPUT_INVALID",
    `id: ${JSON.stringify(id)} is a prefix of ${candidates.join(", ")}${more}`,
  );
}

/** Returns what is left of a run that `ledger prune` removed; `undefined` for another id. */
export async function describeTrace({ pruned }: ReportedLedger, id: string): Promise<string | undefined> {
  const trace = await pruned.find(id);
  if (!trace) return undefined;
  const at = new Date(trace.prunedAtMs).toISOString();
  return `${id} was pruned from the ledger at ${at}; it had ${formatCount(trace.events, "event")}`;
}

/** The text that events name by this reference; `null` once it is no longer kept. */
export async function textOf(reader: ReportedLedger, { sha256 }: ContentRef): Promise<string | null> {
  return (await reader.get(sha256)) ?? null;
}
