/**
 * Owns: which file a path leads to in the host's tools. Does not own: links, and what is really there
 * (`ports/resource-files.ts`).
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, resolve, win32 } from "node:path";
import { fileURLToPath } from "node:url";
import { removeArgumentEnd } from "./param.ts";

/** A longer one is no path of any file system, and is not looked at. */
export const PATH_CHARS_MAX = 4_096;

/**
 * Returns the absolute path that `read`, `write` and `edit` make of a path argument, which they also repair;
 * `undefined` for one that is blank or too long.
 */
export function resolveFileToolPath(path: string, folder: string): string | undefined {
  const repaired = repairOfficeEnding(removeArgumentEnd(path));
  if (repaired.trim() === "" || repaired.length > PATH_CHARS_MAX) return undefined;
  return resolve(folder, replaceTilde(convertFileUrl(removeAtSign(repaired, folder))));
}

/**
 * Returns the absolute path that `apply_patch` makes of a path in a patch: `@` and `~` count there, file URLs and
 * repaired endings do not; `undefined` for one that is empty or too long.
 */
export function resolvePatchPath(path: string, folder: string): string | undefined {
  if (path === "" || path.length > PATH_CHARS_MAX) return undefined;
  return resolve(folder, replaceTilde(removeAtSign(path, folder)));
}

/**
 * Returns a path argument with `~` and `file://` resolved, which may still be relative; `undefined` for one that is
 * blank or too long.
 */
export function parsePlainPath(path: string): string | undefined {
  if (path.trim() === "" || path.length > PATH_CHARS_MAX) return undefined;
  return replaceTilde(convertFileUrl(path));
}

/**
 * Returns the path behind the folder, or as it is where it is absolute. Where `..` leads is only known where links are
 * followed, so it stays.
 */
export function joinFolder(folder: string, path: string): string {
  return isAbsolute(path) ? path : `${folder}/${path}`;
}

/**
 * Returns a path without the `@` with which models name files; as it is where it, or the first name in it, exists with
 * the `@` below the folder.
 */
function removeAtSign(path: string, folder: string): string {
  if (!path.startsWith("@")) return path;
  const name = path.slice(1);
  return mayNameBeginWithAt(name) && isExistingPath(path, folder) ? path : name;
}

/** True where `@` and this name could be the name of a file: a name that does not lead away from the folder. */
function mayNameBeginWithAt(name: string): boolean {
  const leadsAway = name === "" || name === "~" || name.startsWith("~/") || name.startsWith("~\\");
  return !leadsAway && !/^file:\/\//i.test(name) && !isAbsolute(name) && !win32.isAbsolute(name);
}

function isExistingPath(path: string, folder: string): boolean {
  const [first = path] = path.split("/");
  return existsSync(resolve(folder, path)) || existsSync(resolve(folder, first));
}

function convertFileUrl(path: string): string {
  if (!path.startsWith("file://")) return path;
  try {
    return fileURLToPath(path);
  } catch {
    return path;
  }
}

function replaceTilde(path: string): string {
  return path === "~" || path.startsWith("~/") ? `${homedir()}${path.slice(1)}` : path;
}

const OFFICE_ENDING = /\.(doc|ppt|xls)(?:odex|codex|xodex|xcodex)$/iu;

/** Repairs an ending as the host's tools do: some models write `.docodex` for `.docx`. */
function repairOfficeEnding(path: string): string {
  return path.replace(OFFICE_ENDING, (_ending, family: string) => `.${family.toLowerCase()}x`);
}
