/** Owns: what others are told of the run that calls them. */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { EffectDependencies } from "./effect-dependencies.ts";
import type { EventId } from "../../../contracts/ids.ts";
import { chooseTraceId, computeEventSpanId } from "../../../telemetry/span.ts";
import type { NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import type { NodeRun } from "../../../workflow/state/workflow-state.ts";
import { formatTraceparent, parseTraceparent } from "../../../workflow/trace-context.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** A run that came with no trace is on one of its own, which is recorded as far as spans are exported. */
const SAMPLED = 1;

/**
 * Returns the trace context of an outbound call of a node, below the exported span of its open tool call, or of its
 * attempt. The log decides both, so that a call that is made again has the same.
 */
export function createTraceContext(
  { sha256 }: EffectDependencies,
  { run: { runId, nodes, started } }: LoadedRun,
  { nodeId }: Pick<NodeEffect, "nodeId">,
): { traceparent: string; tracestate?: string } {
  const { traceparent, tracestate } = started;
  const caller = parseTraceparent(traceparent);
  const sequence = findSpanSequence(nodes.get(nodeId));
  return {
    traceparent: formatTraceparent({
      traceId: chooseTraceId(runId, caller?.traceId, sha256),
      spanId: computeEventSpanId(runId, sequence, sha256),
      flags: caller?.flags ?? SAMPLED,
    }),
    ...(caller && tracestate !== undefined && { tracestate }),
  };
}

/**
 * Returns the sequence of the event that the span is named by: the open tool call, else the start of the attempt; 0
 * where there is neither.
 */
function findSpanSequence(node: NodeRun | undefined): number {
  return node?.openCall?.sequence ?? node?.startedSequence ?? 0;
}

/**
 * Returns the record of the calling run that a peer or a tool's server is told: its id, host, depth and why it calls.
 */
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
