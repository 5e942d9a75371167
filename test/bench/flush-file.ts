import { closeSync, fsyncSync, openSync } from "node:fs";

/** Writes still on their way to the disk would weigh on the commits that are measured next. */
export function flushFile(path: string): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}
