/** Owns: judging everything that a command printed: nothing of it may do something to a terminal, and it says what happened. */
import type { CliResult } from "../cli/run-cli.ts";

const LINE_CHARS_MAX = 20_000;
const COMMAND_MS_MAX = 1_000;

/** Sequences of our own paint: they colour, and do nothing else. */
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const PAINT = /\u001b\[[\d;]*m/gu;
/** Controls except the line break, and what moves or hides the characters beside it. */
const HARMFUL = /(?!\n|\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u;
const STACK = /\n\s+at .+:\d+:\d+|INVARIANT_VIOLATED|\bTypeError\b|\bRangeError\b|SqliteError/u;

/** The output of a command, how long it took, and the forms that it may have. */
export interface PrintedOutput extends CliResult {
  readonly ms: number;
  readonly isJson: boolean;
  readonly isPainted: boolean;
}

/** Describes what is wrong with it. */
export function findOutputFault(printed: PrintedOutput): string | undefined {
  const { stdout, stderr, ms, isPainted, isJson } = printed;
  if (ms > COMMAND_MS_MAX) return `it took ${Math.round(ms)} ms`;
  const text = isPainted ? (stdout + stderr).replaceAll(PAINT, "") : stdout + stderr;
  const harmful = HARMFUL.exec(text);
  if (harmful)
    return `it prints ${JSON.stringify(text.slice(Math.max(0, harmful.index - 80)).slice(0, 200))}`;
  if (STACK.test(text)) return `it shows our insides: ${text.slice(0, 500)}`;
  if (/^error FORGED/mu.test(text)) return "a text of the ledger has a line of its own";
  const longest = Math.max(...text.split("\n").map(({ length }) => length));
  if (!isJson && longest > LINE_CHARS_MAX) return `a line has ${longest} characters`;
  return isJson && stdout !== "" ? findJsonFault(stdout) : findSilence(printed);
}

/** A line of events is a value as well. */
function findJsonFault(stdout: string): string | undefined {
  if (isJsonText(stdout)) return undefined;
  const wrong = stdout
    .trimEnd()
    .split("\n")
    .find((line) => !isJsonText(line));
  return wrong === undefined ? undefined : `it is no JSON: ${wrong.slice(0, 300)}`;
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function findSilence({ stdout, stderr, exitCode }: PrintedOutput): string | undefined {
  return exitCode !== 0 && (stdout + stderr).trim().length < 20
    ? `it fails with ${exitCode} and no word`
    : undefined;
}
