/** Owns: reading the log of a run, a page at a time, as far as one answer holds it. */
import type {
  HostAnswer,
  EventPage,
  HostEvent,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import type { RouteRequest, RouteDependencies } from "../http/route.ts";

/** Events of one reading, where no client has to keep up. */
export const EVENTS_PER_PAGE = 1_000;

/** Reads the log from a sequence on; it is complete where nothing will follow. */
export async function readRunLog(
  { caller }: RouteRequest,
  { host }: RouteDependencies,
  runId: string,
  from = 0,
): Promise<HostAnswer<EventPage>> {
  const events: HostEvent[] = [];
  for (;;) {
    const page = await host.events(caller, runId, { from: from + events.length, limit: EVENTS_PER_PAGE });
    if (page.kind === "refused") return page;
    const { events: more, isComplete } = page.value;
    events.push(...more);
    if (isComplete || more.length < EVENTS_PER_PAGE || events.length >= HTTP_BOUNDS.answerEventsMax)
      return { kind: "done", value: { events, isComplete } };
  }
}
