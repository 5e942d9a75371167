/** Owns: which conflicts an argument means, and finding the newest of all coordinations without reading every log. */
import { CoordinationError, isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { CONFLICTS_NAME } from "../../agents/coordination/contracts/coordination-summary.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import { readChangeLog, type ChangeLog, type ConflictRecord } from "./conflict-log.ts";
import { shortenConflictId, type StepNames } from "./conflict-outcome.ts";
import { PrunedError, resolveCoordinationId } from "./find-coordination.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";

/** A conflict with what names its steps. */
export interface FoundConflict {
  readonly conflict: ConflictRecord;
  readonly names: StepNames;
}

interface ConflictQuery {
  readonly limit: number;
  /** Only those that people may still answer. */
  readonly isOpen: boolean;
}

interface NewestConflicts {
  readonly conflicts: readonly FoundConflict[];
  /** Coordinations whose logs are damaged: which conflicts they have, nobody can say. */
  readonly unreadable: readonly CoordinationId[];
}

/** Coordinations that are looked into. */
const HOLDERS_MAX = 10_000;

/**
 * Reads the newest conflicts of all coordinations, or the open ones alone, and the ids of those whose logs are
 * damaged. Coordinations come with the one that had the newest conflict first, so one that adds none to the newest
 * ones is followed by none that does.
 */
export async function findNewestConflicts(
  reader: ReportedLedger,
  { limit, isOpen }: ConflictQuery,
): Promise<NewestConflicts> {
  const holders = await reader.holders(CONFLICTS_NAME, HOLDERS_MAX);
  const running = isOpen ? await selectRunning(reader, holders) : holders;
  const unreadable: CoordinationId[] = [];
  let newest: FoundConflict[] = [];
  for (const runId of running) {
    const log = await readUnlessDamaged(() => readChangeLog(reader, runId));
    if (!log) {
      unreadable.push(runId);
      continue;
    }
    const runConflicts = selectConflicts(log, { isOpen });
    newest = sortNewestFirst([...newest, ...runConflicts]).slice(0, limit);
    const isAdded = newest.some(({ conflict }) => conflict.coordinationId === runId);
    if (newest.length === limit && !isAdded && !isOpen) break;
  }
  return { conflicts: newest, unreadable };
}

/** Selects the coordinations that still run, because every conflict is settled before its coordination ends (A3). */
async function selectRunning(
  reader: ReportedLedger,
  runIds: readonly CoordinationId[],
): Promise<CoordinationId[]> {
  const running = new Set<CoordinationId>();
  if (runIds.length > 0)
    for await (const { runId } of listRuns(reader, { status: "running" })) running.add(runId);
  return runIds.filter((runId) => running.has(runId));
}

/** Returns the conflicts of one coordination's log, or the open ones alone, the newest first. */
export function selectConflicts(
  { conflicts, names }: ChangeLog,
  { isOpen }: { readonly isOpen: boolean },
): FoundConflict[] {
  const wanted = isOpen ? conflicts.filter(({ resolution }) => !resolution) : conflicts;
  return sortNewestFirst(wanted.toReversed().map((conflict) => ({ conflict, names })));
}

function sortNewestFirst(found: readonly FoundConflict[]): FoundConflict[] {
  return found.toSorted((a, b) => b.conflict.detectedAtMs - a.conflict.detectedAtMs);
}

/** The coordination or the one conflict that an id names. */
type NamedSubject =
  | { readonly kind: "coordination"; readonly runId: CoordinationId; readonly log: ChangeLog }
  | { readonly kind: "conflict"; readonly found: FoundConflict };

/**
 * Reads the change log of the coordination that an id or a unique prefix names, or the one conflict of it where the
 * number of a conflict follows. @throws CoordinationError
 */
export async function findCoordinationOrConflict(reader: ReportedLedger, id: string): Promise<NamedSubject> {
  // Ids of plans may have a colon in them.
  const runId = await awaitIfKnown(resolveCoordinationId(reader, id));
  if (runId !== undefined) return { kind: "coordination", runId, log: await readChangeLog(reader, runId) };
  const colon = id.lastIndexOf(":");
  const parent =
    colon > 0 ? await awaitIfKnown(resolveCoordinationId(reader, id.slice(0, colon))) : undefined;
  if (parent !== undefined)
    return { kind: "conflict", found: await findConflictByNumber(reader, parent, id.slice(colon + 1)) };
  throw new CoordinationError("COORDINATION_NOT_FOUND", `no coordination begins with ${JSON.stringify(id)}`);
}

/**
 * Awaits the look-up of an id; `undefined` where the ledger never had it. Other errors pass, as for a pruned id or a
 * prefix of several.
 */
async function awaitIfKnown(resolving: Promise<CoordinationId>): Promise<CoordinationId | undefined> {
  try {
    return await resolving;
  } catch (error) {
    const isUnknown = isCoordinationError(error) && error.code === "COORDINATION_NOT_FOUND";
    if (isUnknown && !(error instanceof PrunedError)) return undefined;
    throw error;
  }
}

/**
 * Finds a conflict of the coordination by its number, like `conflict-3`, or by a unique beginning of it; throws
 * `INPUT_INVALID` where none or several are meant.
 */
async function findConflictByNumber(
  reader: ReportedLedger,
  runId: CoordinationId,
  number: string,
): Promise<FoundConflict> {
  const { conflicts, names } = await readChangeLog(reader, runId);
  const exact = conflicts.filter((conflict) => shortenConflictId(conflict) === number);
  const begun = conflicts.filter((conflict) => shortenConflictId(conflict).startsWith(number));
  const [conflict, other] = exact.length > 0 ? exact : begun;
  if (conflict && !other) return { conflict, names };
  const problem = conflict
    ? `begins ${begun.length} conflicts`
    : `is none of the ${conflicts.length} conflicts`;
  throw new CoordinationError("INPUT_INVALID", `id: ${JSON.stringify(number)} ${problem} of ${runId}`);
}
