/** Owns: what is read of a peer's answers. Fields that are not named here are let through unread. */
import { z } from "zod";
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { WORKFLOW_STATUSES } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type { PeerRunEnded } from "../../agents/coordination/ports/outbound.ts";

const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
/** Goes into paths; the two that are left out would lead elsewhere, and no path has half of a surrogate pair. */
const runId = name
  .refine((text) => text !== "." && text !== "..", "an id that paths can hold")
  .refine((text) => text.isWellFormed(), "whole Unicode characters");
const record = z.record(z.string(), z.unknown());
/** No more of an error than this is anybody's business here. */
const MESSAGE_CHARS_MAX = 2_000;
const errorObject = z.object({
  code: name,
  message: z
    .string()
    .default("")
    .transform((text) => text.slice(0, MESSAGE_CHARS_MAX) || "the peer says no more"),
});

const statusSchema = z.enum(WORKFLOW_STATUSES);

export const createdSchema = z.object({ runId, status: statusSchema });
export const cancelledSchema = z.object({ status: statusSchema });

const UNMET_MAX = 100;

export const snapshotSchema = z.object({
  runId,
  workflowId: name,
  status: statusSchema,
  variables: record.optional(),
  error: errorObject.nullish().catch(undefined),
  convergence: z
    .object({ goalSatisfied: z.boolean(), unmet: z.array(name).max(UNMET_MAX).catch([]) })
    .optional()
    .catch(undefined),
});
/** A run of a peer, as its host describes it. */
export type PeerSnapshot = z.output<typeof snapshotSchema>;

const crossHost = z.object({
  executionModel: z.object({ crossHostCausation: z.object({ hostId: name }) }),
});
export const discoverySchema = z.looseObject({
  multiAgent: crossHost.optional().catch(undefined),
  /** Where it was before it moved to the root. */
  capabilities: z.object({ multiAgent: crossHost }).optional().catch(undefined),
});

/** Only ends are read among the events of a page; the others need a place in the order. */
const eventSchema = z.object({
  sequence: z.int().min(0),
  type: z.string(),
  payload: z.unknown().optional(),
});
export const pageSchema = z.object({
  events: z.array(eventSchema),
  isComplete: z.boolean().optional(),
});
/** Events of a run of a peer, as its host returns them. */
export type PeerEventPage = z.output<typeof pageSchema>;
export type PeerEvent = PeerEventPage["events"][number];

const ENDS: Readonly<Record<string, PeerRunEnded["status"]>> = {
  "run.completed": "completed",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
};
const endPayload = z.object({
  outputs: record.optional().catch(undefined),
  error: errorObject.optional().catch(undefined),
});

/** Returns how a peer's run ended, from one of its events; `undefined` where the event does not end a run. */
export function readEndFromEvent(
  event: PeerEvent,
): (Omit<PeerRunEnded, "variables" | "outputs"> & Partial<Pick<PeerRunEnded, "outputs">>) | undefined {
  const status = Object.hasOwn(ENDS, event.type) ? ENDS[event.type] : undefined;
  if (status === undefined) return undefined;
  const { outputs, error } = endPayload.safeParse(event.payload).data ?? {};
  return {
    kind: "ended",
    status,
    ...(outputs !== undefined && { outputs }),
    ...(error !== undefined && { error }),
  };
}

/**
 * Returns how a peer's run ended, from its snapshot, for peers that show no events; `undefined` where it has not
 * ended.
 */
export function readEndFromSnapshot(snapshot: PeerSnapshot): PeerRunEnded | undefined {
  const { status, variables = {}, error } = snapshot;
  if (status !== "completed" && status !== "failed" && status !== "cancelled") return undefined;
  return {
    kind: "ended",
    status,
    outputs: variables,
    variables,
    ...(error && { error }),
    ...readUnmetGoals(snapshot),
  };
}

/**
 * Returns the goals that a peer's run did not meet before it gave up (RFC 0090 §C), as `unmet`; an empty record where
 * it met all or has none.
 */
export function readUnmetGoals({ convergence }: PeerSnapshot): Pick<PeerRunEnded, "unmet"> {
  return convergence?.goalSatisfied === false ? { unmet: convergence.unmet } : {};
}
