/** Owns: the ids of coordinations, steps, events, sessions and agents, and times: schemas, and how they are made. */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";

const declareId = () => z.string().min(1).max(BOUNDS.idCharsMax);

/** Names a coordination. It is also the OpenWOP `runId` of its log. */
export const coordinationIdSchema = z
  .string()
  .min(1)
  .max(BOUNDS.coordinationIdCharsMax)
  .brand<"CoordinationId">();
/** The id of a coordination; in OpenWOP the id of its run. */
export type CoordinationId = z.infer<typeof coordinationIdSchema>;

/** Names a step within one coordination. */
export const stepIdSchema = declareId().brand<"StepId">();
/** The id of a step, unique within its coordination. */
export type StepId = z.infer<typeof stepIdSchema>;

/** The step by which a plan's owner is told the result. Step ids of plans do not begin with `@`. */
export const DELIVERY_STEP_ID = "@delivery" as StepId;

/** The name under which the ledger keeps how far the export of spans came. */
export const SPAN_EXPORT = "otlp";

/** Stands for the owner's own session where claims and conflicts name a step. */
export const OWNER_STEP_ID = "@owner" as StepId;

/** Stands for whoever changed a resource without being a step of any coordination. */
export const OUTSIDE_STEP_ID = "@outside" as StepId;

/** Names an event of the ledger, unique over all coordinations: `coordinationId:sequence`. */
export const eventIdSchema = declareId().brand<"EventId">();
/** The id of an event, unique in the ledger. */
export type EventId = z.infer<typeof eventIdSchema>;

/** An OpenClaw session key, such as `agent:main:main` or `agent:main:subagent:<uuid>`. */
export const sessionKeySchema = z.string().min(1).max(BOUNDS.sessionKeyCharsMax).brand<"SessionKey">();
/** The key by which the host knows a session. */
export type SessionKey = z.infer<typeof sessionKeySchema>;

/** An OpenClaw agent id, such as `main`. */
export const agentIdSchema = z.string().min(1).max(BOUNDS.agentIdCharsMax).brand<"AgentId">();
/** The id of an agent of the host. */
export type AgentId = z.infer<typeof agentIdSchema>;

/** The name of a gateway: what several gateways with one ledger are told apart by. */
export const gatewayNameSchema = z
  .string()
  .max(BOUNDS.nameCharsMax)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/u);

/** `coordinationId:stepId:attempt` (QM2 3.4): a second dispatch with the same key is a replay, never new work. */
export type IdempotencyKey = string & { readonly __idempotencyKey: true };

/** Milliseconds since 1970-01-01T00:00:00Z. */
export const epochMsSchema = z.int().min(0).max(8_640_000_000_000_000).brand<"EpochMs">();
/** A time in milliseconds since 1970, UTC. */
export type EpochMs = z.infer<typeof epochMsSchema>;

/** Returns the key of a step's attempt, which is the same whenever that attempt is sent again. */
export function createIdempotencyKey(
  coordinationId: CoordinationId,
  stepId: StepId,
  attempt: number,
): IdempotencyKey {
  return `${coordinationId}:${stepId}:${attempt}` as IdempotencyKey;
}

/** Returns the id of the event at a place (`sequence`) of a coordination's log. */
export function createEventId(coordinationId: CoordinationId, sequence: number): EventId {
  return `${coordinationId}:${sequence}` as EventId;
}

/** The newest conversions: the events of an append carry one time, and converting it for each is a tenth of folding. */
let written = { atMs: Number.NaN, timestamp: "" };
let read = { atMs: Number.NaN, timestamp: "" };

/** Formats a time in ISO 8601, as `RunEvent.timestamp` carries it. */
export function formatTimestamp(atMs: EpochMs): string {
  if (written.atMs !== atMs) written = { atMs, timestamp: new Date(atMs).toISOString() };
  return written.timestamp;
}

/** Returns the time in milliseconds that a `RunEvent.timestamp` names; `NaN` for a text that is no time. */
export function epochMsOf(timestamp: string): EpochMs {
  if (read.timestamp !== timestamp) read = { atMs: Date.parse(timestamp), timestamp };
  return read.atMs as EpochMs;
}

/** Returns the time `durationMs` after `atMs`. */
export function addMs(atMs: EpochMs, durationMs: number): EpochMs {
  return (atMs + durationMs) as EpochMs;
}
