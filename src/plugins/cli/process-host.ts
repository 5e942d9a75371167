/** Owns: the command line's side of this process: streams, colour, the question on the terminal, the exit code. */
import { createInterface } from "node:readline/promises";
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { OperatorConfig } from "../openclaw/host/operator-config.ts";
import type { CliHost, CliOutput, Terminal } from "./terminal/cli-host.ts";
import type { Environment } from "./terminal/state-dir.ts";

/** Where nothing tells the width, as in a pipe. */
const COLUMNS_DEFAULT = 100;

/**
 * Creates what the commands need of this process: its streams with what their terminals can show, the time, the exit
 * code, and how a person is asked.
 */
export function createProcessHost(dependencies: {
  readonly program: string;
  readonly config: OperatorConfig;
  readonly stateDir: () => Promise<string>;
}): CliHost {
  const { stdin, stdout, stderr, env } = process;
  return {
    ...dependencies,
    args: process.argv.slice(2),
    nodeVersion: process.versions.node,
    stdout: createOutput(stdout, detectTerminal(stdout, env)),
    stderr: createOutput(stderr, detectTerminal(stderr, env)),
    now: () => Date.now() as EpochMs,
    ...createConfirm(stdin, stderr),
    failWith: (exitCode) => {
      process.exitCode = exitCode;
    },
  };
}

/** A stream of the process, as far as it tells of a terminal. */
interface TerminalStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/**
 * Returns the function that asks a person on stderr to confirm, because stdout may belong to a program; an empty
 * record where stdin is no terminal, and `isQuestionHidden` where stderr is none.
 */
export function createConfirm(
  stdin: TerminalStream,
  stderr: TerminalStream,
): Pick<CliHost, "confirm" | "isQuestionHidden"> {
  if (stdin.isTTY !== true) return {};
  return stderr.isTTY === true ? { confirm: askOnTerminal } : { isQuestionHidden: true };
}

/**
 * Returns what the terminal of a stream can show: its width, colours and Unicode, by the stream and the environment.
 */
export function detectTerminal(stream: TerminalStream, env: Environment): Terminal {
  const isTTY = stream.isTTY === true;
  return {
    isTTY,
    columns: stream.columns ?? (Number(env["COLUMNS"]) || COLUMNS_DEFAULT),
    colour: isColourWanted(isTTY, env),
    unicode: isUtf8Environment(env),
  };
}

/** True when colour is wanted, decided as Node.js does: FORCE_COLOR before NO_COLOR before the terminal. */
function isColourWanted(isTTY: boolean, env: Environment): boolean {
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  if (env["NO_COLOR"]) return false;
  return isTTY && env["TERM"] !== "dumb";
}

function isUtf8Environment(env: Environment): boolean {
  if (process.platform === "win32")
    return env["WT_SESSION"] !== undefined || env["TERM_PROGRAM"] === "vscode";
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return /utf-?8/i.test(locale);
}

/** Creates an output whose `write` resolves to false once its reader is gone. */
function createOutput(stream: NodeJS.WriteStream, terminal: Terminal): CliOutput {
  let readerGone = false;
  // Without a listener a reader that goes away, such as `head`, would crash the process.
  stream.on("error", (error: NodeJS.ErrnoException) => {
    readerGone = true;
    if (error.code !== "EPIPE") process.exitCode = 1;
  });
  return {
    terminal,
    write: (text) =>
      new Promise((resolve) => {
        if (readerGone) resolve(false);
        else stream.write(text, (error) => resolve(!error));
      }),
  };
}

/** Asks a question on stderr; true for `y` or `yes`, false for all else, Ctrl-C and the end of the input. */
async function askOnTerminal(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    return false; // Ctrl-C or the end of the input.
  } finally {
    lines.close();
  }
}
