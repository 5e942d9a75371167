/** Owns: how the installation is: what is open, the lanes, the ledger's size, and what was recorded in each hour of the last day. */
import { isBudgetStop } from "../../../agents/coordination/contracts/escalation.ts";
import { epochMsOf, type EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import { readAppendedPastDamage } from "../../../agents/coordination/runtime/log/read-appended.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import { countLedgerContents } from "../../reports/contents-report.ts";
import type { HealthReport, HourCounts } from "../contract/health.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies } from "./page-dependencies.ts";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const EVENTS_PER_PAGE = 1_000;

/**
 * Reads all that the page shows of a gateway's health: what the ledger holds, failures, lanes, the last verification
 * and the counts by hour. @throws CoordinationError as `LedgerStore.list`
 */
export async function readHealthReport(
  dependencies: PageDependencies,
  counter: HourCounter,
): Promise<HealthReport> {
  const reader = await dependencies.reader();
  const now = dependencies.clock.now();
  // A gateway that coordinates nothing now has none, and its health is wanted all the more.
  const lanes = await dependencies.lanes?.().catch(() => undefined);
  const verification = dependencies.verification();
  const { hours, isCut } = await counter.count(reader, now);
  return {
    contents: await countLedgerContents(reader),
    health: dependencies.health(),
    ledgerBytes: await reader.measureBytes(),
    ...(lanes && { lanes }),
    claims: (await reader.claims({ after: 0, limit: CLAIMS_MAX })).length,
    hours,
    ...(isCut && { isHoursCut: true }),
    ...(verification && { verification }),
    atMs: now,
  };
}

const CLAIMS_MAX = 10_000;

/** Counts events by hour. It keeps its counts, so that each event is read once. */
export interface HourCounter {
  count(
    reader: CountedLedger,
    now: EpochMs,
  ): Promise<{ readonly hours: readonly HourCounts[]; readonly isCut: boolean }>;
}

type CountedLedger = Pick<
  ReportedLedger,
  "newestPosition" | "positionBefore" | "readAppended" | "readArrivals"
>;

/** The counts of one hour, while they are counted. */
type HourTally = { -readonly [K in keyof HourCounts]: HourCounts[K] };

/** The counts by hour, and how far the ledger was counted. */
interface CountedHours {
  readonly byHour: Map<number, HourTally>;
  /** The position in the ledger up to which events are counted. */
  reached: number;
  /** The newest hour of which not every event is counted; absent where each one is. */
  readonly shortMs?: number;
}

/**
 * Creates the counter of events by hour, which reads the ledger's last hours once and later only new events; calls run
 * one after the other.
 */
export function createHourCounter(): HourCounter {
  let counted: CountedHours | undefined;
  let counting: Promise<unknown> = Promise.resolve();
  const countOn = async (reader: CountedLedger, now: EpochMs): Promise<CountedHours> => {
    counted ??= await createInitialCounts(reader, now);
    await countNewEvents(reader, counted);
    for (const startMs of counted.byHour.keys())
      if (startMs < findFirstShownHour(now)) counted.byHour.delete(startMs);
    return counted;
  };
  return {
    count: async (reader, now) => {
      // One after the other: two would count the same events twice.
      const turn = counting.then(() => countOn(reader, now));
      counting = turn.catch(() => undefined);
      const { byHour, shortMs } = await turn;
      const first = findFirstShownHour(now);
      const hours = Array.from({ length: HOURS }, (_, index) => {
        const startMs = first + index * HOUR_MS;
        return byHour.get(startMs) ?? createHourCounts(startMs);
      });
      return { hours, isCut: shortMs !== undefined && shortMs >= first };
    },
  };
}

/** Returns when the oldest of the hours that are shown started; the newest is the one under way. */
function findFirstShownHour(now: number): number {
  return roundDownToHour(now) - (HOURS - 1) * HOUR_MS;
}

function roundDownToHour(atMs: number): number {
  return Math.floor(atMs / HOUR_MS) * HOUR_MS;
}

/** Creates empty counts that begin with the hours shown, or later where too many events would be read. */
async function createInitialCounts(reader: CountedLedger, now: EpochMs): Promise<CountedHours> {
  const since = await reader.positionBefore(findFirstShownHour(now) as EpochMs);
  const oldest = (await reader.newestPosition()) - PAGE_BOUNDS.hourEventsMax;
  if (oldest <= since) return { byHour: new Map(), reached: since };
  const { items } = await readAppendedPastDamage(reader, { limit: 1, after: oldest });
  const [first] = items;
  const shortMs = roundDownToHour(first ? epochMsOf(first.timestamp) : now);
  return { byHour: new Map(), reached: oldest, shortMs };
}

/** Counts the events since the last count; those that cannot be read are left out. */
async function countNewEvents(reader: CountedLedger, counted: CountedHours): Promise<void> {
  const newest = await reader.newestPosition();
  while (counted.reached < newest) {
    const slice = await readAppendedPastDamage(reader, { limit: EVENTS_PER_PAGE, after: counted.reached });
    for (const event of slice.items) countEventInHour(counted.byHour, event);
    counted.reached = slice.reached;
  }
}

const COUNTED: Readonly<
  Partial<Record<RunEvent["type"], "opened" | "completed" | "failed" | "questions" | "conflicts">>
> = {
  "coordination.created": "opened",
  "step.completed": "completed",
  "step.failed": "failed",
  "step.timed_out": "failed",
  "coordination.escalated": "questions",
  "conflict.detected": "conflicts",
};

function countEventInHour(byHour: Map<number, HourTally>, { type, timestamp, payload }: RunEvent): void {
  const startMs = roundDownToHour(epochMsOf(timestamp));
  const counts = byHour.get(startMs) ?? createHourCounts(startMs);
  byHour.set(startMs, counts);
  counts.events += 1;
  const name = type === "coordination.escalated" && isBudgetStop(payload) ? undefined : COUNTED[type];
  if (name) counts[name] += 1;
}

function createHourCounts(startMs: number): HourTally {
  return { startMs, opened: 0, completed: 0, failed: 0, questions: 0, conflicts: 0, events: 0 };
}
