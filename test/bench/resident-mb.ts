import { execFileSync } from "node:child_process";

/** Resident memory of a process, as `ps` says it. */
export function readResidentMb(pid: number): number {
  const kilobytes = Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }));
  if (!(kilobytes > 0)) throw new Error(`there is no process ${pid}`);
  return (kilobytes * 1_024) / 1_000_000;
}
