/** Owns: how a coordination is listed and found: its summary, its references, and whose it is among gateways. */
import type { ContentRef, ForkedFrom } from "./fact-fields.ts";
import type { TerminalStatus } from "./facts.ts";
import type { EpochMs, SessionKey, StepId } from "./ids.ts";

/** The status of a coordination: running, or how it ended. */
export type CoordinationStatus = "running" | TerminalStatus;

/** A coordination as `list` shows it, kept beside the log so that listing folds nothing. */
export interface Summary {
  readonly status: CoordinationStatus;
  readonly ownerSession: SessionKey;
  readonly objective: ContentRef;
  readonly createdAtMs: EpochMs;
  readonly steps: { readonly total: number; readonly open: number; readonly failed: number };
  /** Usage of its model calls; absent until one was reported. */
  readonly usage?: { readonly tokens: number; readonly costMicroUsd: number };
  /** The source of a fork. */
  readonly forkedFrom?: ForkedFrom;
  /** The gateway that opened it, where several share the ledger. */
  readonly gateway?: string;
}

/** A session, and the gateway that it is in where several share the ledger: each may have one of the same key. */
export interface PlacedSession {
  readonly session: SessionKey;
  readonly gateway: string | undefined;
}

/** Whose a coordination is, and the gateway that opened it. */
export interface OwnerPlace {
  readonly ownerSession: SessionKey;
  readonly gateway?: string | undefined;
}

/** Which gateway this process is, where several share the ledger. */
export interface GatewayPlace {
  /** Its name. Absent: this is the only gateway, or the sessions of all are meant. */
  readonly gateway?: string | undefined;
  /** The gateway whose own ledger this one was: what names no gateway was opened there. */
  readonly movedFrom?: string | undefined;
}

/** True when a session of this gateway owns a coordination: it has the owner's key, and this gateway opened it. */
export function isOwnedBy(opening: OwnerPlace, session: SessionKey, here: GatewayPlace): boolean {
  return opening.ownerSession === session && isOpenedIn(opening, here);
}

/**
 * True when the owner has the key of a session but lives in another gateway, which opened the coordination: the
 * session here that has the same key is another one.
 */
export function isOwnerElsewhere(opening: OwnerPlace, session: SessionKey, here: GatewayPlace): boolean {
  return opening.ownerSession === session && !isOpenedIn(opening, here);
}

/** True when this gateway opened the coordination or has no name, or no gateway is known to have opened it. */
export function isOpenedIn(opening: OwnerPlace, here: GatewayPlace): boolean {
  return nameGatewayAway(opening, here) === undefined;
}

/**
 * Returns the name of the other gateway that opened the coordination; `undefined` where this one did, has no name, or
 * where the opening named none and the ledger was not moved.
 */
export function nameGatewayAway(
  opening: Pick<OwnerPlace, "gateway">,
  { gateway, movedFrom }: GatewayPlace,
): string | undefined {
  const home = opening.gateway ?? movedFrom;
  return gateway === undefined || home === gateway ? undefined : home;
}

/** A name under which a coordination, or one step of it, can be found. The newest holder of a name wins. */
export interface Reference {
  readonly name: string;
  readonly stepId?: StepId;
}

/** The reference that every coordination with conflicts holds, once for each. */
export const CONFLICTS_NAME = "conflicts";

/** The coordinations with children that did not run as they were asked. */
export const MISMATCHES_NAME = "mismatches";

/** The coordinations in which calls were refused by the privileges of their sessions. */
export const REFUSED_CALLS_NAME = "refused_calls";

/** The coordinations in which people were asked something. */
export const QUESTIONS_NAME = "questions";
