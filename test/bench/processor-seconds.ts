/** Owns: how many seconds of processor time processes of this machine have used, as Linux counts them. */
import { readdirSync, readFileSync } from "node:fs";

/** `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** Returns the seconds of the listed processes, and of all processes of PostgreSQL servers. */
export function readProcessorSeconds(pids: readonly number[]): {
  readonly listed: number;
  readonly postgres: number;
} {
  let listed = 0;
  let postgres = 0;
  for (const entry of readdirSync("/proc")) {
    const stat = /^\d+$/u.test(entry) ? readStat(entry) : undefined;
    if (!stat) continue;
    if (pids.includes(Number(entry))) listed += stat.seconds;
    if (stat.name === "postgres") postgres += stat.seconds;
  }
  return { listed, postgres };
}

/** `undefined` for a process that has ended meanwhile. */
function readStat(pid: string): { readonly name: string; readonly seconds: number } | undefined {
  try {
    const [, name = "", rest = ""] = /\((.*)\) (.*)/su.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    // Fields 14 and 15 of proc(5), counted from the one behind the name, which is the third.
    const fields = rest.split(" ");
    return { name, seconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}
