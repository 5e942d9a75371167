/**
 * Owns: asking the checks of a held result, and recording what they find. May be cut off at any line: the checks that have not
 * answered are asked again.
 *
 * G1 a check that hangs, throws, is not there or rules on something else has given no verdict, and that is recorded.
 */
import type { Command } from "../../contracts/commands.ts";
import type { GatesConfig } from "../../contracts/config/gates-config.ts";
import type { EpochMs, StepId } from "../../contracts/ids.ts";
import {
  checkAnswerSchema,
  createNoVerdict,
  findingSchema,
  type Check,
  type StepVerify,
} from "../../contracts/verification.ts";
import { findHeldStep, type HeldStep } from "../../dispatch/decide-held.ts";
import type { VerifyResult } from "../../dispatch/effects/gate-effects.ts";
import { isPlanned } from "../../dispatch/plan-rules.ts";
import { convertToBasisPointsDown } from "../../gates/stated-confidence.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { CompiledStep } from "../../plan/step-graph.ts";
import type { CheckAnswer, VerifiedResult } from "../../ports/verifier.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { readHeldResult } from "./held-result.ts";

export interface VerifyDependencies extends RuntimeDependencies {
  /** Aborted when the coordinator stops. */
  readonly stopping: AbortSignal;
}

/**
 * Runs all checks of a held result at once until its deadline, and records what each says; does nothing where the
 * result is not held any more. Where its text is not kept any more, that is recorded for all checks.
 */
export async function verifyResult(
  dependencies: VerifyDependencies,
  { coordinationId }: OpenCoordination,
  { stepId, attempt, checks }: VerifyResult,
): Promise<void> {
  // The checked text is on disk with the fact that it is held.
  const heldResult = await dependencies.runs.findOnDisk(coordinationId, (current) => {
    const step = current.kind === "open" ? findHeldStep(current, stepId) : undefined;
    return current.kind === "open" && step?.phase.attempt === attempt ? { state: current, step } : undefined;
  });
  if (!heldResult) return;
  const { state, step } = heldResult;
  const task = (await findPlannedStep(dependencies, state, stepId))?.task;
  const result = await readHeldResult(dependencies, state, { step, task });
  if (!result) return recordNothingToCheck(dependencies, state, { step, checks });
  const untilMs = step.phase.verifyByMs ?? dependencies.clock.now();
  const over = new AbortController();
  const asking = { dependencies, state, result, untilMs, over };
  await Promise.all(checks.map((key) => runCheck(asking, key)));
}

/** Records that no check gave a verdict, because the text is not kept: what is not there passes no check (G1). */
async function recordNothingToCheck(
  dependencies: VerifyDependencies,
  { coordinationId }: OpenCoordination,
  { step, checks }: { readonly step: HeldStep; readonly checks: readonly string[] },
): Promise<void> {
  const { attempt, target } = step.phase;
  const { stepId } = step.spec;
  const about = { stepId, attempt, target, because: "unavailable" } as const;
  const commands = checks.map((check): Command => ({ type: "recordNoVerdict", ...about, check }));
  dependencies.logger.warn(
    { runId: coordinationId, stepId },
    "a result cannot be checked: its text is not kept",
  );
  for (const command of commands) await dependencies.runs.submit(coordinationId, [command]);
}

/** The verification of one held result, whose checks are asked for at once. */
interface ResultVerification {
  readonly dependencies: VerifyDependencies;
  readonly state: OpenCoordination;
  readonly result: VerifiedResult;
  readonly untilMs: EpochMs;
  /** Aborted once nobody waits for verdicts any more. */
  readonly over: AbortController;
}

async function runCheck(asking: ResultVerification, key: string): Promise<void> {
  const { dependencies, state, result, over } = asking;
  const answer = await awaitCheckAnswer(asking, key);
  if (dependencies.stopping.aborted) return;
  const submitted = await dependencies.runs.submit(state.coordinationId, [
    createVerdictCommand(result, key, answer),
  ]);
  if (answer.kind === "none")
    dependencies.logger.warn(
      { runId: state.coordinationId, stepId: result.stepId, check: key, because: answer.because },
      `a check gave no verdict: ${answer.message}`,
    );
  const isHeld = submitted.state.kind === "open" && submitted.state.held.has(result.stepId);
  if (!isHeld) over.abort();
}

async function awaitCheckAnswer(asking: ResultVerification, key: string): Promise<CheckAnswer> {
  const { dependencies, result, untilMs, over } = asking;
  const late = new AbortController();
  const cancel = dependencies.clock.wakeAt(untilMs, () => late.abort());
  const signal = AbortSignal.any([late.signal, over.signal, dependencies.stopping]);
  const waiting = { ...dependencies, waitMs: Math.max(1, untilMs - dependencies.clock.now()), signal };
  const request = { key, result, deadlineAtMs: untilMs, signal };
  try {
    const answer = await askWithin<CheckAnswer | undefined>(
      waiting,
      () => askCheck(asking, request),
      undefined,
    );
    if (answer) return answer;
    const isLate = late.signal.aborted || dependencies.clock.now() >= untilMs;
    return createNoVerdict(isLate ? "timed_out" : "failed", "no answer");
  } finally {
    cancel();
    late.abort();
  }
}

async function askCheck(
  asking: ResultVerification,
  request: {
    readonly key: string;
    readonly result: VerifiedResult;
    readonly deadlineAtMs: EpochMs;
    readonly signal: AbortSignal;
  },
): Promise<CheckAnswer> {
  const { dependencies, state } = asking;
  const { key, result } = request;
  if (key.startsWith("plugin:")) return dependencies.pluginGates.verify(request);
  const gates = dependencies.policies?.find(state.created.policy)?.gates ?? dependencies.gates;
  const check = await findCheck(asking, { key, result, verifiers: gates.verifiers });
  if (!check) return createNoVerdict("unavailable", "nobody defines this check");
  const { critic, allowSelfVerification: allowSelf } = gates;
  const verifier = await dependencies.verifier();
  return verifier.check({ ...request, check, allowSelf, ...(critic && { critic }) });
}

/**
 * Finds the operator's check of that key, else the one that the plan states, which cannot take the place of an
 * operator's; `undefined` where nobody defines it.
 */
async function findCheck(
  { dependencies, state }: ResultVerification,
  {
    key,
    result,
    verifiers,
  }: {
    readonly key: string;
    readonly result: VerifiedResult;
    readonly verifiers: GatesConfig["verifiers"];
  },
): Promise<Check | undefined> {
  if (Object.hasOwn(verifiers, key)) return verifiers[key];
  const checks = await readStatedChecks(dependencies, state, result);
  const stated = Object.hasOwn(checks, key) ? checks[key] : undefined;
  return stated === true ? undefined : stated;
}

async function readStatedChecks(
  dependencies: VerifyDependencies,
  state: OpenCoordination,
  { stepId }: VerifiedResult,
): Promise<NonNullable<StepVerify["checks"]>> {
  return (await findPlannedStep(dependencies, state, stepId))?.verify?.checks ?? {};
}

async function findPlannedStep(
  { plans }: VerifyDependencies,
  state: OpenCoordination,
  stepId: StepId,
): Promise<CompiledStep | undefined> {
  const isOfPlan = isPlanned(state) && state.steps.get(stepId)?.spec.planned !== undefined;
  return isOfPlan ? (await plans.graphOf(state)).stepOf.get(stepId) : undefined;
}

const MALFORMED = createNoVerdict("malformed", "the answer is none");

/** Turns a check's answer into a command. The answer may come from another plugin, so nothing is taken on trust. */
function createVerdictCommand(
  { stepId, attempt, target, agentId }: VerifiedResult,
  key: string,
  checkAnswer: CheckAnswer,
): Command {
  const about = { stepId, attempt, target };
  const answer = checkAnswerSchema.safeParse(checkAnswer).data ?? MALFORMED;
  if (answer.kind === "none")
    return { type: "recordNoVerdict", ...about, check: key, because: answer.because };
  const { verdict, criteria, confidence } = answer;
  const finding = findingSchema.safeParse({
    check: key,
    agentId: answer.agentId,
    verdict,
    ...(criteria.length > 0 && { criteria: [...new Set(criteria)] }),
    ...(confidence !== undefined && { confidence: convertToBasisPointsDown(confidence) }),
    ...(answer.agentId === `agent:${agentId}` && { self: true }),
  });
  return finding.success
    ? { type: "recordFinding", ...about, finding: finding.data }
    : { type: "recordNoVerdict", ...about, check: key, because: "malformed" };
}
