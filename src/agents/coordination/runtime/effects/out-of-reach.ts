/**
 * Owns: what is recorded where a session was to be told something and its gateway did not come back in time
 * (`home-gateway.ts`): that it was not told.
 */
import type { Command } from "../../contracts/commands.ts";
import { createStepError } from "../../contracts/fact-fields.ts";
import type { Effect } from "../../dispatch/effects/next-effects.ts";
import type { RunStep } from "../../dispatch/effects/next-plan-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { chooseSession } from "../attempts/prepare-attempt.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/**
 * Records that an effect did not reach its session, which is in a gateway that did not come back: a telling as not
 * delivered, a step as failed; other effects record nothing. @throws CoordinationError as `RunLog.submit` does
 */
export async function recordSessionOutOfReach(
  dependencies: RuntimeDependencies,
  state: OpenCoordination,
  effect: Effect,
): Promise<void> {
  const commands = draftRecordsOfUntold(dependencies, state, effect);
  if (commands.length > 0) await dependencies.runs.submit(state.coordinationId, commands);
}

function draftRecordsOfUntold(
  dependencies: RuntimeDependencies,
  state: OpenCoordination,
  effect: Effect,
): readonly Command[] {
  if (effect.kind === "tellSession")
    return [{ type: "recordTelling", tellingId: effect.tellingId, delivery: "not_delivered" }];
  return effect.kind === "runStep" ? draftFailureOfUntold(dependencies, state, effect) : [];
}

function draftFailureOfUntold(
  dependencies: RuntimeDependencies,
  state: OpenCoordination,
  { stepId, attempt }: RunStep,
): readonly Command[] {
  const step = state.steps.get(stepId);
  if (!step) return [];
  const away = dependencies.homes?.nameAway(state) ?? "";
  // An attempt that the other gateway began may have reached the session.
  const isBegun = step.phase.attempt === attempt;
  const why = `the session is in gateway ${away}, which did not come back`;
  const error = createStepError(isBegun ? "child_lost" : "spawn_refused", why);
  const targetSession = chooseSession(dependencies, state, step, attempt);
  const failure: Command = { type: "failStep", stepId, attempt, error, cancelled: false, via: "deadline" };
  return isBegun ? [failure] : [{ type: "dispatchStep", stepId, attempt, targetSession }, failure];
}
