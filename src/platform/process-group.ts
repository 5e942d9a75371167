/** Owns: programs that lead a group of processes of their own: the variables that they get, and signals to the whole group. */
import type { ChildProcess } from "node:child_process";

/** The rest may hold secrets of the gateway. */
const PASSED_ON = /^(?:PATH|HOME|LANG|LC_.*|TMPDIR)$/u;

/**
 * Returns the environment variables of this process that a started program gets: a few harmless ones, and those that
 * are named here. The rest may hold secrets of the gateway.
 */
export function pickInheritedVariables(...others: readonly string[]): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => PASSED_ON.test(name) || others.includes(name),
  );
  return Object.fromEntries(inherited);
}

/**
 * Sends a signal to the process group that a program leads; to the program alone where there is no group, and to
 * nobody where it has not started.
 */
export function signalProcessGroup(leader: ChildProcess, signal: NodeJS.Signals): void {
  if (leader.pid === undefined) return;
  try {
    process.kill(-leader.pid, signal);
  } catch {
    // The group is gone, or this is Windows, which has none.
    leader.kill(signal);
  }
}
