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
import { pickInheritedVariables, signalProcessGroup } from "../../platform/process-group.ts";
import { nameSystemError } from "../../platform/system-error.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure, type ProcessExit } from "./agent-failure.ts";

export interface AgentProcess {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly exited: Promise<ProcessExit>;
  /** How much it wrote to standard error. */
  stderrBytes(): number;
  /** Signals the process and all of its group; a group whose process has exited was killed already. */
  signal(name: "SIGTERM" | "SIGKILL"): void;
  /** Lets go of the pipes, which somebody outside of the group may hold open. */
  release(): void;
}

/**
 * Starts the process of an agent in a folder, and resolves once it runs. @throws AgentFailure when the process cannot
 * be started
 */
export async function startAgentProcess(config: AcpAgentConfig, cwd: string): Promise<AgentProcess> {
  try {
    const child = spawn(config.command, config.args, {
      cwd,
      env: { ...pickInheritedVariables(), ...config.env },
      detached: true,
      shell: false,
      stdio: "pipe",
      windowsHide: true,
    });
    const ended = awaitExit(child);
    await once(child, "spawn");
    return createAgentProcess(child, ended);
  } catch (error) {
    throw new AgentFailure(`The agent's process could not be started (${describeSpawnError(error)}).`, {
      cause: error,
    });
  }
}

/** Returns the system's error code, explained where it may mean two things; "unknown reason" without one. */
function describeSpawnError(error: unknown): string {
  const code = nameSystemError(error);
  return code === "ENOENT" ? "ENOENT: the program or the folder to start it in is not there" : code;
}

/** How a process ended. */
type ExitStatus = Omit<ProcessExit, "forced">;

/** Resolves with the exit code and the signal once the process has exited. */
function awaitExit(child: ChildProcessWithoutNullStreams): Promise<ExitStatus> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/** Wraps a process that was started: reads and drops its standard error, and kills its group once it has exited. */
function createAgentProcess(child: ChildProcessWithoutNullStreams, ended: Promise<ExitStatus>): AgentProcess {
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined) throw new Error("a spawned process has no pid");
  let running = true;
  let forced = false;
  let stderrBytes = 0;
  for (const emitter of [child, stdin, stdout, stderr]) emitter.on("error", ignorePipeError);
  stderr.on("data", (chunk: Buffer) => {
    stderrBytes += chunk.byteLength;
  });
  const exited = ended.then((exit) => {
    // A process that the agent started may still run. Later on, the number may belong to somebody else's group.
    running = false;
    signalProcessGroup(child, "SIGKILL");
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
      signalProcessGroup(child, name);
    },
    release: () => {
      for (const pipe of [stdin, stdout, stderr]) pipe.destroy();
    },
  };
}

/** Ignores the error of a broken pipe: the end of the process tells it. */
function ignorePipeError(): void {
  // Nothing to do.
}

/**
 * Closes the input of an agent's process, and ends it with its group by force where it does not go by itself within
 * `exitMs`. Resolves with the exit; `undefined` when the process cannot be killed.
 */
export async function stopProcess(
  agent: AgentProcess,
  exitMs: number,
  { clock, limits }: { readonly clock: Clock; readonly limits: AcpLimits },
): Promise<ProcessExit | undefined> {
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
