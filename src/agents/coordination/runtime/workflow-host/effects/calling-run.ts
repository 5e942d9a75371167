/** Owns: what others are told of the run that calls them. */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { EffectDependencies } from "./effect-dependencies.ts";
import type { EventId } from "../../../contracts/ids.ts";
import { childOf } from "../../../workflow/trace-context.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** The trace of the run goes on in what it calls, with a span of its own for each call. */
export function traceOf(
  dependencies: EffectDependencies,
  { run }: LoadedRun,
  seed: string,
): { traceparent?: string; tracestate?: string } {
  const { traceparent, tracestate } = run.started;
  const child = childOf(traceparent, dependencies.sha256(`${run.runId}\n${seed}`));
  return {
    ...(child !== undefined && { traceparent: child }),
    ...(child !== undefined && tracestate !== undefined && { tracestate }),
  };
}

export function describeCallingRun(
  { settings: { hostId }, baseUrl }: EffectDependencies,
  { run: { runId, started } }: LoadedRun,
  cause: CallingRun["cause"],
  eventId: EventId | undefined,
): CallingRun {
  const wellKnownUrl = `${baseUrl()}/.well-known/openwop`;
  const depth = started.depth ?? 0;
  return { runId, hostId, cause, wellKnownUrl, depth, ...(eventId !== undefined && { eventId }) };
}
