/**
 * Owns: the events of a workflow run. They are the protocol's own (OpenWOP v1, run-event-payloads.schema.json), and the
 * state of the run is folded from them: a workflow run has no second vocabulary (docs/adr/0012).
 */
import { z } from "zod";
import { AGENT_PAYLOADS, agentSourceSchema } from "./agent-events.ts";
import { createUnreadableEventError } from "../errors.ts";
import { coordinationIdSchema, eventIdSchema, type CoordinationId, type EventId } from "../ids.ts";
import { describeProblems, parseBounded } from "../validation.ts";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";
import {
  agentId,
  causationHostId,
  count,
  errorObject,
  name,
  record,
  share,
  text,
} from "./workflow-fields.ts";

/** The schema of what made a run the child of another one. */
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
/** The run that a child was started by, perhaps of another host. */
export type ParentRun = z.infer<typeof parentRunSchema>;

/** True when a workflow run has a parent run on this host; false where it has none, or one on another host. */
export function isParentOnThisHost(
  parent: ParentRun | undefined,
): parent is ParentRun & { readonly wellKnownUrl?: undefined } {
  return parent !== undefined && parent.wellKnownUrl === undefined;
}

/** The run that calls, as the other side gets to know it: `openwop-parent` (workflow/parent-header.ts). */
export type CallingRun = Required<Pick<ParentRun, "runId" | "hostId" | "cause" | "wellKnownUrl">> &
  Pick<ParentRun, "eventId" | "depth">;

/** The schema of an interrupt's kind. */
export const interruptKindSchema = z.enum([
  "approval",
  "clarification",
  "external-event",
  "custom",
  "low-confidence",
]);
/** The kind of answer that an interrupt waits for (OpenWOP, interrupt.md). */
export type InterruptKind = z.infer<typeof interruptKindSchema>;

/** The schema of how a run is paused. */
export const drainPolicySchema = z.enum(["immediate", "drain-current-node"]);
/** Whether work under way is stopped at a pause or let end. */
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
/** The decision of a supervisor (OpenWOP RFC 0006). */
export type OrchestratorDecision = z.infer<typeof decisionSchema>;

/** The payload schema of every event of a workflow run, by type. */
export const WORKFLOW_PAYLOADS = {
  "run.started": z.object({
    workflowId: name,
    inputs: record,
    transport: z.enum(["rest", "mcp", "a2a"]),
    owner: z.object({ tenant: name, principal: name }),
    /** Rights of the caller beyond starting runs: scopes that tools may ask for (RFC 0064). */
    scopes: z.array(name).optional(),
    /** The agent whose run it is, and how it was begun; absent for other runs. */
    agent: z.object({ agentId, source: agentSourceSchema }).optional(),
    /** sha256 of each agent of a manifest that the run may invoke, whatever becomes of the manifest meanwhile. */
    agents: z.record(name, z.string().length(64)).optional(),
    /** sha256 of the definition that the run follows, whatever becomes of the workflow meanwhile. */
    definition: z.string().length(64),
    configurable: record.optional(),
    tags: z.array(text).optional(),
    metadata: record.optional(),
    /** Names the memory that the run reads and writes. */
    memoryScope: name,
    /** Set for a child whose dispatch says so, and for all below it: no name leads to another memory. */
    hasIsolatedMemory: z.literal(true).optional(),
    /** The fork whose memory the run has, where one began it, or began what began it. */
    memoryHome: coordinationIdSchema.optional(),
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
  /** The run goes on: the process that ran it is gone, or could not record anything. */
  "run.resuming": z.object({
    process: name,
    fromStatus: name,
    /** How much time before it the run's time limit leaves out. Absent where an earlier release recorded it, or a fork begins. */
    awayMs: count.optional(),
  }),
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
    /** RFC 0063: of what the child hands over, before it is merged. */
    attestation: z
      .strictObject({ checksum: z.string().length(64), algorithm: z.literal("sha256") })
      .optional(),
    error: errorObject.optional(),
    causationHostId,
  }),
  "core.workflowChain.confidence-escalated": z.strictObject({
    confidence: share,
    floor: z.number().min(0.5).max(1),
    escalationKind: z.enum(["clarify", "escalate"]),
    parentRunId: name,
    workerId: name.optional(),
    /** Absent where not a decision is doubted, but what a worker produced. */
    originalDecision: decisionSchema.optional(),
    causationHostId,
  }),
  ...AGENT_PAYLOADS,
  "memory.written": z.object({
    memoryRef: name,
    memoryId: name,
    nodeId: name.optional(),
    agentId: agentId.optional(),
    tags: z.array(text).optional(),
  }),
  "workspace.updated": z.strictObject({ path: name, version: z.int().min(1) }),
  "provider.usage": record,
  /** The request to a model, as a digest: whoever takes the recorded answer for a request can tell that it is this one. */
  "coordination.model_asked": z.strictObject({
    nodeId: name,
    provider: name,
    model: name,
    requestDigest: z.string().length(64),
  }),
  /** RFC 0032: what the provider said is content, and not in it. */
  "envelope.refusal": z.strictObject({ nodeId: name, provider: name, model: name }),
  /** A fork in mode `replay` derived something else than its source recorded. */
  "replay.diverged": z.object({
    sourceRunId: name,
    atSequence: count,
    originalEventId: name.optional(),
    divergenceKind: z.enum(["output", "missing", "extra", "type-mismatch"]).optional(),
    divergencePoint: text.optional(),
  }),
  /** RFC 0041 §B: a model refused where it had answered, or the other way round. */
  "replay.divergedAtRefusal": z.strictObject({
    sourceRunId: name,
    atSequence: count,
    originalEventId: name.optional(),
    nodeId: name.optional(),
    originalEnvelopeKind: z.enum(["valid", "refusal"]),
    replayEnvelopeKind: z.enum(["valid", "refusal"]),
    refusalReason: text.optional(),
  }),
} as const;

/** The types of events in a workflow run's log. */
export type WorkflowEventType = keyof typeof WORKFLOW_PAYLOADS;
/** The payload of each type of event in a workflow run's log. */
export type WorkflowPayloads = { [T in WorkflowEventType]: z.infer<(typeof WORKFLOW_PAYLOADS)[T]> };

/** The error code of a node whose model, or its provider, refused to answer. */
export const REFUSED = "envelope_refused_by_provider";

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
 * Returns a stored value as the workflow event that it is, once checked; unknown payload fields are kept. @throws
 * CoordinationError `EVENT_UNREADABLE` when its type is unknown or a field does not match
 */
export function decodeWorkflowEvent(value: unknown): WorkflowEvent {
  // The payload is looked at by itself, so that the same one is within bounds here and before it is appended.
  const { payload, ...envelopeFields } =
    typeof value === "object" && value !== null ? (value as { payload?: unknown }) : {};
  const envelope = parseBounded(envelopeSchema, envelopeFields, BOUNDS);
  if (!envelope.ok) throw createUnreadableEventError("event", describeProblems(envelope.problems));
  const { eventId, type } = envelope.value;
  if (!isWorkflowEventType(type))
    throw createUnreadableEventError(eventId, `unknown type ${JSON.stringify(type)}`);
  const problem = findPayloadProblem(type, payload);
  if (problem !== undefined) throw createUnreadableEventError(eventId, `payload of ${type}: ${problem}`);
  return value as WorkflowEvent;
}

/**
 * Returns why the payload of a workflow event is invalid, so that a log with it could not be read again; `undefined`
 * when it is valid.
 */
export function findPayloadProblem(type: WorkflowEventType, payload: unknown): string | undefined {
  const parsed = parseBounded(WORKFLOW_PAYLOADS[type] as z.ZodType, payload, BOUNDS);
  return parsed.ok ? undefined : describeProblems(parsed.problems);
}

function isWorkflowEventType(type: string): type is WorkflowEventType {
  return Object.hasOwn(WORKFLOW_PAYLOADS, type);
}
