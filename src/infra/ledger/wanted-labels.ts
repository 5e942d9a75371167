/** Owns: the labels that a filter asks for, and which of them few coordinations have. */
import type { LedgerFilter } from "../../agents/coordination/ports/ledger-queries.ts";
import type { LabelKind } from "./event-labels.ts";

export interface WantedLabel {
  readonly kind: LabelKind;
  readonly value: string;
}

/** Stands for a time that is not bounded. */
export const TIME_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Returns the labels that a filter asks for, ordered so that the one that fewest coordinations have comes first; empty
 * for a filter without any.
 */
export function listWantedLabels(filter: LedgerFilter): WantedLabel[] {
  const { childSession, cause, traceId, session, agent } = filter;
  const wanted: readonly (readonly [LabelKind, string | undefined])[] = [
    ["child", childSession],
    ["cause", cause && cause.eventId === undefined ? cause.coordinationId : undefined],
    ["trace", traceId],
    ["session", session],
    ["agent", agent],
  ];
  return wanted.flatMap(([kind, value]) => (value === undefined ? [] : [{ kind, value }]));
}

/**
 * Returns whether only few coordinations have labels of this kind; not so for a session or an agent, which may have
 * most of the ledger.
 */
export function isRareLabel({ kind }: WantedLabel): boolean {
  return kind === "child" || kind === "cause" || kind === "trace";
}
