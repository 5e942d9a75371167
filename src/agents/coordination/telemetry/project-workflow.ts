/**
 * Owns: the spans of a workflow run, projected from its log: the run as the root, each attempt of a node, each call of a tool by an
 * agent, and each question to people. Inputs, outputs and prompts are not in them.
 */
import type { RunOrigin } from "../contracts/workflows/run-origin.ts";
import type { WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import { createProjection, type FindRoot, type SpanProjection, type SpanHandlers } from "./projection.ts";
import {
  beginSpan,
  chooseTraceId,
  endSpan,
  findParentSpanId,
  computeEventSpanId,
  computeSpanId,
  type HashText,
  type OpenSpan,
  type Span,
  type SpanAttributes,
  type SpanPlace,
} from "./span.ts";

/** The spans of a workflow run that are open, by what they stand for. */
interface WorkflowSpans {
  readonly runId: string;
  readonly root: OpenSpan;
  /** By node. */
  readonly nodes: Map<string, OpenSpan>;
  /** By the id of the call. */
  readonly calls: Map<string, OpenSpan>;
  /** By the id of the interrupt. */
  readonly questions: Map<string, OpenSpan>;
  readonly hash: HashText;
}

/** A workflow event of one type. */
type WorkflowEventOfType<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { readonly type: T }>;

/**
 * Creates the projection of a workflow run's log to spans: each event is taken in order, and the spans that end with
 * it are returned. `origin`: of a fork, whose copied events are skipped.
 */
export function createWorkflowSpans(
  hash: HashText,
  findRoot: FindRoot = () => undefined,
  origin?: RunOrigin,
): SpanProjection<WorkflowEvent> {
  const place = { hash, findRoot, origin };
  const projection = createProjection(
    (event: WorkflowEvent) => (event.type === "run.started" ? createProjectedRun(event, place) : undefined),
    TAKES,
  );
  return origin ? skipCopies(projection, origin) : projection;
}

/**
 * Leaves out the work that a fork copied from its source, which is in the spans of the source. Spans that are open where the
 * copies end begin there, and so does the root.
 */
function skipCopies(
  projection: SpanProjection<WorkflowEvent>,
  origin: RunOrigin,
): SpanProjection<WorkflowEvent> {
  let beganMs: number | undefined;
  let newestCopies: { readonly timestamp: string; readonly spans: Span[] } = { timestamp: "", spans: [] };
  const takeCopy = (event: WorkflowEvent): void => {
    if (event.type === "provider.usage") return;
    if (newestCopies.timestamp !== event.timestamp) newestCopies = { timestamp: event.timestamp, spans: [] };
    newestCopies.spans.push(...projection.take(event));
  };
  return {
    root: () => projection.root(),
    take: (event) => {
      const isFirst = beganMs === undefined;
      if (isFirst && isCopied(event, origin)) {
        takeCopy(event);
        return [];
      }
      const earliestMs = (beganMs ??= Date.parse(event.timestamp));
      // The fork stopped its nodes in that moment, because it could not go on.
      const stopped =
        isFirst && ENDS.has(event.type) && newestCopies.timestamp === event.timestamp
          ? newestCopies.spans
          : [];
      return [...stopped, ...projection.take(event)].map((span) => beginAtEarliest(span, earliestMs));
    },
  };
}

const ENDS: ReadonlySet<WorkflowEvent["type"]> = new Set(["run.completed", "run.failed", "run.cancelled"]);

/**
 * True for an event of the source. A fork that differs from its source, or cannot read it any more, ends below `until`
 * with events of its own; the end of the source is the last of its events.
 */
function isCopied(event: WorkflowEvent, { until, sourceRunId }: RunOrigin): boolean {
  if (event.sequence >= until) return false;
  if (ENDS.has(event.type)) return event.sequence === until - 1;
  if (event.type !== "replay.diverged" && event.type !== "replay.divergedAtRefusal") return true;
  return event.payload.sourceRunId !== sourceRunId;
}

function beginAtEarliest(span: Span, atMs: number): Span {
  return { ...span, startMs: Math.max(span.startMs, atMs), endMs: Math.max(span.endMs, atMs) };
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/u;

/** The means to find where the spans of a run belong in a trace. */
interface RunPlacing {
  readonly hash: HashText;
  readonly findRoot: FindRoot;
  readonly origin: RunOrigin | undefined;
}

/**
 * Finds the span that a run is below: of the run that started it, else of its caller's trace; `undefined` where there
 * is neither.
 */
function findParentPlace(
  event: WorkflowEventOfType<"run.started">,
  { hash, findRoot }: RunPlacing,
): SpanPlace | undefined {
  const { parent, traceparent = "" } = event.payload;
  const around = parent && parent.wellKnownUrl === undefined ? findRoot(parent.runId) : undefined;
  if (around) return around;
  const [, trace, span] = TRACEPARENT.exec(traceparent) ?? [];
  const spanId = findParentSpanId(trace, span);
  return spanId === undefined ? undefined : { traceId: chooseTraceId(event.runId, trace, hash), spanId };
}

/**
 * Creates the state of a run's projection, with its root span. A fork is on the trace that its source was started on,
 * if any, else on one of its own, and links the source's root in place of a parent.
 */
function createProjectedRun(event: WorkflowEventOfType<"run.started">, placing: RunPlacing): WorkflowSpans {
  const { runId, payload, timestamp } = event;
  const { hash, findRoot, origin } = placing;
  const place = findParentPlace(event, placing);
  const source = origin && findRoot(origin.sourceRunId);
  return {
    runId,
    hash,
    root: beginSpan({
      traceId: place?.traceId ?? chooseTraceId(runId, undefined, hash),
      spanId: computeSpanId(runId, "root", hash),
      ...(place && !origin && { parentSpanId: place.spanId }),
      name: `invoke_agent ${payload.workflowId}`,
      startMs: Date.parse(timestamp),
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": payload.workflowId,
        "gen_ai.conversation.id": runId,
        "coordination.run_id": runId,
        "coordination.transport": payload.transport,
        "coordination.tenant": payload.owner.tenant,
        ...(origin && { "coordination.forked_from": origin.sourceRunId }),
      },
      ...(source && { links: [source] }),
    }),
    nodes: new Map(),
    calls: new Map(),
    questions: new Map(),
  };
}

interface SpanStart {
  /** The sequence of the event that begins it: a node of a loop begins more than once. */
  readonly sequence: number;
  readonly parentSpanId: string;
  readonly name: string;
  readonly startMs: number;
  readonly attributes: SpanAttributes;
}

/** Begins a span on the trace of the run. */
function beginRunSpan({ root, runId, hash }: WorkflowSpans, { sequence, ...start }: SpanStart): OpenSpan {
  return beginSpan({ traceId: root.traceId, spanId: computeEventSpanId(runId, sequence, hash), ...start });
}

function findNodeSpanId({ root, nodes }: WorkflowSpans, nodeId: string | undefined): string {
  return (nodeId === undefined ? undefined : nodes.get(nodeId))?.spanId ?? root.spanId;
}

interface SpanEnd {
  readonly atMs: number;
  readonly outcome: string;
  readonly error?: string;
  readonly attributes?: SpanAttributes;
}

function endPart(spans: Map<string, OpenSpan>, id: string, { outcome, attributes, ...end }: SpanEnd): Span[] {
  const span = spans.get(id);
  spans.delete(id);
  return span
    ? [endSpan(span, { ...end, attributes: { "coordination.outcome": outcome, ...attributes } })]
    : [];
}

function endRunSpans({ root, nodes, calls, questions }: WorkflowSpans, end: SpanEnd): Span[] {
  const left: SpanEnd = { atMs: end.atMs, outcome: "left_open" };
  const open = [nodes, calls, questions].flatMap((spans) =>
    [...spans.keys()].flatMap((id) => endPart(spans, id, left)),
  );
  const { outcome, error, atMs } = end;
  return [...open, endSpan(root, { atMs, error, attributes: { "coordination.outcome": outcome } })];
}

const TAKES: SpanHandlers<WorkflowEvent, WorkflowSpans> = {
  "node.started": (projected, { payload: { nodeId, typeId, attempt }, sequence }, startMs) => {
    const attributes = {
      "coordination.node_id": nodeId,
      "coordination.node_type": typeId,
      "coordination.attempt": attempt,
    };
    const parentSpanId = projected.root.spanId;
    const name = `coordination.node ${typeId}`;
    projected.nodes.set(
      nodeId,
      beginRunSpan(projected, { sequence, parentSpanId, name, startMs, attributes }),
    );
    return [];
  },
  "node.completed": ({ nodes }, { payload: { nodeId } }, atMs) =>
    endPart(nodes, nodeId, { atMs, outcome: "completed" }),
  "node.failed": ({ nodes }, { payload: { nodeId, error } }, atMs) =>
    endPart(nodes, nodeId, { atMs, outcome: "failed", error: error.code }),
  "node.cancelled": ({ nodes }, { payload: { nodeId } }, atMs) =>
    endPart(nodes, nodeId, { atMs, outcome: "cancelled" }),
  "node.retried": ({ nodes }, { payload: { nodeId, lastError } }, atMs) =>
    endPart(nodes, nodeId, { atMs, outcome: "retried", error: lastError?.code ?? "retried" }),
  "provider.usage": (projected, { payload, nodeId }) => {
    const node = nodeId === undefined ? undefined : projected.nodes.get(nodeId);
    if (node) node.attributes = { ...node.attributes, ...describeModelUsage(payload, node.attributes) };
    return [];
  },
  "agent.toolCalled": (projected, { payload: { agentId, toolName, callId }, nodeId, sequence }, startMs) => {
    const attributes = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": toolName,
      "gen_ai.tool.call.id": callId,
      "gen_ai.agent.name": agentId,
    };
    const parentSpanId = findNodeSpanId(projected, nodeId);
    const name = `execute_tool ${toolName}`;
    projected.calls.set(
      callId,
      beginRunSpan(projected, { sequence, parentSpanId, name, startMs, attributes }),
    );
    return [];
  },
  "agent.toolReturned": ({ calls }, { payload: { callId } }, atMs) =>
    endPart(calls, callId, { atMs, outcome: "returned" }),
  "node.suspended": (projected, { payload: { nodeId, interruptId, kind }, sequence }, startMs) => {
    const attributes = {
      "coordination.question.id": interruptId,
      "coordination.question.kind": kind,
      "coordination.node_id": nodeId,
    };
    const parentSpanId = findNodeSpanId(projected, nodeId);
    const name = `coordination.question ${kind}`;
    const question = beginRunSpan(projected, { sequence, parentSpanId, name, startMs, attributes });
    projected.questions.set(interruptId, question);
    return [];
  },
  "interrupt.resolved": ({ questions }, { payload: { interruptId } }, atMs) =>
    endPart(questions, interruptId, { atMs, outcome: "answered" }),
  "run.completed": (projected, _, atMs) => endRunSpans(projected, { atMs, outcome: "completed" }),
  "run.failed": (projected, { payload: { error } }, atMs) =>
    endRunSpans(projected, { atMs, outcome: "failed", error: error.code }),
  "run.cancelled": (projected, _, atMs) => endRunSpans(projected, { atMs, outcome: "cancelled" }),
};

/** Returns a node's attributes with one more model call: the sum of their tokens, and the newest model. */
function describeModelUsage(
  payload: Readonly<Record<string, unknown>>,
  before: SpanAttributes,
): SpanAttributes {
  const { provider, model, inputTokens, outputTokens } = payload;
  return {
    ...(typeof provider === "string" && { "gen_ai.provider.name": provider }),
    ...(typeof model === "string" && { "gen_ai.response.model": model }),
    ...addTokens(before, "gen_ai.usage.input_tokens", inputTokens),
    ...addTokens(before, "gen_ai.usage.output_tokens", outputTokens),
  };
}

function addTokens(before: SpanAttributes, name: string, tokens: unknown): SpanAttributes {
  if (typeof tokens !== "number") return {};
  const earlier = before[name];
  return { [name]: tokens + (typeof earlier === "number" ? earlier : 0) };
}
