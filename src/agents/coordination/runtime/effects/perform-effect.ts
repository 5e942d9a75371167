/** Owns: which function performs each effect of `planDispatch`. Every one may be cut off at any line and done again. */
import { isAtWorkForHost } from "../../dispatch/effects/followed-steps.ts";
import type { TellSession } from "../../dispatch/effects/gate-effects.ts";
import type { Effect } from "../../dispatch/effects/next-effects.ts";
import type { RunStep } from "../../dispatch/effects/next-plan-effects.ts";
import { isPlanned, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { verifyResult } from "../held-results/verify-result.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import { notifyPeople } from "../questions/notify-people.ts";
import { tellSession } from "../questions/tell-session.ts";
import { mergeWorktree } from "../worktrees/merge-worktree.ts";
import { removeWorktree } from "../worktrees/remove-worktree.ts";
import { submitCommand, type EffectDependencies } from "./performer-dependencies.ts";
import { askHost, endCoordination, stopObserved } from "./perform-spawn-effect.ts";
import { admitSteps, recordJudgement, stopStep, stopStray } from "./perform-plan-effect.ts";

/** The dispatcher drives the attempts of a plan itself. */
export type PerformedEffect = Exclude<Effect, RunStep>;

type Performer<Performed, State = OpenCoordination> = (
  dependencies: EffectDependencies,
  state: State,
  effect: Performed,
) => Promise<void>;

const PERFORMERS: {
  readonly [Kind in PerformedEffect["kind"]]: Performer<Extract<PerformedEffect, { kind: Kind }>>;
} = {
  askHost: (dependencies, state, effect) =>
    dependencies.lanes.operate("question", () => askHost(dependencies, state, effect)),
  stopObserved: (dependencies, state, effect) =>
    dependencies.lanes.operate("stop", () => stopObserved(dependencies, state, effect)),
  closeReview: (dependencies, state, { conflictId }) =>
    submitCommand(dependencies, state, { type: "settleReview", conflictId, answer: "unanswered" }),
  endCoordination,
  verifyResult,
  expireQuestion: (dependencies, state, { escalationId }) =>
    submitCommand(dependencies, state, { type: "expireEscalation", escalationId }),
  notifyPeople,
  tellSession: async (dependencies, state, effect) => {
    if (!(await isAtWorkElsewhere(dependencies, state, effect)))
      await tellSession(dependencies, state, effect);
  },
  admitSteps: createPlanPerformer(admitSteps),
  skipSteps: (dependencies, state, { stepIds }) =>
    submitCommand(dependencies, state, { type: "skipSteps", stepIds }),
  judgePlan: createPlanPerformer(recordJudgement),
  tripBreaker: (dependencies, state) => submitCommand(dependencies, state, { type: "tripBreaker" }),
  stopStep: createPlanPerformer(stopStep),
  stopStray: createPlanPerformer(stopStray),
  mergeWorktree: createPlanPerformer(mergeWorktree),
  removeWorktree: createPlanPerformer(removeWorktree),
};

/**
 * Performs a planned effect of a coordination by the effect's kind. Resolves when it is done, with its outcome
 * recorded where it has one.
 */
export function performEffect(
  dependencies: EffectDependencies,
  state: OpenCoordination,
  effect: PerformedEffect,
): Promise<void> {
  const perform = PERFORMERS[effect.kind] as Performer<PerformedEffect>;
  return perform(dependencies, state, effect);
}

/** Returns a performer that acts on plans only. */
function createPlanPerformer<Performed>(
  perform: Performer<Performed, PlannedCoordination>,
): Performer<Performed> {
  return async (dependencies, state, effect) => {
    if (isPlanned(state)) await perform(dependencies, state, effect);
  };
}

/** True while the session is at work as a child of another coordination. Appends there have this one looked at again. */
async function isAtWorkElsewhere(
  dependencies: EffectDependencies,
  { coordinationId, tellings }: OpenCoordination,
  { tellingId }: TellSession,
): Promise<boolean> {
  const telling = tellings.get(tellingId);
  const found = telling && (await findStepOfChild(dependencies, telling.session));
  if (found?.state.kind !== "open" || !isAtWorkForHost(found.step)) return false;
  dependencies.lookAfter(coordinationId, found.state.coordinationId);
  return true;
}
