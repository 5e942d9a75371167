/** Owns: recording what an agent had completed before it could be stopped. */
import type { Observation } from "../../contracts/observation.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import type { StoppableWait } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { isAwaitingAnswer } from "./attempt-facts.ts";
import { readNewestOutcome } from "./attempt-outcome.ts";
import { readEndAfterPlan, type AgentWithPlans } from "./nested-plans.ts";

/** An attempt whose agent was stopped, and its open step. */
interface StoppedAttempt extends OpenStep {
  readonly running: Attempt;
}

/**
 * Returns true once it has recorded that the agent had completed before it could be stopped; false, with nothing
 * recorded, where it had not, or still waits for an answer or the end of its plan.
 */
export async function recordCompletion(
  waiting: RuntimeDependencies & StoppableWait,
  stopped: StoppedAttempt,
  { agent, seen }: { readonly agent: AgentWithPlans; readonly seen: Observation },
): Promise<boolean> {
  if (seen.kind !== "ended" || seen.outcome !== "completed") return false;
  const ending = await readEndAfterPlan(waiting, agent, seen);
  if (ending?.outcome !== "completed") return false;
  const readAttempt = (): Promise<OpenStep | undefined> => readStoppedAttempt(waiting, stopped);
  const { state } = (await readAttempt()) ?? stopped;
  if (isAwaitingAnswer(state, stopped.running)) return false;
  const { commands, contents } = await readNewestOutcome(waiting, { current: stopped, readAttempt }, ending);
  await waiting.runs.submit(stopped.state.coordinationId, commands, contents);
  return true;
}

/** Reads a stopped attempt as the ledger has it now: its agent may have reported, or asked, while it was stopped. */
async function readStoppedAttempt(
  { runs }: Pick<RuntimeDependencies, "runs">,
  { state: before, step: { spec, phase } }: StoppedAttempt,
): Promise<OpenStep | undefined> {
  const state = await runs.state(before.coordinationId);
  const step = state.kind === "open" ? state.steps.get(spec.stepId) : undefined;
  return state.kind === "open" && step?.phase.attempt === phase.attempt ? { state, step } : undefined;
}
