/** Owns: resources as people write them: files by their paths, everything else by its name. */
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { covers } from "../../agents/coordination/contracts/resource-names.ts";

const FILE = "file:";

/** A scheme has at least two letters: one is a drive. */
const NAMED = /^[a-z][a-z0-9+.-]+:/iu;

/** A file without its scheme. */
export function resourceText(resource: string): string {
  return resource.startsWith(FILE) ? resource.slice(FILE.length) : resource;
}

/** Whether a claim on a resource holds for what was asked for, or for something below it. */
export function concerns(asked: string): (resource: string) => boolean {
  const wanted = folded(NAMED.test(asked) ? asked : FILE + realPath(resolve(asked)).replaceAll("\\", "/"));
  return (resource) => covers(folded(resource), wanted) || covers(wanted, folded(resource));
}

/** Without regard to case: where a file system ignores it, names are recorded in lower case. */
function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Links are followed as far as the path exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
