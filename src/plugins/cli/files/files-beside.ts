/** Owns: finding the files that lie beside another one. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** Returns the paths of those of the named files that exist in the same folder as `path`. */
export function findFilesBeside(path: string, names: readonly string[]): string[] {
  return names.map((name) => join(dirname(path), name)).filter((file) => existsSync(file));
}
