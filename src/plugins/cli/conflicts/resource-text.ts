/** Owns: resources as people ask for them: files by their paths, everything else by its name. */
import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import {
  formatMachine,
  formatResource,
  isCovering,
  kindOf,
  nameFile,
} from "../../../agents/coordination/contracts/resource-names.ts";

/** Describes a resource to somebody on this machine. */
export function describeResource(resource: string): string {
  return formatResource(resource, formatMachine(hostname()));
}

/** Creates a filter for resources: the named one, and whatever lies below it. A path is one of this machine, or of all. */
export function createResourceFilter(resourceName: string): (resource: string) => boolean {
  const wanted = listNames(resourceName).map(foldCase);
  return (resource) => {
    const name = foldCase(resource);
    return wanted.some((each) => isCovering(name, each) || isCovering(each, name));
  };
}

function listNames(resourceName: string): readonly string[] {
  if (kindOf(foldCase(resourceName)) !== undefined) return [resourceName];
  const path = resolveRealPath(resolve(resourceName)).replaceAll("\\", "/");
  return [nameFile(path), nameFile(path, formatMachine(hostname()))];
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
