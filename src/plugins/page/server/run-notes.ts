/** Owns: what a listing says of a coordination beyond its summary. It is read once for each length of its log. */
import { isLogDamage } from "../../../agents/coordination/contracts/errors.ts";
import { epochMsOf, type EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import {
  CONFLICTS_NAME,
  QUESTIONS_NAME,
} from "../../../agents/coordination/contracts/coordination-summary.ts";
import { readCoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { rememberNewest } from "../../../agents/coordination/std/remember-newest.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { RunEntry } from "../../reports/find-coordination.ts";

/** How many of each are open. */
interface OpenCounts {
  readonly questions: number;
  readonly conflicts: number;
}

export interface RunNotes extends OpenCounts {
  readonly kind: "coordination" | "plan";
  readonly endedAtMs?: EpochMs;
}

interface KnownNotes {
  readonly length: number;
  readonly notes: RunNotes;
}

const KNOWN_MAX = 2_000;
const BACKWARDS_AT_ONCE = 10;

/** By reader, hence by ledger. */
const knownNotes = new WeakMap<ReportedLedger, Map<string, KnownNotes>>();

/** Returns what a listing shows of a run beyond its summary, read from the log and remembered until that grows. */
export async function readRunNotes(reader: ReportedLedger, entry: RunEntry): Promise<RunNotes> {
  const notesByRun = knownNotes.get(reader) ?? new Map<string, KnownNotes>();
  knownNotes.set(reader, notesByRun);
  const found = notesByRun.get(entry.runId);
  if (found?.length === entry.length) return found.notes;
  const notes = await readNotesFromLog(reader, entry);
  rememberNewest(notesByRun, entry.runId, { length: entry.length, notes }, KNOWN_MAX);
  return notes;
}

/** Reads the notes from the log. A damaged log is listed all the same: its page says what is wrong. */
async function readNotesFromLog(
  reader: ReportedLedger,
  { runId, length, summary }: RunEntry,
): Promise<RunNotes> {
  try {
    const [first] = await reader.read(runId, { from: 0, limit: 1 });
    const kind = first?.type === "coordination.created" && first.payload.plan ? "plan" : "coordination";
    if (summary.status === "running")
      return { kind, ...(await countOpenQuestionsAndConflicts(reader, runId)) };
    const endedAtMs = await findEndTime(reader, runId, length);
    return { kind, ...(endedAtMs !== undefined && { endedAtMs }), questions: 0, conflicts: 0 };
  } catch (error) {
    if (isLogDamage(error)) return { kind: "coordination", questions: 0, conflicts: 0 };
    throw error;
  }
}

/** Finds when ended work ended: the last event of its log but for usage, which may be recorded later. */
async function findEndTime(
  reader: ReportedLedger,
  runId: RunEntry["runId"],
  length: number,
): Promise<EpochMs | undefined> {
  for (let end = length; end > 0; end -= BACKWARDS_AT_ONCE) {
    const from = Math.max(0, end - BACKWARDS_AT_ONCE);
    const events = await reader.read(runId, { from, limit: end - from });
    const last = events.findLast(({ type }) => type !== "usage.recorded");
    if (last) return epochMsOf(last.timestamp);
  }
  return undefined;
}

/** Counts what is open; only a log that ever had a question or a conflict is folded. */
async function countOpenQuestionsAndConflicts(
  reader: ReportedLedger,
  runId: RunEntry["runId"],
): Promise<OpenCounts> {
  const names = new Set((await reader.references(runId)).map(({ name }) => name));
  if (!names.has(QUESTIONS_NAME) && !names.has(CONFLICTS_NAME)) return { questions: 0, conflicts: 0 };
  const view = await readCoordinationView(reader, runId);
  return {
    questions: view?.escalations.filter(({ closed }) => !closed).length ?? 0,
    conflicts: view?.conflicts.filter((conflict) => !conflict.resolution).length ?? 0,
  };
}
