/** Owns: following a log and handing each of its events to what makes spans of it. */
import type { OpenSpan, Span, SpanPlace } from "./span.ts";

/** Follows one log from its first event on. */
export interface SpanProjection<Event> {
  /** Takes the next event of the log, and returns the spans that end with it. */
  take(event: Event): Span[];
  /** The span of the run itself, as soon as its first event was taken. */
  root(): SpanPlace | undefined;
}

/** Returns the root span of another run; `undefined` where its log cannot be read. */
export type FindRoot = (runId: string) => SpanPlace | undefined;

interface LoggedEvent {
  readonly type: string;
  /** ISO 8601. */
  readonly timestamp: string;
}

/** Functions by type of event: each notes the event in the state, and returns the spans that end with it. */
export type SpanHandlers<Event extends LoggedEvent, State> = {
  readonly [T in Event["type"]]?: (
    state: State,
    event: Extract<Event, { readonly type: T }>,
    atMs: number,
  ) => Span[];
};

/**
 * Creates the projection of one log to spans: `take` is given each event in order, and returns the spans that end with
 * it. The function `begin` returns the state for the first event, and nothing for any other.
 */
export function createProjection<Event extends LoggedEvent, State extends { readonly root: OpenSpan }>(
  begin: (event: Event) => State | undefined,
  takes: SpanHandlers<Event, State>,
): SpanProjection<Event> {
  const takesByType: Readonly<
    Record<string, ((state: State, event: never, atMs: number) => Span[]) | undefined>
  > = takes;
  let state: State | undefined;
  return {
    take: (event) => {
      state ??= begin(event);
      const take = takesByType[event.type];
      return state && take ? take(state, event as never, Date.parse(event.timestamp)) : [];
    },
    root: () => state?.root,
  };
}
