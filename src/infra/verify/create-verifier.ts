/**
 * Owns: carrying out checks. Does not own: which are asked, and what follows from their answers.
 *
 * 1. An answer comes when the time is over at the latest, whatever a program, a model or a file does; a program gets a moment
 *    more, in which it is killed.
 * 2. Nothing passes or fails because it could not be looked at: then there is no verdict.
 * 3. A result is data: nothing of it becomes a program, an argument, a path or an instruction.
 * 4. Messages and log lines are free of content.
 */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import type { AgentId } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { ModelClient } from "../../agents/coordination/ports/model-client.ts";
import type { OutputContract } from "../../agents/coordination/ports/output-contract.ts";
import type { CheckAnswer, CheckRequest, Verifier } from "../../agents/coordination/ports/verifier.ts";
import { checkCommand } from "./check-command.ts";
import { checkFile } from "./check-file.ts";
import { checkModel } from "./check-model.ts";
import { checkPattern } from "./check-pattern.ts";
import { checkOutputsBySchema } from "./check-schema.ts";
import { runCheckInTime } from "./in-time.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

export interface VerifierDependencies {
  /** Absent: there is no critic to ask. */
  readonly model?: ModelClient;
  /** Called with the first check that needs it. */
  readonly contract: () => Promise<OutputContract>;
  /** The folder that an agent works in where its result names none, as an absolute path. */
  readonly workspaceOf: (agent: AgentId) => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Creates the verifier that carries out the checks of a gate on a step's result within their time, and logs a warning
 * for each that has no verdict.
 */
export function createVerifier(dependencies: VerifierDependencies): Verifier {
  return {
    check: async (request) => {
      const answer = await answerInTime(request, dependencies);
      if (answer.kind === "none") logMissingVerdict(dependencies.logger, request, answer);
      return answer;
    },
  };
}

/** Carries out a check within its time. Whatever throws becomes an answer without a verdict. */
async function answerInTime(request: CheckRequest, dependencies: VerifierDependencies): Promise<CheckAnswer> {
  const graceMs = request.check.kind === "command" ? VERIFY_LIMITS.stopMs : 0;
  try {
    return await runCheckInTime(request, { clock: dependencies.clock, graceMs }, (signal) =>
      carryOutCheck(request, dependencies, signal),
    );
  } catch {
    return createNoVerdict("failed", "the check could not be carried out");
  }
}

/** Carries out a check by its kind. `async`, so that what throws at once rejects. */
async function carryOutCheck(
  request: CheckRequest,
  dependencies: VerifierDependencies,
  signal: AbortSignal,
): Promise<CheckAnswer> {
  const { check, result } = request;
  switch (check.kind) {
    case "schema":
      return checkOutputsBySchema(check, request, dependencies.contract);
    case "pattern":
      return checkPattern(check, request);
    case "file":
      return checkFile(check, request, {
        path: result.folder ?? dependencies.workspaceOf(result.agentId),
        signal,
      });
    case "command":
      return checkCommand(check, request, { signal, clock: dependencies.clock, logger: dependencies.logger });
    case "model":
      return checkModel(check, request, { ...dependencies, signal });
  }
}

function logMissingVerdict(
  logger: Logger,
  { key, result: { coordinationId, stepId, attempt } }: CheckRequest,
  { because, message }: Extract<CheckAnswer, { readonly kind: "none" }>,
): void {
  logger.warn({ runId: coordinationId, stepId, attempt, check: key, because }, `no verdict: ${message}`);
}
