/** Owns: the labels that an event brings, by which coordinations and their steps are found. */
import { DELIVERY_STEP_ID } from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";

/** `cause`: a coordination that this one followed from. */
export type LabelKind = "start" | "trace" | "session" | "agent" | "child" | "cause";

export interface Label {
  readonly kind: LabelKind;
  readonly value: string;
}

/**
 * Returns the labels (session, agent, child session and the like) under which an event's coordination or step can be
 * found; empty for most types of events, and for events about delivering a plan's result.
 */
export function listEventLabels(event: RunEvent): Label[] {
  // The owner of a plan is told its result as a step, but is no child.
  if (event.nodeId === DELIVERY_STEP_ID) return [];
  switch (event.type) {
    case "coordination.created":
      return listOpeningLabels(event.payload);
    case "step.admitted":
      return [
        { kind: "session", value: event.payload.sourceSession },
        { kind: "agent", value: event.payload.agentId },
      ];
    case "step.dispatched":
      return listLabelIfKnown("child", event.payload.targetSession);
    case "step.acknowledged":
      return listLabelIfKnown("child", event.payload.childSessionKey);
    default:
      return [];
  }
}

/** The payload of the fact that opened the coordination. */
type CreatedPayload = Extract<RunEvent, { type: "coordination.created" }>["payload"];

function listOpeningLabels({ ownerSession, ownerAgent, trace, parent, forkedFrom }: CreatedPayload): Label[] {
  return [
    { kind: "start", value: "" },
    { kind: "session", value: ownerSession },
    { kind: "agent", value: ownerAgent },
    ...listLabelIfKnown("trace", trace.traceId),
    ...listLabelIfKnown("cause", trace.causalRef),
    ...listLabelIfKnown("cause", parent?.coordinationId),
    ...listLabelIfKnown("cause", forkedFrom?.coordinationId),
  ];
}

/** Returns one label, or none where the value is unknown. */
function listLabelIfKnown(kind: LabelKind, value: string | undefined): Label[] {
  return value === undefined ? [] : [{ kind, value }];
}
