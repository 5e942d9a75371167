/** Owns: the envelope, the metadata on an instruction between agents, with its priorities, lanes and delivery modes. */
import { z } from "zod";
import { coordinationIdSchema, epochMsSchema, sessionKeySchema, stepIdSchema } from "./ids.ts";
import { BOUNDS } from "./bounds.ts";

/** All priorities, the lowest first. */
export const PRIORITIES = ["low", "normal", "high", "critical"] as const;
/** The schema of a priority. */
export const prioritySchema = z.enum(PRIORITIES);
/** How urgent a step is beside others of its lane. */
export type Priority = z.infer<typeof prioritySchema>;

/** The schema of a delivery mode. */
export const deliveryModeSchema = z.enum(["best_effort", "at_least_once"]);
/** How often a step may be delivered: at most once, or again until it is acknowledged. */
export type DeliveryMode = z.infer<typeof deliveryModeSchema>;

/** QM2 2.3: control carries plan and control messages, data carries work and results, escalation people's questions. */
export const laneSchema = z.enum(["control", "data", "escalation"]);
/** The command-queue lane of a message: control, data or escalation. */
export type Lane = z.infer<typeof laneSchema>;

/** The target of a spawn whose child session the host has not created yet. */
export const UNBOUND_TARGET = "unbound";

const traceRefSchema = z.string().min(1).max(BOUNDS.traceRefCharsMax);

/**
 * The metadata on every inter-agent instruction (QM2 3.1).
 *
 * An envelope describes; it does not authorise. The rights of a session follow from the ledger's record for
 * its session key (H3). `deadlineMs` and `createdAtMs` are epoch milliseconds.
 */
export const coordinationEnvelopeSchema = z.strictObject({
  coordinationId: coordinationIdSchema,
  stepId: stepIdSchema,
  parentStepId: stepIdSchema.optional(),
  sourceSession: sessionKeySchema,
  targetSession: sessionKeySchema,
  intent: z.enum(["execute", "report", "cancel", "escalate", "ack"]),
  priority: prioritySchema,
  deliveryMode: deliveryModeSchema,
  deadlineMs: epochMsSchema.optional(),
  createdAtMs: epochMsSchema,
  trace: z.strictObject({
    runId: traceRefSchema.optional(),
    spanId: traceRefSchema.optional(),
    causalRef: traceRefSchema.optional(),
  }),
});
/** The metadata that every spawn carries: ids, lane, priority, deadline and trace (QM2, section 3). */
export type CoordinationEnvelope = z.infer<typeof coordinationEnvelopeSchema>;
