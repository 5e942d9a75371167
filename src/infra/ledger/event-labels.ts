/** Owns: the labels that an event brings, by which coordinations and their steps are found. */
import { DELIVERY_STEP_ID } from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";

/** `cause`: a coordination that this one followed from. */
export type LabelKind = "start" | "trace" | "session" | "agent" | "child" | "cause";

export interface Label {
  readonly kind: LabelKind;
  readonly value: string;
}

export function listLabels(event: RunEvent): Label[] {
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
      return withValue("child", event.payload.targetSession);
    case "step.acknowledged":
      return withValue("child", event.payload.childSessionKey);
    default:
      return [];
  }
}

type Opening = Extract<RunEvent, { type: "coordination.created" }>["payload"];

function listOpeningLabels({ ownerSession, ownerAgent, trace, parent, forkedFrom }: Opening): Label[] {
  return [
    { kind: "start", value: "" },
    { kind: "session", value: ownerSession },
    { kind: "agent", value: ownerAgent },
    ...withValue("trace", trace.traceId),
    ...withValue("cause", trace.causalRef),
    ...withValue("cause", parent?.coordinationId),
    ...withValue("cause", forkedFrom?.coordinationId),
  ];
}

function withValue(kind: LabelKind, value: string | undefined): Label[] {
  return value === undefined ? [] : [{ kind, value }];
}
