/** Owns: what all commands share: options, errors, JSON, and that the process goes on until a command has ended. */
import type { Command } from "commander";
import {
  CoordinationError,
  createInputError,
  InvariantViolation,
  isCoordinationError,
} from "../../../agents/coordination/contracts/errors.ts";
import type { CliHost } from "./cli-host.ts";
import { attachLedgerAdvice } from "./named-ledger.ts";
import { createPaint } from "./paint.ts";
import { assertPath } from "../files/named-path.ts";
import { maskPasswords, formatJson, formatMessage, formatPrintable } from "./printable.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

export interface JsonOption {
  readonly json?: boolean;
}

export interface ReaderOptions extends JsonOption {
  readonly ledger?: string;
}

/** Adds the option `--json` to a command and returns it. */
export function withJsonOption(command: Command): Command {
  return command.option("--json", "print JSON");
}

/** Adds the options `--ledger` and `--json` of commands that read a ledger to a command and returns it. */
export function withReaderOptions(command: Command): Command {
  return withJsonOption(
    command.option(
      "--ledger <file>",
      "read this file, or postgres:// (default: the gateway's: as ledger.url says, or in its state folder)",
    ),
  );
}

/** Adds examples of its use to a command's help and returns the command. */
export function withExamples(command: Command, host: CliHost, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ ${host.program} ${example}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** The longest time of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Runs a command's work; an error is printed (as JSON with `--json`) and sets exit code 1, and is never thrown into
 * the program that parsed the arguments. Keeps the process alive until then.
 */
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

/**
 * Throws where a command has to ask and the person would not see the question, unless `--yes`; else does nothing.
 * @throws CoordinationError `INPUT_INVALID`
 */
export function assertQuestionVisible(
  { isQuestionHidden }: CliHost,
  { yes }: { readonly yes?: boolean },
): void {
  if (isQuestionHidden !== true || yes === true) return;
  throw createInputError(
    "stderr is no terminal, so you would not see the question whether to go on; give --yes to go on without it",
  );
}

/**
 * Throws where a subcommand was called with one of these options of its parent, which Commander accepts wherever they
 * stand; else does nothing. `why`: the end of the error's message. @throws CoordinationError `INPUT_INVALID`
 */
export function assertNoOptionsOfParent({ parent }: Command, options: readonly string[], why: string): void {
  const name = options.find((option) => parent?.getOptionValueSource(option) === "cli");
  if (name !== undefined) throw createInputError(`--${name}: ${why}`);
}

/** Writes a value to stdout as indented JSON that is safe for a terminal. */
export async function writeJson(host: CliHost, value: unknown): Promise<void> {
  await host.stdout.write(`${formatJson(value, 2)}\n`);
}

/** Writes lines to stdout. */
export async function writeLines(host: CliHost, lines: readonly string[]): Promise<void> {
  await host.stdout.write(`${lines.join("\n")}\n`);
}

/** Returns an error as the line that stderr shows: its code, its message and the advice, safe for a terminal. */
export function formatError(error: CoordinationError, { stderr }: CliHost): string {
  const { colour, unicode } = stderr.terminal;
  const detail = formatMessage(maskPasswords(error.message), unicode).replace(/\.$/, "");
  const paint = createPaint({ ...stderr.terminal, colour });
  return `${paint.tone("bad", `error ${error.code}:`)} ${detail}. ${formatPrintable(error.advice, unicode)}\n`;
}

/** Returns the fields of an error that `--json` prints: code, message, recovery and advice. */
export function createErrorJson({
  code,
  message,
  recovery,
  advice,
}: CoordinationError): Pick<CoordinationError, "code" | "message" | "recovery" | "advice"> {
  return { code, message: maskPasswords(message), recovery, advice };
}

/**
 * Returns an error as a `CoordinationError`: itself, one of another copy of the code as one of this copy, and any
 * other as an `InvariantViolation`.
 */
export function asCoordinationError(error: unknown): CoordinationError {
  if (error instanceof CoordinationError) return error;
  if (isCoordinationError(error)) return new CoordinationError(error.code, error.message, { cause: error });
  return new InvariantViolation(describeError(error));
}

interface NumberRange {
  readonly option: string;
  readonly min: number;
  readonly max: number;
}

/**
 * Returns the whole number that an option's text is. @throws CoordinationError `INPUT_INVALID` for anything else, and
 * outside of the range
 */
export function parseWholeNumber(text: string, { option, min, max }: NumberRange): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw createInputError(
    `${option}: expected a whole number from ${min} to ${max}, got ${JSON.stringify(text)}`,
  );
}

/** Returns the path of a file that an option's text is. @throws CoordinationError `INPUT_INVALID` for an address, and nothing */
export function parseFilePath(text: string, option: string): string {
  assertPath(text, `${option}: `);
  return text;
}

/** Throws where an option was given with nothing as its text. @throws CoordinationError `INPUT_INVALID` */
export function assertNotEmpty(text: string | undefined, option: string, expected: string): void {
  if (text?.trim() === "") throw createInputError(`${option}: expected ${expected}, got nothing`);
}

/** Parses a number that may be a fraction. @throws CoordinationError `INPUT_INVALID` */
export function parseNumber(text: string, range: NumberRange & { readonly unit?: string }): number {
  const { option, min, max, unit } = range;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  if (number >= min && number <= max) return number;
  const kind = unit === undefined ? "a number" : `a number of ${unit}`;
  throw createInputError(`${option}: expected ${kind} from ${min} to ${max}, got ${text}`);
}

/** Parses a number from 0 to 1. @throws CoordinationError `INPUT_INVALID` */
export function parseShare(text: string, option: string): number {
  return parseNumber(text, { option, min: 0, max: 1 });
}

/**
 * Returns the sequence number of an event that an option's text is; `undefined` where the option was not given.
 * @throws CoordinationError `INPUT_INVALID`
 */
export function parseSequence(text: string | undefined, option: string): number | undefined {
  return text === undefined
    ? undefined
    : parseWholeNumber(text, { option, min: 0, max: Number.MAX_SAFE_INTEGER });
}

/** Returns which of the choices an option's text is. @throws CoordinationError `INPUT_INVALID` for none of them */
export function parseChoice<T extends string>(text: string, option: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  throw createInputError(`${option}: expected one of ${choices.join(", ")}, got ${JSON.stringify(text)}`);
}
