/** Owns: the history under another policy: its state, and the steps and sessions that are parted from the record. */
import type { EpochMs, SessionKey, StepId } from "../contracts/ids.ts";
import type { Coordination, Step } from "../ledger/state.ts";
import type { ReplayedDecision } from "./replay-log.ts";
import { applyPolicyToState, type AppliedPolicy } from "./under-policy.ts";

/** A decision that would have been another one. */
export interface DivergencePoint {
  readonly sequence: number;
  readonly stepId?: string;
  readonly resource?: string;
  readonly decided: string;
  readonly would: string;
  readonly why: string;
  /**
   * `differs`: by the policy alone. `follows`: because of a difference before it. `unknown`: what it would follow from is not recorded;
   * it is taken as it was.
   */
  readonly certainty: "differs" | "follows" | "unknown";
}

/** Why the record of a step is no evidence any more in another history. */
export interface PartedStep {
  readonly why: string;
  /** Its fate is another one; it may come to be the same again. Else its work is. */
  readonly byFate: boolean;
}

/** A history under another policy, as far as it has come, and where it differs from the record. */
export interface AlternativeHistory {
  state: Coordination;
  readonly parted: Map<StepId, PartedStep>;
  /** Sessions whose agents saw, or did not see, something else than is recorded. */
  readonly sessions: Set<SessionKey>;
  readonly points: DivergencePoint[];
  leftOut: number;
  now: EpochMs;
  /** Questions that were not asked then. */
  asked: number;
}

/** Creates the history that begins as the recorded one, under another policy. */
export function createAlternativeHistory(before: Coordination, under: AppliedPolicy): AlternativeHistory {
  return {
    state: before.kind === "open" ? applyPolicyToState(before, under) : before,
    parted: new Map(),
    sessions: new Set(),
    points: [],
    leftOut: 0,
    now: 0 as EpochMs,
    asked: 0,
  };
}

/** Parts a step from the record, with the session that its result goes to; one that was parted before stays as it is. */
export function splitStep(world: AlternativeHistory, stepId: StepId, parted: PartedStep): void {
  if (world.parted.has(stepId)) return;
  world.parted.set(stepId, parted);
  const { state } = world;
  if (state.kind !== "unopened" && !parted.byFate) splitSession(world, state, state.steps.get(stepId));
}

/** Parts a session from the record: a spawn returns to it, so everything it did afterwards had another reason. */
export function splitSession(world: AlternativeHistory, state: Coordination, step: Step | undefined): void {
  if (!step || step.spec.planned || state.kind === "unopened") return;
  const { sourceSession } = step.spec;
  if (world.sessions.has(sourceSession)) return;
  world.sessions.add(sourceSession);
  const parent = state.children.get(sourceSession);
  if (parent) splitStep(world, parent, { why: `saw another result of ${step.spec.stepId}`, byFate: false });
}

/** Notes where the history differs, at the event that begins the recorded decision. */
export function notePoint(
  world: AlternativeHistory,
  { facts: [{ sequence }] }: ReplayedDecision,
  point: Omit<DivergencePoint, "sequence">,
): void {
  world.points.push({ sequence, ...point });
}
