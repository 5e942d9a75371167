/**
 * Owns: the spans of a coordination, projected from its log: its owner's work as the root, an attempt of a step as a span of its agent,
 * a held result, a conflict and a question as spans of a namespace of our own, a refused call as the call of a tool.
 *
 * Nothing that people or models wrote is in them: ids, names, codes, numbers and times. A span is projected when its end is recorded.
 */
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID } from "../contracts/ids.ts";
import type { FactEvent, RunEvent } from "../contracts/run-event.ts";
import {
  createProjectedCoordination,
  beginCoordinationSpan,
  describeAgentSpan,
  findOpenSpan,
  findStepSpanId,
  type CoordinationSpans,
} from "./coordination-spans.ts";
import { describeModel, describeUsage } from "./count-usage.ts";
import { createProjection, type FindRoot, type SpanProjection, type SpanHandlers } from "./projection.ts";
import {
  addSpanEvent,
  endSpan,
  findParentSpanId,
  type HashText,
  type OpenSpan,
  type Span,
  type SpanAttributes,
} from "./span.ts";

type Fact<T extends FactEvent["type"]> = Extract<FactEvent, { readonly type: T }>;

/**
 * Creates the projection of a coordination's log to spans: each event is taken in order, and the spans that end with
 * it are returned. `findRoot` finds the root spans of related coordinations to link to.
 */
export function createCoordinationSpans(
  hash: HashText,
  findRoot: FindRoot = () => undefined,
): SpanProjection<RunEvent> {
  return createProjection(
    (event: RunEvent) =>
      event.type === "coordination.created" ? createProjectedCoordination(event, hash, findRoot) : undefined,
    TAKES,
  );
}

/** The step of an attempt that ended, and the usage reported with its end. */
type AttemptUsage = Pick<FactPayloads["step.completed"], "stepId" | "usage">;

interface AttemptEnd {
  readonly atMs: number;
  readonly outcome: string;
  readonly error?: string;
  readonly attributes?: SpanAttributes;
}

/** Counts what the runner of a planned step says. Only the calls of children that models spawned count. */
function countSpent({ steps, usage }: CoordinationSpans, { stepId, usage: spent }: AttemptUsage): void {
  const isPlanned = steps.get(stepId)?.spec.planned !== undefined && stepId !== DELIVERY_STEP_ID;
  if (spent && isPlanned) usage.addSpent(stepId, spent);
}

/** Ends the attempt of a step, or its gate where its result was held. */
function endAttempt(projected: CoordinationSpans, attempted: AttemptUsage, end: AttemptEnd): Span[] {
  const { stepId } = attempted;
  const { steps, usage } = projected;
  const step = steps.get(stepId);
  if (!step) return [];
  countSpent(projected, attempted);
  const { attempt, gate } = step;
  const attributes = { "coordination.outcome": end.outcome, ...end.attributes };
  step.attempt = undefined;
  step.gate = undefined;
  if (gate) return [endSpan(gate, { ...end, attributes })];
  if (!attempt) return [];
  return [
    endSpan(attempt, {
      ...end,
      attributes: { ...describeUsage(usage.sum(stepId), step.before), ...attributes },
    }),
  ];
}

/** Ends what is still open with the coordination. */
function endOpenSpans({ steps, questions, conflicts }: CoordinationSpans, atMs: number): Span[] {
  const open = [
    ...[...steps.values()].flatMap(({ attempt, gate }) => [attempt, gate]),
    ...questions.values(),
    ...conflicts.values(),
  ];
  const attributes = { "coordination.outcome": "left_open" };
  return open.flatMap((span) => (span ? [endSpan(span, { atMs, attributes })] : []));
}

const FAILED: ReadonlySet<string> = new Set(["failed", "escalated"]);

const TAKES: SpanHandlers<RunEvent, CoordinationSpans> = {
  "step.admitted": (projected, { payload }) => {
    const before = projected.usage.sum(payload.stepId);
    projected.steps.set(payload.stepId, {
      spec: payload,
      attemptSpanId: "",
      before,
      attempt: undefined,
      gate: undefined,
    });
    return [];
  },
  "step.dispatched": beginAttempt,
  "step.acknowledged": (projected, { payload: { stepId, childSessionKey, childRunId } }) => {
    const attempt = projected.steps.get(stepId)?.attempt;
    if (attempt)
      attempt.attributes = {
        ...attempt.attributes,
        "gen_ai.conversation.id": childSessionKey,
        "coordination.child_run_id": childRunId,
      };
    return [];
  },
  "child.observed": (projected, { payload: { stepId, ran } }) => {
    const attempt = projected.steps.get(stepId)?.attempt;
    if (attempt && ran.model !== undefined)
      attempt.attributes = { ...attempt.attributes, ...describeModel(ran.model) };
    return [];
  },
  "child.differed": (projected, { payload: { stepId, field } }, atMs) => {
    const attributes = { "coordination.field": field };
    addSpanEvent(findOpenSpan(projected, stepId), { name: "coordination.child.differed", atMs, attributes });
    return [];
  },
  "step.completed": (projected, { payload }, atMs) =>
    endAttempt(projected, payload, {
      atMs,
      outcome: "completed",
      ...(payload.released && { attributes: { "coordination.gate.released": payload.released } }),
    }),
  "step.failed": (projected, { payload }, atMs) =>
    endAttempt(projected, payload, {
      atMs,
      outcome: payload.cancelled ? "cancelled" : "failed",
      ...(!payload.cancelled && { error: payload.error.code }),
      attributes: {
        "coordination.retried": payload.retryAtMs !== undefined,
        ...(payload.cancelled && { "coordination.code": payload.error.code }),
      },
    }),
  "step.timed_out": (projected, { payload }, atMs) =>
    endAttempt(projected, payload, { atMs, outcome: "timed_out", error: "timed_out" }),
  "result.revised": (projected, { payload }, atMs) =>
    endAttempt(projected, payload, {
      atMs,
      outcome: "revised",
      attributes: { "coordination.revision": payload.revision },
    }),
  "result.held": (projected, { payload }, atMs) => {
    const ended = endAttempt(projected, payload, { atMs, outcome: "held" });
    const step = projected.steps.get(payload.stepId);
    if (step) step.gate = beginGate(projected, payload, atMs);
    return ended;
  },
  "result.verified": (projected, { payload: { stepId, check, verdict } }, atMs) => {
    const attributes = { "coordination.check": check, "coordination.verdict": verdict };
    addSpanEvent(findOpenSpan(projected, stepId), { name: "coordination.result.verified", atMs, attributes });
    return [];
  },
  "verification.failed": (projected, { payload: { stepId, check, because } }, atMs) => {
    const attributes = { "coordination.check": check, "coordination.because": because };
    addSpanEvent(findOpenSpan(projected, stepId), {
      name: "coordination.verification.failed",
      atMs,
      attributes,
    });
    return [];
  },
  "step.skipped": (projected, { payload: { stepId, because } }, atMs) => {
    const attributes = { "coordination.step_id": stepId, "coordination.because": because };
    addSpanEvent(projected.root, { name: "coordination.step.skipped", atMs, attributes });
    return [];
  },
  "coordination.escalated": (projected, { payload }, atMs) => {
    const { escalationId, stepId, cause, kind } = payload;
    projected.questions.set(
      escalationId,
      beginCoordinationSpan(projected, {
        spanId: projected.nameSpan(`question/${escalationId}`),
        parentSpanId: findStepSpanId(projected, stepId),
        name: `coordination.question ${cause}`,
        startMs: atMs,
        attributes: {
          "coordination.question.id": escalationId,
          "coordination.question.cause": cause,
          "coordination.question.kind": kind,
          ...(stepId && { "coordination.step_id": stepId }),
        },
      }),
    );
    return [];
  },
  "escalation.notified": (projected, { payload: { escalationId, channel, outcome } }, atMs) => {
    const attributes = { "coordination.channel": channel, "coordination.outcome": outcome };
    const question = projected.questions.get(escalationId);
    addSpanEvent(question, { name: "coordination.question.notified", atMs, attributes });
    return [];
  },
  "escalation.answered": (projected, { payload: { escalationId, answer, through, refused } }, atMs) => {
    const attributes = {
      "coordination.answer": answer,
      "coordination.channel": through,
      ...(refused !== undefined && { "coordination.refused": refused }),
    };
    const question = projected.questions.get(escalationId);
    addSpanEvent(question, { name: "coordination.question.answered", atMs, attributes });
    return [];
  },
  "escalation.closed": ({ questions }, { payload: { escalationId, resolution } }, atMs) => {
    const question = questions.get(escalationId);
    questions.delete(escalationId);
    const attributes = { "coordination.question.resolution": resolution };
    return question ? [endSpan(question, { atMs, attributes })] : [];
  },
  "conflict.detected": (projected, { payload }, atMs) => {
    const { conflictId, claims, contest } = payload;
    projected.conflicts.set(
      conflictId,
      beginCoordinationSpan(projected, {
        spanId: projected.nameSpan(`conflict/${conflictId}`),
        parentSpanId: findStepSpanId(projected, contest?.requester),
        name: "coordination.conflict",
        startMs: atMs,
        attributes: {
          "coordination.conflict.id": conflictId,
          "coordination.conflict.claims": claims.length,
          ...(contest && { "coordination.conflict.cause": contest.cause }),
        },
      }),
    );
    return [];
  },
  "conflict.resolved": ({ conflicts }, { payload: { conflictId, strategy, winner } }, atMs) => {
    const conflict = conflicts.get(conflictId);
    conflicts.delete(conflictId);
    const attributes = {
      "coordination.conflict.strategy": strategy,
      ...(winner !== undefined && { "coordination.conflict.winner": winner }),
    };
    return conflict ? [endSpan(conflict, { atMs, attributes })] : [];
  },
  "privilege.refused": (projected, { payload: { stepId, tool, rule }, sequence }, atMs) => [
    endSpan(
      beginCoordinationSpan(projected, {
        spanId: projected.nameSpan(`call/${sequence}`),
        parentSpanId: findStepSpanId(projected, stepId),
        name: `execute_tool ${tool}`,
        startMs: atMs,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": tool,
          "coordination.step_id": stepId,
        },
      }),
      { atMs, error: `coordination.${rule}` },
    ),
  ],
  "step.child_stopped": (projected, { payload }) => {
    countSpent(projected, payload);
    return [];
  },
  "usage.recorded": ({ usage }, { payload }) => {
    usage.add(payload);
    return [];
  },
  "budget.reached": (projected, { payload: { stepId, limit, allowed, stopped } }, atMs) => {
    const attributes = {
      "coordination.budget.limit": limit,
      "coordination.budget.allowed": allowed,
      "coordination.stopped": stopped,
    };
    addSpanEvent(findOpenSpan(projected, stepId), { name: "coordination.budget.reached", atMs, attributes });
    return [];
  },
  "coordination.terminal": (projected, { payload: { status, steps } }, atMs) => {
    const attributes = {
      ...describeUsage(projected.usage.sum()),
      "coordination.outcome": status,
      "coordination.steps": steps.total,
    };
    const error = FAILED.has(status) ? status : undefined;
    return [...endOpenSpans(projected, atMs), endSpan(projected.root, { atMs, attributes, error })];
  },
};

/** Begins the span of a step's attempt; no span ends with it. */
function beginAttempt(
  projected: CoordinationSpans,
  { payload }: Fact<"step.dispatched">,
  atMs: number,
): Span[] {
  const { stepId, attempt, lane } = payload;
  const step = projected.steps.get(stepId);
  if (!step) return [];
  const { spec, attemptSpanId: earlier } = step;
  const { agentId, runner, name, sourceSession, parentStepId, requested } = spec;
  const { traceId } = projected.root;
  const links = earlier === "" ? [] : [{ traceId, spanId: earlier }];
  const { spanId: caller } = spec.call;
  const hostSpan = findParentSpanId(traceId, caller);
  const span = beginCoordinationSpan(projected, {
    spanId: projected.nameAttempt(payload.idempotencyKey),
    parentSpanId: findStepSpanId(projected, parentStepId),
    name: `invoke_agent ${agentId}`,
    startMs: atMs,
    attributes: {
      ...describeAgentSpan(agentId, sourceSession),
      "coordination.step_id": stepId,
      "coordination.attempt": attempt,
      "coordination.lane": lane,
      "coordination.runner": runner,
      ...(name !== undefined && { "coordination.step_name": name }),
      ...(requested?.model !== undefined && { "gen_ai.request.model": requested.model }),
    },
    // The attempt that this one comes after, and the host's call that asked for the spawn.
    links: hostSpan === undefined ? links : [...links, { traceId, spanId: hostSpan }],
  });
  step.attempt = span;
  step.attemptSpanId = span.spanId;
  step.before = projected.usage.sum(stepId);
  return [];
}

function beginGate(
  projected: CoordinationSpans,
  { stepId, attempt, confidence }: FactPayloads["result.held"],
  atMs: number,
): OpenSpan {
  return beginCoordinationSpan(projected, {
    spanId: projected.nameSpan(`gate/${stepId}/${attempt}`),
    parentSpanId: findStepSpanId(projected, stepId),
    name: "coordination.gate",
    startMs: atMs,
    attributes: {
      "coordination.step_id": stepId,
      "coordination.attempt": attempt,
      ...(confidence !== undefined && { "coordination.confidence": confidence / 10_000 }),
    },
  });
}
