/** Owns: resources as people ask for them: files by their paths, everything else by its name. */
import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import {
  formatMachineName,
  formatResource,
  isClaimCovering,
  readResourceKind,
  nameFile,
} from "../../../agents/coordination/contracts/resource-names.ts";

/**
 * Returns the name of a resource as it is shown to somebody on this machine: a file by its path, with its machine
 * where that is another one.
 */
export function describeResource(resource: string): string {
  return formatResource(resource, formatMachineName(hostname()));
}

/**
 * Returns the predicate that a resource is the named one, lies below it or contains it, in upper or lower case. A
 * typed path matches recorded names of this machine, and those without a machine.
 */
export function createResourceFilter(resourceName: string): (resource: string) => boolean {
  const wanted = listResourceNames(resourceName).map(foldCase);
  return (resource) => {
    const name = foldCase(resource);
    return wanted.some((each) => isClaimCovering(name, each) || isClaimCovering(each, name));
  };
}

/** Lists the names that the ledger may have for a typed resource; a file has one with and one without its machine. */
function listResourceNames(resourceName: string): readonly string[] {
  if (readResourceKind(foldCase(resourceName)) !== undefined) return [resourceName];
  const path = resolveRealPath(resolve(resourceName)).replaceAll("\\", "/");
  return [nameFile(path), nameFile(path, formatMachineName(hostname()))];
}

/** Folds case, because names are recorded in lower case where a file system ignores it. */
function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Follows links as far as the path exists; what does not exist is kept as it is. */
function resolveRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(resolveRealPath(parent), basename(path));
  }
}
