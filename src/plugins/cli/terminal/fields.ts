/** Owns: rendering names and their values in the terminal, one pair a line and aligned. */
import type { Paint } from "./paint.ts";

/** Returns aligned lines of a name and a value each; fields whose value is empty are left out. */
export function renderFields(
  paint: Paint,
  entries: readonly (readonly [string, string])[],
  nameCells = 11,
): string[] {
  return entries
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `  ${paint.tone("faint", name.padEnd(nameCells))} ${value}`);
}
