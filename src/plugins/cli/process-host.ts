/** Owns: the command line's side of this process: streams, colour, the question on the terminal, the exit code. */
import { createInterface } from "node:readline/promises";
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { OperatorConfig } from "../openclaw/host/operator-config.ts";
import type { CliHost, Output, Terminal } from "./terminal/cli-host.ts";
import type { Environment } from "./terminal/state-dir.ts";

/** Where nothing tells the width, as in a pipe. */
const COLUMNS_DEFAULT = 100;

export function processHost(dependencies: {
  readonly program: string;
  readonly config: OperatorConfig;
  readonly stateDir: () => Promise<string>;
}): CliHost {
  const { stdin, stdout, stderr, env } = process;
  return {
    ...dependencies,
    nodeVersion: process.versions.node,
    stdout: createOutput(stdout, terminalOf(stdout, env)),
    stderr: createOutput(stderr, terminalOf(stderr, env)),
    now: () => Date.now() as EpochMs,
    ...chooseConfirm(stdin, stderr),
    failWith: (exitCode) => {
      process.exitCode = exitCode;
    },
  };
}

interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Returns how a person is asked: on stderr, because stdout may belong to a program. */
export function chooseConfirm(stdin: Stream, stderr: Stream): Pick<CliHost, "confirm" | "isQuestionHidden"> {
  if (stdin.isTTY !== true) return {};
  return stderr.isTTY === true ? { confirm: askOnTerminal } : { isQuestionHidden: true };
}

export function terminalOf(stream: Stream, env: Environment): Terminal {
  const isTTY = stream.isTTY === true;
  return {
    isTTY,
    columns: stream.columns ?? (Number(env["COLUMNS"]) || COLUMNS_DEFAULT),
    colour: isColourWanted(isTTY, env),
    unicode: isUtf8(env),
  };
}

/** True when colour is wanted, decided as Node.js does: FORCE_COLOR before NO_COLOR before the terminal. */
function isColourWanted(isTTY: boolean, env: Environment): boolean {
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  if (env["NO_COLOR"]) return false;
  return isTTY && env["TERM"] !== "dumb";
}

function isUtf8(env: Environment): boolean {
  if (process.platform === "win32")
    return env["WT_SESSION"] !== undefined || env["TERM_PROGRAM"] === "vscode";
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return /utf-?8/i.test(locale);
}

function createOutput(stream: NodeJS.WriteStream, terminal: Terminal): Output {
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
