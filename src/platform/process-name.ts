/**
 * Owns: names of processes by which others of the same machine can tell that one has ended, and that a newer one has its number.
 * Where the system does not tell what that needs, a process has no name.
 */
import { hash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

const MACHINE_DIGITS = 24;
/** States of a process that has ended, as Linux writes them. */
const ENDED_STATES: ReadonlySet<string> = new Set(["Z", "X"]);
const NAME = /^(?<machine>[0-9a-f]{24})\.(?<pid>\d+)\.(?<start>\d+)$/u;

/** The machine as it was booted, and the space in which the number of a process means that process. */
function readMachine(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const space = readlinkSync("/proc/self/ns/pid");
    return hash("sha256", `${boot} ${space}`).slice(0, MACHINE_DIGITS);
  } catch {
    return undefined;
  }
}

interface ProcessStat {
  /** One letter; `Z` and `X` for a process that has ended. */
  readonly state: string;
  /** In ticks since the machine was booted. */
  readonly start: string;
}

/** proc(5): the name of the program comes second, in parentheses, and may have spaces and parentheses itself. */
function readStat(pid: string): ProcessStat | "none" | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ESRCH" ? "none" : undefined;
  }
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state] = fields;
  const start = fields[STARTED_FIELD];
  return state !== undefined && start !== undefined ? { state, start } : undefined;
}

/** Field 22 of proc(5), behind the first two. */
const STARTED_FIELD = 19;

/** Returns the name of a process, by default of this one; `undefined` where the system does not tell. */
export function readProcessName(pid?: number): string | undefined {
  const machine = readMachine();
  const stat = readStat(pid === undefined ? "self" : String(pid));
  if (machine === undefined || stat === undefined || stat === "none") return undefined;
  return `${machine}.${pid ?? process.pid}.${stat.start}`;
}

/** Returns the number of a named process. */
export function readPid(name: string): number {
  return Number(NAME.exec(name)?.groups?.["pid"]);
}

/** True when the process has ended for sure; false for one that is there, and for one of which this machine knows nothing. */
export function isProcessGone(name: string): boolean {
  return lookUpProcess(name) === "gone";
}

/** True when the process is there for sure. */
export function isProcessThere(name: string): boolean {
  return lookUpProcess(name) === "there";
}

function lookUpProcess(name: string): "there" | "gone" | "unknown" {
  const { machine, pid = "", start } = NAME.exec(name)?.groups ?? {};
  if (machine === undefined || machine !== readMachine()) return "unknown";
  const stat = readStat(pid);
  if (stat === undefined) return "unknown";
  const isGone = stat === "none" || stat.start !== start || ENDED_STATES.has(stat.state);
  return isGone ? "gone" : "there";
}
