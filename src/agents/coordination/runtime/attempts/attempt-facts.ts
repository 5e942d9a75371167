/** Owns: what is to be known of an attempt before the host's word about it counts. */
import { createStepError, type StepError } from "../../contracts/fact-fields.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import type { Observation } from "../../contracts/observation.ts";
import { isPlanned, mustStopStep } from "../../dispatch/plan-rules.ts";
import type { OpenCoordination, Step } from "../../ledger/state.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { askWithin, type StoppableWait, type LimitedWait } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { OpenStep } from "../log/step-of-child.ts";

/** A host that has not answered by then has not answered. */
const ANSWER_MS_MAX = 10_000;

/** Returns what a runner observed of an attempt, or `unknown` where that is about the session of another one. */
export function filterObservation({ childSessionKey }: Attempt, seen: Observation): Observation {
  const isOther = "childSessionKey" in seen && seen.childSessionKey !== childSessionKey;
  return isOther ? { kind: "unknown" } : seen;
}

/** A deadline may leave less time than an answer may take. */
type ObservationWait = StoppableWait & Partial<Pick<LimitedWait, "waitMs">>;

/**
 * Asks the runner how an attempt stands, and returns that; `unknown` where the answer does not come in time or is
 * about another session.
 */
export async function observeAttempt(
  waiting: ObservationWait,
  { runner, attempt }: { readonly runner: AgentRunner; readonly attempt: Attempt },
): Promise<Observation> {
  const bounds = { ...waiting, waitMs: Math.min(waiting.waitMs ?? ANSWER_MS_MAX, ANSWER_MS_MAX) };
  const seen = await askWithin<Observation>(bounds, () => runner.observe(attempt), { kind: "unknown" });
  return filterObservation(attempt, seen);
}

/**
 * Returns the turn with the id of the run in which its session is told something, or `absent` or `unknown`. The runner
 * of owners knows it: where a crash took the first run, the session is told in another one. How that run goes and
 * whether it can be stopped, the runner of subagents knows.
 */
export async function findTellingRun(
  waiting: ObservationWait & Pick<RuntimeDependencies, "runners">,
  turn: Attempt,
): Promise<Attempt | "absent" | "unknown"> {
  const seen = await observeAttempt(waiting, { runner: waiting.runners.owner, attempt: turn });
  return "childRunId" in seen ? { ...turn, childRunId: seen.childRunId } : seen.kind;
}

/**
 * Returns the error of an attempt whose agent another gateway started, which is gone because this one drives the
 * attempt; `undefined` where no other gateway did.
 */
export function explainLostElsewhere(
  dependencies: Pick<RuntimeDependencies, "settings">,
  state: OpenCoordination,
  step: Step,
): StepError | undefined {
  const starter = findStarterGateway(dependencies, state, step);
  if (!isStartedElsewhere(dependencies, starter)) return undefined;
  return createStepError("child_lost", `the agent ran in gateway ${starter}, which is gone`);
}

/**
 * Returns the name of the gateway that started the agent of a step's newest attempt; for one at work without a record,
 * the gateway that the ledger was moved from, if it can be no other; else `undefined`.
 */
export function findStarterGateway(
  dependencies: Pick<RuntimeDependencies, "settings">,
  state: OpenCoordination,
  { phase }: Step,
): string | undefined {
  const recorded = "gateway" in phase ? phase.gateway : undefined;
  const isAtWork = phase.status === "dispatched" || phase.status === "running";
  return isAtWork ? inferStarterGateway(dependencies, state, recorded) : recorded;
}

/**
 * Returns the recorded gateway that started an agent, else the one that the ledger was moved from, where the
 * coordination names no gateway that opened it; `undefined` where neither is known. Earlier releases did not record it
 * for what a model spawned, also in coordinations that were opened after the move.
 */
export function inferStarterGateway(
  { settings: { movedFrom } }: Pick<RuntimeDependencies, "settings">,
  { created }: OpenCoordination,
  recorded: string | undefined,
): string | undefined {
  return recorded ?? (created.gateway === undefined ? movedFrom : undefined);
}

/** True when this gateway has a name and the known starter of an agent is another one. */
export function isStartedElsewhere(
  { settings }: Pick<RuntimeDependencies, "settings">,
  starter: string | undefined,
): starter is string {
  return settings.gateway !== undefined && starter !== undefined && starter !== settings.gateway;
}

/**
 * True when an attempt is past its deadline or is to be stopped because it or what it belongs to was cancelled or its
 * plan fails fast: whoever stops its agent then records how it ended, with what the agent and its plans used.
 */
export function isBeingStopped({ state, step }: OpenStep, now: EpochMs): boolean {
  if ("deadlineAtMs" in step.phase && now >= step.phase.deadlineAtMs) return true;
  return isPlanned(state)
    ? mustStopStep(state, step, now)
    : (state.cancelledBy ?? step.cancelledBy) !== undefined;
}

/**
 * True when the session of an attempt asked people and has not been told the answer yet. A question that was open before the
 * attempt began holds up nothing: the agent went on without its answer.
 */
export function isAwaitingAnswer(
  { openQuestions, escalations, tellings }: OpenCoordination,
  { childSessionKey: session, dispatchedAtMs }: Attempt,
): boolean {
  const isAsked = openQuestions.keySeq().some((id) => {
    const question = escalations.get(id);
    return (
      question?.cause === "agent" && question.askedBy === session && question.askedAtMs >= dispatchedAtMs
    );
  });
  return isAsked || tellings.some((telling) => telling.session === session && telling.of.kind === "answer");
}

/**
 * True when the owner of a plan is the agent of a running attempt in the coordination around it, which lasts until it
 * is told the result. False where the log around the plan is damaged.
 */
export async function isResultToldToAttempt(
  { runs }: Pick<RuntimeDependencies, "runs">,
  { created: { parent, ownerSession } }: OpenCoordination,
): Promise<boolean> {
  const around = parent && (await runs.state(parent.coordinationId).catch(ignoreDamage));
  if (around?.kind !== "open") return false;
  const stepId = around.children.get(ownerSession);
  return stepId !== undefined && around.steps.get(stepId)?.phase.status === "running";
}
