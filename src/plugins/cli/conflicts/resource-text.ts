/** Owns: resources as people ask for them: files by their paths, everything else by its name. */
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isCovering, FILE, kindOf } from "../../../agents/coordination/contracts/resource-names.ts";

/** Creates a filter for resources: the named one, and whatever lies below it. */
export function createResourceFilter(resourceName: string): (resource: string) => boolean {
  const wanted = foldCase(
    kindOf(foldCase(resourceName)) === undefined
      ? FILE + resolveRealPath(resolve(resourceName)).replaceAll("\\", "/")
      : resourceName,
  );
  return (resource) => isCovering(foldCase(resource), wanted) || isCovering(wanted, foldCase(resource));
}

/** Folds case, because names are recorded in lower case where a file system ignores it. */
function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Links are followed as far as the path exists. */
function resolveRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(resolveRealPath(parent), basename(path));
  }
}
