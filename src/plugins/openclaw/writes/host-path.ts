/**
 * Owns: which file a path leads to in the host's tools. Does not own: links, and what is really there
 * (`ports/resource-files.ts`).
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, resolve, win32 } from "node:path";
import { fileURLToPath } from "node:url";
import { withoutArgumentEnd } from "./param.ts";

/** A longer one is no path of any file system, and is not looked at. */
export const PATH_CHARS_MAX = 4_096;

/** Resolves a path as `read`, `write` and `edit` do. */
export function resolveFileToolPath(path: string, folder: string): string | undefined {
  const repaired = withOfficeEnding(withoutArgumentEnd(path));
  if (repaired.trim() === "" || repaired.length > PATH_CHARS_MAX) return undefined;
  return resolve(folder, withHome(withoutFileUrl(withoutAt(repaired, folder))));
}

/** Resolves a path as `apply_patch` does: without file URLs, and with nothing repaired. */
export function resolvePatchPath(path: string, folder: string): string | undefined {
  if (path === "" || path.length > PATH_CHARS_MAX) return undefined;
  return resolve(folder, withHome(withoutAt(path, folder)));
}

/** Parses a path as anyone would read it; the result may be relative. */
export function parsePlainPath(path: string): string | undefined {
  if (path.trim() === "" || path.length > PATH_CHARS_MAX) return undefined;
  return withHome(withoutFileUrl(path));
}

/** A folder within another. Where `..` leads is only known where links are followed, so it is not taken here. */
export function resolveFolder(folder: string, path: string): string {
  return isAbsolute(path) ? path : `${folder}/${path}`;
}

/** Models name files `@name`; that is the file `name`, unless a file or folder of that very name is there. */
function withoutAt(path: string, folder: string): string {
  if (!path.startsWith("@")) return path;
  const name = path.slice(1);
  return mayBeLiteral(name) && isExistingName(path, folder) ? path : name;
}

function mayBeLiteral(name: string): boolean {
  const leadsAway = name === "" || name === "~" || name.startsWith("~/") || name.startsWith("~\\");
  return !leadsAway && !/^file:\/\//i.test(name) && !isAbsolute(name) && !win32.isAbsolute(name);
}

function isExistingName(path: string, folder: string): boolean {
  const [first = path] = path.split("/");
  return existsSync(resolve(folder, path)) || existsSync(resolve(folder, first));
}

function withoutFileUrl(path: string): string {
  if (!path.startsWith("file://")) return path;
  try {
    return fileURLToPath(path);
  } catch {
    return path;
  }
}

function withHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? `${homedir()}${path.slice(1)}` : path;
}

const OFFICE_ENDING = /\.(doc|ppt|xls)(?:odex|codex|xodex|xcodex)$/iu;

/** Adds the ending that the host's tools mend: some models write `.docodex` for `.docx`. */
function withOfficeEnding(path: string): string {
  return path.replace(OFFICE_ENDING, (_ending, family: string) => `.${family.toLowerCase()}x`);
}
