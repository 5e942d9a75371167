import { closeSync, fsyncSync, openSync } from "node:fs";

/** What is still on its way to the disk would weigh on the commits that are measured next. */
export function flushFile(path: string): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}
