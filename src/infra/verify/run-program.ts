/**
 * Owns: one program from its start until it and its group are gone. Does not own: what its end means.
 *
 * The program leads a group of its own, which is killed when it exits and when its time is over, so that what it started goes
 * with it. Only a process that leaves the group by itself (`setsid`) stays: that is the operator's own program.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
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

/** @throws Error where the program cannot be started */
export async function runProgram(program: Program, signal: AbortSignal, clock: Clock): Promise<ProgramEnd> {
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
    if (isRunning) killGroup(child);
  };
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const closed = new Promise((resolve) => child.once("close", resolve));
  signal.addEventListener("abort", kill, { once: true });
  try {
    await once(child, "spawn");
    const output = collect(child.stdout, kill);
    give(child.stdin, program.input);
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

/** A program that ignores its input, or ends before it is read, is none that failed. */
function give(stdin: Writable, input: string): void {
  stdin.on("error", ignore);
  stdin.end(input);
}

function ignore(): void {
  // A broken pipe is not the news: the end of the program is.
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group is gone, or this is Windows, which has none.
    child.kill("SIGKILL");
  }
}

/** Keeps the last line only, and of a long one its beginning. */
function collect(stdout: Readable, stop: () => void): () => Omit<ProgramEnd, "code"> {
  const { lineBytesMax, outputBytesMax } = VERIFY_LIMITS;
  let lastLine = "";
  let bytes = 0;
  let isAtLineStart = true;
  // A chunk may end within a character.
  const decoder = new StringDecoder("utf8");
  const addToLine = (piece: string): void => {
    const words = isAtLineStart ? piece.trimStart() : piece;
    if (words === "") return;
    lastLine = ((isAtLineStart ? "" : lastLine) + words).slice(0, lineBytesMax + 1);
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
