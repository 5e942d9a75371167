/** Owns: an attempt that this process drives: reading how the ledger has it now, and recording something of it. */
import type { Command } from "../../contracts/commands.ts";
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import type { Observation } from "../../contracts/observation.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { chooseRunner, type RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { SubmitOptions, SubmitResult } from "../log/run-log.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import { findNewestAttempt, type AttemptStarts } from "./prepare-attempt.ts";

export interface DrivenAttempt {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly starts: AttemptStarts;
}

/** An attempt in the hands of this process. */
export interface AttemptDrive extends DrivenAttempt {
  readonly dependencies: RuntimeDependencies;
  /** Aborted when the attempt is over for other reasons, or the coordinator stops. */
  readonly signal: AbortSignal;
  /** Resolves when this process does no more for the attempt. */
  readonly over: Promise<unknown>;
}

/** An attempt as the ledger has it now. */
export interface CurrentAttempt extends OpenStep {
  readonly attempt: Attempt;
  readonly runner: AgentRunner;
}

/** Reads the attempt as the ledger has it now; `undefined` once it is over. */
export async function readCurrentAttempt(drive: AttemptDrive): Promise<CurrentAttempt | undefined> {
  const { dependencies, runId, stepId, starts } = drive;
  const state = await dependencies.runs.state(runId);
  if (state.kind !== "open" || isAttemptOver(drive, state)) return undefined;
  const step = state.steps.get(stepId);
  const attempt = step && findNewestAttempt(state, step);
  if (!attempt) return undefined;
  const runner = chooseRunner(dependencies, step.spec);
  if (!isDelivery(step)) starts.atWork = { runner, attempt };
  return { state, step, attempt, runner };
}

/** True once the attempt has an outcome, or another one has taken its place. */
export function isAttemptOver({ stepId, attempt }: AttemptDrive, state: Coordination): boolean {
  const phase = state.kind === "open" ? state.steps.get(stepId)?.phase : undefined;
  const isAtWork = phase?.status === "dispatched" || phase?.status === "running";
  return !isAtWork || phase.attempt !== attempt;
}

/** Records something of the attempt. A refusal is logged: the attempt was over already. */
export async function submitOrLog(
  { dependencies, runId }: AttemptDrive,
  commands: readonly Command[],
  contents: readonly ContentInput[] = [],
  options: SubmitOptions = {},
): Promise<SubmitResult> {
  const submitted = await dependencies.runs.submit(runId, commands, contents, options);
  if (submitted.kind === "refused")
    dependencies.logger.info(
      { runId, refusal: submitted.code, command: commands[0]?.type },
      `refused: ${submitted.reason}`,
    );
  return submitted;
}

/** Records how the attempt ended. */
export function submitOutcome(
  drive: AttemptDrive,
  { commands, contents }: AttemptOutcome,
): Promise<SubmitResult> {
  return submitOrLog(drive, commands, contents);
}

/** Records that the host knows the agent of the attempt. */
export async function acknowledgeStart(
  drive: AttemptDrive,
  seen: Observation & { kind: "running" | "ended" },
): Promise<void> {
  const { stepId, attempt } = drive;
  const { childSessionKey, childRunId } = seen;
  await submitOrLog(drive, [
    { type: "acknowledgeStep", stepId, attempt, childSessionKey, childRunId, via: "reconciled" },
  ]);
}
