/** Owns: a coordination as rows on one time axis, children behind their parents. Does not own: how it is drawn. */
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/coordination-view.ts";
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";

type Shared = "stepId" | "parentStepId" | "name" | "agentId" | "lane" | "status" | "attempt";

export interface TimelineRow extends Pick<StepView, Shared> {
  /** 0 for a step of the owner, 1 for a step of such a step's child, and so on. */
  readonly depth: number;
  /** From the start of the coordination, as are all `...Ms` but durations. */
  readonly startMs: number;
  /** When the host confirmed the child, where that is known. */
  readonly acknowledgedMs?: number;
  /** Of an open step: until now. */
  readonly durationMs: number;
}

export interface Timeline extends Pick<CoordinationView, "coordinationId" | "status"> {
  readonly startedAtMs: EpochMs;
  readonly endedAtMs?: EpochMs;
  readonly durationMs: number;
  readonly rows: readonly TimelineRow[];
}

export function timelineOf(view: CoordinationView, now: EpochMs): Timeline {
  const { coordinationId, status, createdAtMs, endedAtMs } = view;
  const untilMs = endedAtMs ?? latest(view, now);
  const rows = inTreeOrder(view.steps).map(({ step, depth }) =>
    rowOf(step, { depth, startedAtMs: createdAtMs, untilMs }),
  );
  return {
    coordinationId,
    status,
    startedAtMs: createdAtMs,
    ...(endedAtMs !== undefined && { endedAtMs }),
    durationMs: Math.max(0, untilMs - createdAtMs),
    rows,
  };
}

/** A reader's clock may be behind the gateway's. */
function latest({ steps, createdAtMs }: CoordinationView, now: EpochMs): number {
  return steps.reduce(
    (last, { admittedAtMs, endedAtMs }) => Math.max(last, endedAtMs ?? admittedAtMs),
    Math.max(now, createdAtMs),
  );
}

function rowOf(
  step: StepView,
  at: { readonly depth: number; readonly startedAtMs: number; readonly untilMs: number },
): TimelineRow {
  const { stepId, parentStepId, name, agentId, lane, status, attempt, acknowledgedAtMs } = step;
  const beganAtMs = step.dispatchedAtMs ?? step.admittedAtMs;
  return {
    stepId,
    ...(parentStepId && { parentStepId }),
    depth: at.depth,
    ...(name && { name }),
    agentId,
    lane,
    status,
    attempt,
    startMs: Math.max(0, beganAtMs - at.startedAtMs),
    ...(acknowledgedAtMs !== undefined && { acknowledgedMs: Math.max(0, acknowledgedAtMs - at.startedAtMs) }),
    durationMs: step.durationMs ?? Math.max(0, (step.endedAtMs ?? at.untilMs) - beganAtMs),
  };
}

interface Placed {
  readonly step: StepView;
  readonly depth: number;
}

function inTreeOrder(steps: readonly StepView[]): Placed[] {
  const known = new Set(steps.map(({ stepId }) => stepId));
  const children = Map.groupBy(steps, ({ parentStepId }) =>
    parentStepId && known.has(parentStepId) ? parentStepId : undefined,
  );
  const placed: Placed[] = [];
  const pending: Placed[] = (children.get(undefined) ?? []).map((step) => ({ step, depth: 0 })).reverse();
  for (let next = pending.pop(); next; next = pending.pop()) {
    placed.push(next);
    const { step, depth } = next;
    for (const child of (children.get(step.stepId) ?? []).toReversed())
      pending.push({ step: child, depth: depth + 1 });
  }
  return placed;
}
