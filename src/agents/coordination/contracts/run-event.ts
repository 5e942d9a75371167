/**
 * Owns: the form of one event of a coordination's log, and decoding a stored one. Does not own: the payloads of facts
 * (`facts.ts`) and of OpenWOP events (`openwop-events.ts`).
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { createUnreadableEventError } from "./errors.ts";
import { FACT_PAYLOADS, type FactPayloads, type FactType } from "./facts.ts";
import { coordinationIdSchema, eventIdSchema, type CoordinationId, type EventId } from "./ids.ts";
import { OPENWOP_PAYLOADS, type OpenWopPayloads, type OpenWopType } from "./openwop-events.ts";
import { describeProblems, EVENT_BOUNDS, parseBounded } from "./validation.ts";

/** The OpenWOP event envelope (run-event.schema.json). `sequence` counts from 0 without a gap within one run. */
interface EventEnvelope {
  readonly eventId: EventId;
  readonly runId: CoordinationId;
  readonly sequence: number;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly nodeId?: string;
  /** The earlier event of the log that caused this one. */
  readonly causationId?: EventId;
}

type EventOf<T extends string, P> = EventEnvelope & { readonly type: T; readonly payload: P };

/** An event that the state is folded from. */
export type FactEvent = { [T in FactType]: EventOf<T, FactPayloads[T]> }[FactType];

/** An event that `project` derived from the fact before it. */
export type OpenWopEvent = { [T in OpenWopType]: EventOf<T, OpenWopPayloads[T]> }[OpenWopType];

/** One entry of the ledger. */
export type RunEvent = FactEvent | OpenWopEvent;

/** A fact as `decide` yields it, before it has a place in the log. */
export type FactDraft = { [T in FactType]: EventDraft<T, FactPayloads[T]> }[FactType];
/** An event of OpenWOP that has no place in a log yet. */
export type OpenWopDraft = { [T in OpenWopType]: EventDraft<T, OpenWopPayloads[T]> }[OpenWopType];
/** An event that has no place in a log yet. */
interface EventDraft<T, P> {
  readonly type: T;
  readonly payload: P;
  readonly nodeId?: string;
  readonly causationId?: EventId;
}

/** The payload schema of every event, by type. */
export const EVENT_PAYLOADS: Readonly<Record<RunEvent["type"], z.ZodType>> = {
  ...FACT_PAYLOADS,
  ...OPENWOP_PAYLOADS,
};

const eventEnvelopeSchema = z.object({
  eventId: eventIdSchema,
  runId: coordinationIdSchema,
  sequence: z.int().min(0),
  type: z.string().max(BOUNDS.idCharsMax),
  timestamp: z.iso.datetime().max(BOUNDS.timestampCharsMax),
  nodeId: z.string().min(1).max(BOUNDS.idCharsMax).optional(),
  causationId: eventIdSchema.optional(),
  payload: z.unknown(),
});

/** True when an event of a log is one of our facts, and not an OpenWOP event projected from one. */
export function isFact(event: RunEvent): event is FactEvent {
  return event.type in FACT_PAYLOADS;
}

/**
 * Returns a stored or received value as the event that it is, once checked; unknown payload fields are kept. @throws
 * CoordinationError `EVENT_UNREADABLE` when its type is unknown or a field does not match
 */
export function decodeEvent(value: unknown): RunEvent {
  const envelope = parseBounded(eventEnvelopeSchema, value, EVENT_BOUNDS);
  if (!envelope.ok) throw createUnreadableEventError("event", describeProblems(envelope.problems));
  const { eventId, type, payload } = envelope.value;
  if (!isEventType(type)) throw createUnreadableEventError(eventId, `unknown type ${JSON.stringify(type)}`);
  const parsed = parseBounded(EVENT_PAYLOADS[type], payload, EVENT_BOUNDS);
  if (!parsed.ok)
    throw createUnreadableEventError(eventId, `payload of ${type}: ${describeProblems(parsed.problems)}`);
  return value as RunEvent;
}

function isEventType(type: string): type is RunEvent["type"] {
  return Object.hasOwn(EVENT_PAYLOADS, type);
}
