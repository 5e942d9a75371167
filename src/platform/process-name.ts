/**
 * Owns: names of processes by which others of the same machine can tell that one has ended, and that a newer one has its number.
 * Where the system does not tell what that needs, a process has no name.
 */
import { hash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { readSystemErrorCode } from "./system-error.ts";

const NAME_DIGITS = 24;
/** Form of `/etc/machine-id`, which may also be empty or say that there is none yet. */
const MACHINE_ID = /^[0-9a-f]{32}$/u;
/** States of a process that has ended, as Linux writes them. */
const ENDED_STATES: ReadonlySet<string> = new Set(["Z", "X"]);
const NAME = /^(?<machine>[0-9a-f]{24})\.(?<pid>\d+)\.(?<start>\d+)$/u;

/**
 * Returns a name that stands for this machine, its present boot and its space of process ids; `undefined` where the
 * system does not tell.
 */
function readMachineName(): string | undefined {
  try {
    const space = readlinkSync("/proc/self/ns/pid");
    return hash("sha256", `${readBootId()} ${space}`).slice(0, NAME_DIGITS);
  } catch {
    return undefined;
  }
}

function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/**
 * Returns a name of this machine and one of its present boot, joined by a dot; `undefined` where the system does not
 * tell. Copied machines may share the first one: good enough for what people read, and not for taking over work.
 */
export function readBootName(): string | undefined {
  try {
    const machine = readFileSync("/etc/machine-id", "utf8").trim();
    if (!MACHINE_ID.test(machine)) return undefined;
    const ids = [machine, readBootId()];
    return ids.map((id) => hash("sha256", `openclaw-coordination ${id}`).slice(0, NAME_DIGITS)).join(".");
  } catch {
    return undefined;
  }
}

/**
 * Returns whether this machine is the one of a boot's name, and has been booted again since; false for another
 * machine.
 */
export function isBootedSince(bootName: string): boolean {
  const [machine, boot] = bootName.split(".");
  const [machineNow, bootNow] = readBootName()?.split(".") ?? [];
  return machineNow !== undefined && machine === machineNow && boot !== bootNow;
}

interface ProcessStat {
  /** One letter; `Z` and `X` for a process that has ended. */
  readonly state: string;
  /** In ticks since the machine was booted. */
  readonly start: string;
}

/**
 * Reads the state and the start of a process from its proc(5) file, where the program's name may have spaces and
 * parentheses; `none` where there is no such process, `undefined` where the system does not tell.
 */
function readProcessStat(pid: string): ProcessStat | "none" | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    const code = readSystemErrorCode(error);
    return code === "ENOENT" || code === "ESRCH" ? "none" : undefined;
  }
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state] = fields;
  const start = fields[STARTED_FIELD];
  return state !== undefined && start !== undefined ? { state, start } : undefined;
}

/** Field 22 of proc(5), behind the first two. */
const STARTED_FIELD = 19;

/**
 * Returns a name of a process of this machine, by default of this one, that no other process ever gets (machine,
 * number, start); `undefined` where the system does not tell, or the process is not there.
 */
export function readProcessName(pid?: number): string | undefined {
  const machine = readMachineName();
  const stat = readProcessStat(pid === undefined ? "self" : String(pid));
  if (machine === undefined || stat === undefined || stat === "none") return undefined;
  return `${machine}.${pid ?? process.pid}.${stat.start}`;
}

/** Returns the number (pid) in the name of a process; `NaN` for what is no such name. */
export function parsePid(name: string): number {
  return Number(NAME.exec(name)?.groups?.["pid"]);
}

/**
 * Returns whether the process of a name has ended for sure; false for one that is there, and for one of which this
 * machine knows nothing.
 */
export function isProcessGone(name: string): boolean {
  return lookUpProcess(name) === "gone";
}

/**
 * Returns whether the process of a name is running on this machine for sure; false for one of which it knows nothing.
 */
export function isProcessThere(name: string): boolean {
  return lookUpProcess(name) === "there";
}

/** Looks whether a process is there; "unknown" for one of another machine, or where the system does not tell. */
function lookUpProcess(name: string): "there" | "gone" | "unknown" {
  const { machine, pid = "", start } = NAME.exec(name)?.groups ?? {};
  if (machine === undefined || machine !== readMachineName()) return "unknown";
  const stat = readProcessStat(pid);
  if (stat === undefined) return "unknown";
  const isGone = stat === "none" || stat.start !== start || ENDED_STATES.has(stat.state);
  return isGone ? "gone" : "there";
}
