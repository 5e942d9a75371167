/**
 * Owns: the shapes of the OpenWOP host's answers, for the OpenAPI document. Answers are not checked against them when they are
 * sent.
 */
import { z } from "zod";
import { WORKFLOW_STATUSES } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";

const record = z.record(z.string(), z.unknown());

const status = z.enum(WORKFLOW_STATUSES);

export const errorSchema = z.strictObject({
  error: z.string().min(1),
  message: z.string().min(1),
  details: record.optional(),
});

export const runStatusSchema = z.object({ runId: z.string(), status });

export const createdSchema = z.object({
  runId: z.string(),
  status,
  eventsUrl: z.string(),
  statusUrl: z.string(),
});

export const forkedSchema = z.object({
  runId: z.string(),
  sourceRunId: z.string(),
  fromSeq: z.int().min(0),
  mode: z.enum(["replay", "branch"]),
  status,
  eventsUrl: z.string(),
});

export const snapshotSchema = z.looseObject({
  runId: z.string(),
  workflowId: z.string(),
  status,
  currentNodeId: z.string().optional(),
  inputs: record.optional(),
  variables: record.optional(),
  error: z.object({ code: z.string(), message: z.string(), details: record.optional() }).optional(),
  startedAt: z.string().optional(),
  completedAt: z.string().optional(),
});

export const eventSchema = z.object({
  eventId: z.string(),
  runId: z.string(),
  sequence: z.int().min(0),
  type: z.string(),
  timestamp: z.string(),
  payload: z.unknown(),
  nodeId: z.string().optional(),
  causationId: z.string().optional(),
});

export const eventPageSchema = z.object({ events: z.array(eventSchema), isComplete: z.boolean() });

export const ancestrySchema = z.strictObject({
  runId: z.string(),
  hostId: z.string(),
  parent: z
    .strictObject({
      runId: z.string(),
      hostId: z.string(),
      cause: z.enum(["mcp-tool-call", "a2a-message", "core.subWorkflow", "core.dispatch"]),
      wellKnownUrl: z.string().optional(),
    })
    .nullable(),
});

export const resolvedSchema = z.object({
  runId: z.string(),
  nodeId: z.string(),
  interruptId: z.string(),
  status,
});

/** run-diff-response.schema.json. */
export const runDiffSchema = z.strictObject({
  a: z.string(),
  b: z.string(),
  divergedAtSeq: z.int().min(0).nullable(),
  eventDiffs: z.array(
    z.strictObject({
      seq: z.int().min(0),
      op: z.enum(["added", "removed", "changed"]),
      aEvent: record.optional(),
      bEvent: record.optional(),
    }),
  ),
  stateDiff: record,
  truncated: z.boolean().optional(),
});

/** suspend-request.schema.json. */
export const interruptSchema = z.strictObject({
  kind: z.string(),
  key: z.string(),
  data: record,
  resumeSchema: record.optional(),
});

export const anySchema = record;
