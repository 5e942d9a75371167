/** Owns: a page of a run's events as clients are given it, of either kind of run. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { StoredRun } from "../../../ports/run-store.ts";
import type { EventPage, HostEvent } from "./workflow-host.ts";

interface ReadStore {
  read(runId: CoordinationId, range: LogRange): Promise<readonly HostEvent[]>;
}

/** A range of events in a log, by its first sequence and its length. */
interface LogRange {
  readonly from: number;
  readonly limit: number;
}

/**
 * Returns a page of a run's events, which is complete where nothing follows: the run has ended, because its log then
 * takes no more events, and the page reaches its end.
 */
export async function readEventPage(
  store: ReadStore,
  { runId, length, hasEnded }: StoredRun<unknown> & { readonly hasEnded: boolean },
  { from, limit }: LogRange,
): Promise<EventPage> {
  // Whoever waits at the end of a log asks often.
  const events = from < length ? await store.read(runId, { from, limit }) : [];
  const end = (events.at(-1)?.sequence ?? from - 1) + 1;
  return { events, isComplete: hasEnded && end >= length };
}
