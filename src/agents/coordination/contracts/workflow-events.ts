/**
 * Owns: the events of a workflow run. They are the protocol's own (OpenWOP v1, run-event-payloads.schema.json), and the
 * state of the run is folded from them: a workflow run has no second vocabulary (docs/adr/0012).
 */
import { z } from "zod";
import { CoordinationError } from "./errors.ts";
import { coordinationIdSchema, eventIdSchema, type CoordinationId, type EventId } from "./ids.ts";
import { describeProblems, parseBounded } from "./validation.ts";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

const text = z.string().max(WORKFLOW_BOUNDS.textCharsMax);
const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
const record = z.record(z.string(), z.unknown());
const count = z.int().min(0);
const share = z.number().min(0).max(1);
const agentId = z.string().min(3).max(WORKFLOW_BOUNDS.nameCharsMax);
/** Of an event whose cause is on another host. */
const causationHostId = name.optional();
const errorObject = z.object({ code: name, message: text.min(1), details: record.optional() });

export const ancestryCauseSchema = z.enum([
  "mcp-tool-call",
  "a2a-message",
  "core.subWorkflow",
  "core.dispatch",
]);

/** The run that started this one. `wellKnownUrl` exactly where that is on another host. */
export const parentRunSchema = z.object({
  runId: name,
  hostId: name,
  cause: ancestryCauseSchema,
  nodeId: name.optional(),
  /** The event over there that this run follows from. */
  eventId: eventIdSchema.optional(),
  wellKnownUrl: text.optional(),
  /** Runs around it, where another host says so. */
  depth: count.optional(),
});
export type ParentRun = z.infer<typeof parentRunSchema>;

export const interruptKindSchema = z.enum([
  "approval",
  "clarification",
  "external-event",
  "custom",
  "low-confidence",
]);
export type InterruptKind = z.infer<typeof interruptKindSchema>;

export const drainPolicySchema = z.enum(["immediate", "drain-current-node"]);
export type DrainPolicy = z.infer<typeof drainPolicySchema>;

const confidence = share.optional();
/** orchestrator-decision.schema.json. */
export const decisionSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("next-worker"),
    nextWorkerIds: z.array(name).min(1).max(WORKFLOW_BOUNDS.workersPerDecisionMax),
    confidence,
  }),
  z.strictObject({ kind: z.literal("ask-user"), prompt: text.min(1) }),
  z.strictObject({
    kind: z.literal("terminate"),
    reason: text.min(1).optional(),
    confidence,
    successCriteria: z.array(z.strictObject({ key: name, met: z.boolean() })).optional(),
  }),
]);
export type OrchestratorDecision = z.infer<typeof decisionSchema>;

/** The payload schema of every event of a workflow run, by type. */
export const WORKFLOW_PAYLOADS = {
  "run.started": z.object({
    workflowId: name,
    inputs: record,
    transport: z.enum(["rest", "mcp", "a2a"]),
    owner: z.object({ tenant: name, principal: name }),
    /** sha256 of the definition that the run follows, whatever becomes of the workflow meanwhile. */
    definition: z.string().length(64),
    configurable: record.optional(),
    tags: z.array(text).optional(),
    metadata: record.optional(),
    /** Names the memory that the run reads and writes. */
    memoryScope: name,
    parent: parentRunSchema.optional(),
    causationHostId,
    /** Runs around it; 0 for one that nobody started from a run. */
    depth: count.optional(),
    /** W3C trace context. */
    traceparent: name.optional(),
    tracestate: text.optional(),
  }),
  "run.completed": z.object({ outputs: record, durationMs: count.optional() }),
  "run.failed": z.object({ error: errorObject, failedNodeId: name.optional(), durationMs: count.optional() }),
  "run.cancelled": z.object({
    reason: text.optional(),
    cancelledBy: name.optional(),
    parentRunId: name.optional(),
    durationMs: count.optional(),
  }),
  "run.paused": z.object({ drainPolicy: drainPolicySchema, reason: text.optional() }),
  "run.resumed": z.object({}),
  /** People asked for a pause that begins when the running nodes have ended. */
  "coordination.pause_requested": z.object({ drainPolicy: drainPolicySchema, reason: text.optional() }),
  /** Another process goes on with the run, because the one that ran it is gone. */
  "run.resuming": z.object({ process: name, fromStatus: name }),
  "node.started": z.object({ nodeId: name, typeId: name, attempt: count }),
  "node.completed": z.object({ nodeId: name, outputs: record.optional(), durationMs: count.optional() }),
  "node.failed": z.object({ nodeId: name, error: errorObject, attempts: z.int().min(1).optional() }),
  "node.skipped": z.object({ nodeId: name, reason: text.optional() }),
  "node.cancelled": z.object({ nodeId: name, reason: text.optional() }),
  "node.retried": z.object({
    nodeId: name,
    attempt: z.int().min(1),
    delayMs: count.optional(),
    lastError: errorObject.optional(),
  }),
  "node.suspended": z.object({
    nodeId: name,
    interruptId: name,
    kind: interruptKindSchema,
    key: name,
    reason: text.optional(),
    agentId: agentId.optional(),
    threshold: share.optional(),
    observed: share.optional(),
  }),
  "node.resumed": z.object({ nodeId: name, interruptId: name, resumeValue: z.unknown().optional() }),
  "interrupt.requested": z.object({
    kind: interruptKindSchema,
    key: name,
    data: record,
    timeoutMs: count.optional(),
    resumeSchema: record.optional(),
  }),
  "interrupt.resolved": z.object({
    nodeId: name,
    interruptId: name,
    kind: interruptKindSchema,
    resumeValue: z.unknown().optional(),
    /** Who gave it, and through what. */
    resolvedBy: name.optional(),
  }),
  "approval.requested": record,
  "approval.received": record,
  "approval.granted": record,
  "approval.rejected": record,
  "clarification.requested": record,
  "clarification.resolved": record,
  "variable.changed": z.object({
    name,
    previous: z.unknown().optional(),
    next: z.unknown().optional(),
    nodeId: name.optional(),
  }),
  "workflow.loopback-limit": record,
  "cap.breached": z.object({
    kind: z.enum(["node-executions", "run-duration", "loop-iterations"]),
    limit: z.number().min(0),
    observed: z.number().min(0),
    nodeId: name.optional(),
  }),
  "runOrchestrator.decided": z.strictObject({
    agentId,
    decision: decisionSchema,
    iteration: z.int().min(1),
    causationHostId,
  }),
  "node.dispatched": z.strictObject({
    childRunId: name,
    childWorkflowId: name,
    childStatus: name.optional(),
  }),
  "core.workflowChain.event": z.strictObject({
    phase: z.enum([
      "dispatch.began",
      "dispatch.succeeded",
      "dispatch.failed",
      "child.completed",
      "child.failed",
      "child.cancelled",
      "output.harvested",
    ]),
    workerId: name,
    parentRunId: name,
    childRunId: name.optional(),
    harvestedKeys: z.array(name).optional(),
    error: errorObject.optional(),
    causationHostId,
  }),
  "core.workflowChain.confidence-escalated": z.strictObject({
    confidence: share,
    floor: z.number().min(0.5).max(1),
    escalationKind: z.enum(["clarify", "escalate"]),
    parentRunId: name,
    workerId: name.optional(),
    originalDecision: decisionSchema,
    causationHostId,
  }),
  "agent.reasoned": z.object({
    agentId,
    reasoning: text,
    verbosity: z.enum(["summary", "full", "off"]).optional(),
    causationHostId,
  }),
  "agent.reasoning.delta": z.object({
    agentId,
    delta: text,
    sequence: count,
    verbosity: z.enum(["summary", "full", "off"]).optional(),
  }),
  "agent.toolCalled": z.object({
    agentId,
    toolName: name,
    callId: name,
    inputs: z.unknown().optional(),
    argsHash: name.optional(),
    principal: name.optional(),
    transport: z.enum(["mcp", "http", "native"]).optional(),
    causationHostId,
  }),
  "agent.toolReturned": z.object({
    agentId,
    toolName: name,
    callId: name,
    outcome: z.unknown().optional(),
    error: errorObject.optional(),
    status: z.enum(["ok", "error", "forbidden", "rate_limited"]).optional(),
    durationMs: count.optional(),
    causationHostId,
  }),
  "agent.handoff": z.object({
    fromAgentId: agentId,
    toAgentId: agentId,
    reason: text.optional(),
    causationHostId,
  }),
  "agent.decided": z.object({ agentId, decision: z.unknown(), confidence, causationHostId }),
  "memory.written": z.object({
    memoryRef: name,
    memoryId: name,
    nodeId: name.optional(),
    agentId: agentId.optional(),
    tags: z.array(text).optional(),
  }),
  "provider.usage": record,
} as const;

export type WorkflowEventType = keyof typeof WORKFLOW_PAYLOADS;
export type WorkflowPayloads = { [T in WorkflowEventType]: z.infer<(typeof WORKFLOW_PAYLOADS)[T]> };

interface EventEnvelope {
  readonly eventId: EventId;
  readonly runId: CoordinationId;
  readonly sequence: number;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly nodeId?: string;
  readonly causationId?: EventId;
}

/** One event of a workflow run. */
export type WorkflowEvent = {
  [T in WorkflowEventType]: EventEnvelope & { readonly type: T; readonly payload: WorkflowPayloads[T] };
}[WorkflowEventType];

/** An event before it has a place in the log. */
export type WorkflowDraft = {
  [T in WorkflowEventType]: {
    readonly type: T;
    readonly payload: WorkflowPayloads[T];
    readonly nodeId?: string;
    readonly causationId?: EventId;
  };
}[WorkflowEventType];

const envelopeSchema = z.object({
  eventId: eventIdSchema,
  runId: coordinationIdSchema,
  sequence: z.int().min(0),
  type: name,
  timestamp: z.iso.datetime(),
  nodeId: name.optional(),
  causationId: eventIdSchema.optional(),
});

const BOUNDS = { charsMax: WORKFLOW_BOUNDS.eventCharsMax, depthMax: WORKFLOW_BOUNDS.depthMax };

/**
 * Checks a stored value and returns it as an event, unknown payload fields kept.
 *
 * @throws CoordinationError `EVENT_UNREADABLE` when its type is unknown or a field does not match.
 */
export function decodeWorkflowEvent(value: unknown): WorkflowEvent {
  // The payload is looked at by itself, so that the same one is within bounds here and before it is appended.
  const { payload, ...rest } =
    typeof value === "object" && value !== null ? (value as { payload?: unknown }) : {};
  const envelope = parseBounded(envelopeSchema, rest, BOUNDS);
  if (!envelope.ok) throw unreadable("event", describeProblems(envelope.problems));
  const { eventId, type } = envelope.value;
  if (!isWorkflowEventType(type)) throw unreadable(eventId, `unknown type ${JSON.stringify(type)}`);
  const problem = payloadProblem(type, payload);
  if (problem !== undefined) throw unreadable(eventId, `payload of ${type}: ${problem}`);
  return value as WorkflowEvent;
}

/** Why a log could not be read with such a payload in it; `undefined` where it can. */
export function payloadProblem(type: WorkflowEventType, payload: unknown): string | undefined {
  const parsed = parseBounded(WORKFLOW_PAYLOADS[type] as z.ZodType, payload, BOUNDS);
  return parsed.ok ? undefined : describeProblems(parsed.problems);
}

function isWorkflowEventType(type: string): type is WorkflowEventType {
  return Object.hasOwn(WORKFLOW_PAYLOADS, type);
}

function unreadable(which: string, why: string): CoordinationError {
  return new CoordinationError("EVENT_UNREADABLE", `${which}: ${why}`);
}
