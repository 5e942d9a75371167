/** Owns: stopping the agent of an attempt with the plans that it submitted. */
import { addMs } from "../../contracts/ids.ts";
import type { Cancellation, Observation } from "../../contracts/observation.ts";
import type { SpentBudget } from "../../ledger/state.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { askWithin, limitWait, type StoppableWait } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { isStartedElsewhere, observeAttempt } from "./attempt-facts.ts";
import type { SubmittingAttempt } from "./attempt-use.ts";
import { CANCEL_MS_MAX, cancelNestedPlans, endNestedPlans, type NestedDependencies } from "./nested-plans.ts";
import { combineCancellations, stopToldTurns } from "./told-turns.ts";

/** How long the runner has at least to say how a stopped agent ended, because what it used counts. */
const LAST_ANSWER_MS = 1_000;

interface AgentToStop {
  readonly runner: AgentRunner;
  readonly attempt: Attempt;
  /** The gateway that started it, where several share the ledger. */
  readonly starter?: string | undefined;
  /** How long all of the stopping may take but for the last answer, at most and without a word 30 s. */
  readonly waitMs?: number;
}

interface StoppedAgent {
  /** `unreachable` where the agent may go on, also in a turn in which it is told something. */
  readonly cancelled: Cancellation;
  /** True where it ran in another gateway, which is gone: nobody can stop it, or ask what it used, any more. */
  readonly isLost: boolean;
  /** The answer of the runner about the agent after it was stopped. */
  readonly seen: Observation;
  /** The sum of what the plans used that the agent submitted. */
  readonly nested: SpentBudget;
}

/**
 * Stops the agent, the turns in which it is told something and the plans that it submitted, within a time, and returns
 * whether that worked, how the runner says it ended, and what its plans used. An agent that another gateway started is
 * not reached, only its plans are.
 */
export async function stopAgent(
  dependencies: NestedDependencies & StoppableWait & Pick<RuntimeDependencies, "runners" | "settings">,
  agent: AgentToStop,
  submitting: SubmittingAttempt,
): Promise<StoppedAgent> {
  await cancelNestedPlans(dependencies, submitting);
  const untilMs = addMs(dependencies.clock.now(), agent.waitMs ?? CANCEL_MS_MAX);
  const isLost = isStartedElsewhere(dependencies, agent.starter);
  if (isLost) {
    const nested = await endNestedPlans(limitWait(dependencies, untilMs), submitting);
    return { cancelled: "unreachable", isLost, seen: { kind: "unknown" }, nested };
  }
  const stop = (): Promise<Cancellation> => agent.runner.cancel(agent.attempt);
  const stopping = [
    askWithin<Cancellation>(limitWait(dependencies, untilMs), stop, "unreachable"),
    stopToldTurns(dependencies, submitting, untilMs),
  ];
  const cancelled = combineCancellations(await Promise.all(stopping));
  // Until then the child could submit another plan.
  const nested = await endNestedPlans(limitWait(dependencies, untilMs), submitting);
  const lastMs = addMs(dependencies.clock.now(), LAST_ANSWER_MS);
  const seen = await observeAttempt(limitWait(dependencies, lastMs > untilMs ? lastMs : untilMs), agent);
  return { cancelled, isLost, seen, nested };
}
