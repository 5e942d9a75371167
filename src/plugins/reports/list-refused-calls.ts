/** Owns: the calls that privileges refused, of a coordination and on its time axis. Does not own: how they read. */
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/log/coordination-view.ts";

export interface TimelineRefusal {
  readonly stepId: StepView["stepId"];
  readonly tool: string;
  readonly rule: RefusedCall["rule"];
  readonly resource?: string;
  readonly refusedMs: number;
}

export type RefusedCall = NonNullable<StepView["refusedCalls"]>[number];

/** Returns the number of tool calls that were refused to all of these steps. */
export function countRefusedToolCalls(steps: readonly StepView[]): number {
  return steps.reduce((sum, { refusedCalls = [] }) => sum + refusedCalls.length, 0);
}

/**
 * Returns the refused tool calls of all steps of a coordination in the order of time, each with the milliseconds since
 * the coordination was opened.
 */
export function listTimelineRefusals({ steps, createdAtMs }: CoordinationView): TimelineRefusal[] {
  return steps
    .flatMap(({ stepId, refusedCalls = [] }) =>
      refusedCalls.map(({ tool, rule, resource, atMs }) => ({
        stepId,
        tool,
        rule,
        ...(resource !== undefined && { resource }),
        refusedMs: Math.max(0, atMs - createdAtMs),
      })),
    )
    .sort((a, b) => a.refusedMs - b.refusedMs);
}
