/**
 * Owns: one program from its start until it and its group are gone. Does not own: what its end means.
 *
 * The program leads a group of its own, which is killed when it exits and when its time is over, so that what it started goes
 * with it. Only a process that leaves the group by itself (`setsid`) stays: that is the operator's own program.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import { signalProcessGroup } from "../../platform/process-group.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: string;
}

export interface ProgramEnd {
  /** `null` where a signal ended it. */
  readonly code: number | null;
  /** It wrote more than it may, and was killed. */
  readonly isFlood: boolean;
  /** The last line of its output that is not blank; of one that is too long a beginning that is too long as well. */
  readonly lastLine: string;
}

/**
 * Runs a checking program without a shell, kills its process group when it exits, writes too much or `signal` aborts,
 * and returns its exit code and last line. @throws Error where the program cannot be started
 */
export async function runCheckingProgram(
  program: Program,
  signal: AbortSignal,
  clock: Clock,
): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const child = spawn(program.command, program.args, {
    cwd: program.folder,
    env: { ...program.env },
    detached: true,
    shell: false,
    // Nobody reads what it says of its errors, which may hold anything.
    stdio: ["pipe", "pipe", "ignore"],
    windowsHide: true,
  });
  // Until it has begun there may be no pipes either.
  child.on("error", ignore);
  let isRunning = true;
  const kill = (): void => {
    if (isRunning) signalProcessGroup(child, "SIGKILL");
  };
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const closed = new Promise((resolve) => child.once("close", resolve));
  signal.addEventListener("abort", kill, { once: true });
  try {
    await once(child, "spawn");
    const output = collectLastLine(child.stdout, kill);
    writeInput(child.stdin, program.input);
    const code = await exited;
    // A process that it started may still run. Later on, the number may belong to somebody else's group.
    kill();
    isRunning = false;
    await waitWithin(clock, VERIFY_LIMITS.drainMs, closed, undefined);
    child.stdout.destroy();
    return { code, ...output() };
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

/** Writes a program's input to it. A program that ignores the input, or ends before it has read it, causes no error. */
function writeInput(stdin: Writable, input: string): void {
  stdin.on("error", ignore);
  stdin.end(input);
}

function ignore(): void {
  // A broken pipe is not the news: the end of the program is.
}

/**
 * Reads a program's output, stops one that writes too much, and returns a getter of its last line. A long line is cut
 * behind its beginning.
 */
function collectLastLine(stdout: Readable, stop: () => void): () => Omit<ProgramEnd, "code"> {
  const { lineBytesMax, outputBytesMax } = VERIFY_LIMITS;
  let lastLine = "";
  let bytes = 0;
  let isAtLineStart = true;
  // A chunk may end within a character.
  const decoder = new StringDecoder("utf8");
  const addToLine = (piece: string): void => {
    const trimmedPiece = isAtLineStart ? piece.trimStart() : piece;
    if (trimmedPiece === "") return;
    lastLine = ((isAtLineStart ? "" : lastLine) + trimmedPiece).slice(0, lineBytesMax + 1);
    isAtLineStart = false;
  };
  stdout.on("error", ignore);
  stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > outputBytesMax) stop();
    const [first = "", ...others] = decoder.write(chunk).split("\n");
    addToLine(first);
    for (const line of others) {
      isAtLineStart = true;
      addToLine(line);
    }
  });
  return () => {
    addToLine(decoder.end());
    return { isFlood: bytes > outputBytesMax, lastLine };
  };
}
