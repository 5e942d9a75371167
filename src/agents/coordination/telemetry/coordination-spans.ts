/** Owns: the open spans of a coordination while its log is projected, and where each belongs. */
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { createUsageCounter, type UsedByStep } from "./count-usage.ts";
import type { FindRoot } from "./projection.ts";
import {
  beginSpan,
  chooseTraceId,
  findParentSpanId,
  computeAttemptSpanId,
  computeSpanId,
  type HashText,
  type OpenSpan,
  type SpanAttributes,
} from "./span.ts";

export interface ProjectedStep {
  readonly spec: StepAdmitted;
  /** The span of the newest attempt, under which its children are. */
  attemptSpanId: string;
  before: UsedByStep;
  attempt: OpenSpan | undefined;
  /** A result that is held, from the end of its attempt on. */
  gate: OpenSpan | undefined;
}

/** The spans of a coordination that are open, by what they stand for, and the usage counted so far. */
export interface CoordinationSpans {
  readonly nameSpan: (part: string) => string;
  readonly nameAttempt: (idempotencyKey: string) => string;
  readonly root: OpenSpan;
  readonly steps: Map<StepId, ProjectedStep>;
  readonly questions: Map<string, OpenSpan>;
  readonly conflicts: Map<string, OpenSpan>;
  readonly usage: ReturnType<typeof createUsageCounter>;
}

/**
 * Creates from the first event of a coordination's log the state that is kept while its log is turned into spans, with
 * its open root span.
 */
export function createProjectedCoordination(
  { runId, payload, timestamp }: Extract<FactEvent, { readonly type: "coordination.created" }>,
  hash: HashText,
  findRoot: FindRoot,
): CoordinationSpans {
  const { trace, origin, ownerAgent, ownerSession, forkedFrom, parent, gateway } = payload;
  const traceId = chooseTraceId(runId, trace.traceId, hash);
  const parentSpanId = findParentSpanId(trace.traceId, trace.spanId);
  const origins = [forkedFrom?.coordinationId, parent?.coordinationId, trace.causalRef];
  return {
    nameSpan: (part) => computeSpanId(runId, part, hash),
    nameAttempt: (idempotencyKey) => computeAttemptSpanId(idempotencyKey, hash),
    root: beginSpan({
      traceId,
      spanId: computeSpanId(runId, "root", hash),
      ...(parentSpanId !== undefined && { parentSpanId }),
      name: `invoke_agent ${ownerAgent}`,
      startMs: Date.parse(timestamp),
      attributes: {
        ...describeAgentSpan(ownerAgent, ownerSession),
        "coordination.id": runId,
        "coordination.origin": origin,
        ...(forkedFrom && { "coordination.forked_from": forkedFrom.coordinationId }),
        ...(gateway !== undefined && { "coordination.gateway": gateway }),
      },
      links: origins.flatMap((id) => (id === undefined ? [] : (findRoot(id) ?? []))),
    }),
    steps: new Map(),
    questions: new Map(),
    conflicts: new Map(),
    usage: createUsageCounter(),
  };
}

/** Returns the span attributes of the work of an agent in a session. */
export function describeAgentSpan(agent: string, session: string): SpanAttributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": agent,
    "gen_ai.conversation.id": session,
  };
}

/**
 * Returns the id of the span that is around a step's work: that of its newest attempt, else of the coordination's
 * root.
 */
export function findStepSpanId({ root, steps }: CoordinationSpans, stepId: StepId | undefined): string {
  const step = stepId === undefined ? undefined : steps.get(stepId);
  return step && step.attemptSpanId !== "" ? step.attemptSpanId : root.spanId;
}

/**
 * Returns the open span to which events of a step are added: that of its attempt, else of its gate, else the
 * coordination's root.
 */
export function findOpenSpan({ root, steps }: CoordinationSpans, stepId: StepId | undefined): OpenSpan {
  const step = stepId === undefined ? undefined : steps.get(stepId);
  return step?.attempt ?? step?.gate ?? root;
}

type SpanStart = Omit<Parameters<typeof beginSpan>[0], "traceId"> & { readonly parentSpanId: string };

/** Returns a new open span on the trace of the coordination. */
export function beginCoordinationSpan({ root: { traceId } }: CoordinationSpans, start: SpanStart): OpenSpan {
  return beginSpan({ traceId, ...start });
}
