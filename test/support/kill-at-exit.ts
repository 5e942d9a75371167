/** Owns: that no process of a test outlives it, however the test ends. */
import type { ChildProcess } from "node:child_process";

const living = new Set<ChildProcess>();

/** Kills a process, and its group where it leads one, when this process ends before it did. */
export function killAtExit(child: ChildProcess): void {
  if (process.listenerCount("exit", killLiving) === 0) watchExit();
  living.add(child);
  child.once("exit", () => living.delete(child));
}

function watchExit(): void {
  process.on("exit", killLiving);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      killLiving();
      process.kill(process.pid, signal);
    });
  }
}

function killLiving(): void {
  for (const child of living) signalGroup(child, "SIGKILL");
}

/** Signals a process with its group where it leads one. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    child.kill(signal); // The group is gone, or it is a CLI call, which has no group of its own.
  }
}
