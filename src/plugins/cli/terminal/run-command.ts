/** Owns: what all commands share: options, errors, JSON, and that the process goes on until a command has ended. */
import type { Command } from "commander";
import {
  CoordinationError,
  InvariantViolation,
  isCoordinationError,
} from "../../../agents/coordination/contracts/errors.ts";
import type { CliHost } from "./cli-host.ts";
import { attachLedgerAdvice } from "./named-ledger.ts";
import { paintFor } from "./paint.ts";
import { formatJson, formatMessage, formatPrintable } from "./printable.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

export interface JsonOption {
  readonly json?: boolean;
}

export interface ReaderOptions extends JsonOption {
  readonly ledger?: string;
}

export function withJson(command: Command): Command {
  return command.option("--json", "print JSON");
}

export function withReaderOptions(command: Command): Command {
  return withJson(
    command.option(
      "--ledger <file>",
      "read this file, or postgres:// (default: the gateway's: as ledger.url says, or in its state folder)",
    ),
  );
}

export function withExamples(command: Command, host: CliHost, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ ${host.program} ${example}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** The longest time of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Runs a command and reports what it throws; it never throws into the program that parsed the arguments. */
export async function runCommand(
  host: CliHost,
  { json, ledger }: ReaderOptions,
  work: () => Promise<void>,
): Promise<void> {
  // An open ledger file and the timers of the system clock keep no process alive: Node.js would end before the command.
  const keepAlive = setInterval(() => undefined, TIMER_MS_MAX);
  try {
    await work();
  } catch (error) {
    host.failWith(1);
    const { program } = host;
    const failure = attachLedgerAdvice(asCoordinationError(error), { program, ledger });
    if (json) await writeJson(host, { error: createErrorJson(failure) });
    else await host.stderr.write(formatError(failure, host));
  } finally {
    clearInterval(keepAlive);
  }
}

/** @throws CoordinationError `INPUT_INVALID` where a person is to be asked who would not see the question */
export function refuseHiddenQuestion(
  { isQuestionHidden }: CliHost,
  { yes }: { readonly yes?: boolean },
): void {
  if (isQuestionHidden !== true || yes === true) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    "stderr is no terminal, so you would not see the question whether to go on; give --yes to go on without it",
  );
}

/** Refuses options of the parent of a command, which takes its own wherever they stand. @throws CoordinationError `INPUT_INVALID` */
export function refuseOptionsOfParent({ parent }: Command, options: readonly string[], why: string): void {
  const name = options.find((option) => parent?.getOptionValueSource(option) === "cli");
  if (name !== undefined) throw new CoordinationError("INPUT_INVALID", `--${name}: ${why}`);
}

export async function writeJson(host: CliHost, value: unknown): Promise<void> {
  await host.stdout.write(`${formatJson(value, 2)}\n`);
}

export async function writeLines(host: CliHost, lines: readonly string[]): Promise<void> {
  await host.stdout.write(`${lines.join("\n")}\n`);
}

export function formatError(error: CoordinationError, { stderr }: CliHost): string {
  const { colour, unicode } = stderr.terminal;
  const detail = formatMessage(error.message, unicode).replace(/\.$/, "");
  const paint = paintFor({ ...stderr.terminal, colour });
  return `${paint.tone("bad", `error ${error.code}:`)} ${detail}. ${formatPrintable(error.advice, unicode)}\n`;
}

export function createErrorJson({
  code,
  message,
  recovery,
  advice,
}: CoordinationError): Pick<CoordinationError, "code" | "message" | "recovery" | "advice"> {
  return { code, message, recovery, advice };
}

export function asCoordinationError(error: unknown): CoordinationError {
  if (error instanceof CoordinationError) return error;
  if (isCoordinationError(error)) return new CoordinationError(error.code, error.message, { cause: error });
  return new InvariantViolation(describeError(error));
}

/** @throws CoordinationError `INPUT_INVALID` */
export function parseWholeNumber(
  text: string,
  { option, min, max }: { readonly option: string; readonly min: number; readonly max: number },
): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${option}: expected a whole number from ${min} to ${max}, got ${JSON.stringify(text)}`,
  );
}

/** The place of an event in a log. @throws CoordinationError `INPUT_INVALID` */
export function placeIn(text: string | undefined, option: string): number | undefined {
  return text === undefined
    ? undefined
    : parseWholeNumber(text, { option, min: 0, max: Number.MAX_SAFE_INTEGER });
}

/** @throws CoordinationError `INPUT_INVALID` */
export function oneOf<T extends string>(text: string, option: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${option}: expected one of ${choices.join(", ")}, got ${JSON.stringify(text)}`,
  );
}
