/**
 * Owns: the operating system's side of an agent: starting its process, and making sure that it is gone.
 *
 * The process leads a group of its own, so that what it started in turn can be signalled with it. Its standard
 * error is read and dropped: it may hold secrets, and a full pipe would stop the agent.
 */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { AcpAgentConfig } from "../../agents/coordination/contracts/config/config.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure, type Exit } from "./agent-failure.ts";

const PASSED_ON = /^(?:PATH|HOME|LANG|LC_.*|TMPDIR)$/;

export interface AgentProcess {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly exited: Promise<Exit>;
  /** How much it wrote to standard error. */
  stderrBytes(): number;
  /** Signals the process and all of its group; a group whose process has exited was killed already. */
  signal(name: "SIGTERM" | "SIGKILL"): void;
  /** Lets go of the pipes, which somebody outside of the group may hold open. */
  release(): void;
}

/** @throws AgentFailure when the process cannot be started */
export async function startProcess(config: AcpAgentConfig, cwd: string): Promise<AgentProcess> {
  try {
    const child = spawn(config.command, config.args, {
      cwd,
      env: { ...pickInherited(process.env), ...config.env },
      detached: true,
      shell: false,
      stdio: "pipe",
      windowsHide: true,
    });
    const ended = endOf(child);
    await once(child, "spawn");
    return createAgentProcess(child, ended);
  } catch (error) {
    throw new AgentFailure(`The agent's process could not be started (${codeOf(error)}).`, { cause: error });
  }
}

function pickInherited(parent: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(parent).filter(([name]) => PASSED_ON.test(name)));
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "ENOENT: the program or the folder to start it in is not there";
  return typeof code === "string" ? code : "unknown reason";
}

type Ended = Omit<Exit, "forced">;

function endOf(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

function createAgentProcess(child: ChildProcessWithoutNullStreams, ended: Promise<Ended>): AgentProcess {
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined) throw new Error("a spawned process has no pid");
  let running = true;
  let forced = false;
  let stderrBytes = 0;
  for (const emitter of [child, stdin, stdout, stderr]) emitter.on("error", ignore);
  stderr.on("data", (chunk: Buffer) => {
    stderrBytes += chunk.byteLength;
  });
  const exited = ended.then((exit) => {
    // A process that the agent started may still run. Later on, the number may belong to somebody else's group.
    running = false;
    killGroup(child, pid, "SIGKILL");
    return { ...exit, forced };
  });
  return {
    pid,
    stdin,
    stdout,
    exited,
    stderrBytes: () => stderrBytes,
    signal: (name) => {
      if (!running) return;
      forced = true;
      killGroup(child, pid, name);
    },
    release: () => {
      for (const pipe of [stdin, stdout, stderr]) pipe.destroy();
    },
  };
}

/** A broken pipe is not the news: the end of the process is. */
function ignore(): void {
  // Nothing to do.
}

function killGroup(child: ChildProcessWithoutNullStreams, pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch {
    // The group is gone, or this is Windows, which has none.
    child.kill(name);
  }
}

/**
 * Closes the input, and ends the process and its group by force where it does not go by itself within `exitMs`.
 * Resolves with the exit, or with nothing when the process cannot be killed.
 */
export async function stopProcess(
  agent: AgentProcess,
  exitMs: number,
  { clock, limits }: { readonly clock: Clock; readonly limits: AcpLimits },
): Promise<Exit | undefined> {
  agent.stdin.end();
  let exit = exitMs > 0 ? await waitWithin(clock, exitMs, agent.exited, undefined) : undefined;
  for (const [signal, ms] of [
    ["SIGTERM", limits.terminateMs],
    ["SIGKILL", limits.killMs],
  ] as const) {
    if (exit) break;
    agent.signal(signal);
    exit = await waitWithin(clock, ms, agent.exited, undefined);
  }
  agent.release();
  return exit;
}
