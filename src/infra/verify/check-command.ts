/**
 * Owns: asking a program of the operator's about a result: what it is given, and what its end means.
 *
 * It runs in a folder of its own, which is gone afterwards, with an environment of its own and without a shell. The result is
 * in its input and in a file: never in its arguments or its environment.
 */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNoVerdict, type Verdict } from "../../agents/coordination/contracts/verification.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { CheckAnswer, CheckRequest, VerifiedResult } from "../../agents/coordination/ports/verifier.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import { nameSystemError } from "../../platform/system-error.ts";
import { removeFolder } from "../files/remove-folder.ts";
import { createCheckVerdict, type CheckOf } from "./check-answer.ts";
import { readProgramLine } from "./read-answer.ts";
import { runCheckingProgram, type ProgramEnd } from "./run-program.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

/** The clock and logger of a command that runs, and the signal to stop it. */
export interface CommandBounds {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Runs the operator's program on a step's result, in a temporary folder that is removed afterwards, and returns the
 * verdict of its exit code and last line; no verdict where it cannot run, is cut off or is not understood.
 */
export async function checkCommand(
  check: CheckOf<"command">,
  { key, result }: CheckRequest,
  { signal, clock, logger }: CommandBounds,
): Promise<CheckAnswer> {
  const input = inputOf(result);
  if (input.length > VERIFY_LIMITS.inputCharsMax)
    return createNoVerdict("failed", "the result is too large for a program");
  const folder = await mkdtemp(join(tmpdir(), "coordination-check-"));
  try {
    await writeFile(join(folder, "result.json"), input, { mode: 0o600, flag: "wx" });
    const { command, args } = check;
    const env = { ...createEnvironment(folder), ...check.env };
    return createProgramAnswer(
      check,
      key,
      await runCheckingProgram({ command, args, folder, env, input }, signal, clock),
    );
  } catch (error) {
    return createNoVerdict("failed", `the program could not be run (${nameSystemError(error)})`);
  } finally {
    const removed = removeFolder(folder).catch((error: unknown) =>
      logger.warn({ code: nameSystemError(error) }, "the folder of a check could not be removed"),
    );
    await waitWithin(clock, VERIFY_LIMITS.removeMs, removed, undefined);
  }
}

function inputOf(result: VerifiedResult): string {
  const { text, outputs, confidence, coordinationId, stepId, attempt, agentId } = result;
  return JSON.stringify({ text, outputs, confidence, coordinationId, stepId, attempt, agentId });
}

function createEnvironment(folder: string): Readonly<Record<string, string | undefined>> {
  const { PATH, LANG } = process.env;
  return { PATH, LANG, HOME: folder, TMPDIR: folder };
}

function createProgramAnswer(check: CheckOf<"command">, key: string, end: ProgramEnd): CheckAnswer {
  const { code, isFlood, lastLine } = end;
  if (isFlood) return createNoVerdict("failed", "the program wrote too much");
  if (code === null) return createNoVerdict("failed", "a signal ended the program");
  const verdict = judgeExitCode(check, code);
  const stated = readProgramLine(lastLine);
  // A doubt that cannot be read must not pass. The other verdicts let nothing through.
  if (!stated && verdict === "pass")
    return createNoVerdict("malformed", "the last line of the program's output could not be read");
  return { ...createCheckVerdict(key, verdict), ...stated };
}

function judgeExitCode({ reviseOn }: CheckOf<"command">, code: number): Verdict {
  if (code === 0) return "pass";
  return reviseOn.includes(code) ? "revise" : "fail";
}
