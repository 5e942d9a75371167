/**
 * Owns: resources of files: real paths, of one machine where machines have files of their own. Does not own: what is in them (`look-at-file.ts`).
 *
 * 1. `..` of the path itself is taken as text, before any link is followed: the host's tools do so before they open a
 *    file, so `a/../b` is `b` whether `a` is missing or a link. `..` in the target of a link is taken where it stands.
 * 2. A name is folded where its folder ignores upper and lower case, and only there: the resource leads to the file still.
 *    A path that does not exist yet is folded as in the nearest folder that does.
 * 3. On Windows the separator is `/` in resources, and drive letters and servers are lower case. Short names (`PROGRA~1`)
 *    and drives that stand for a folder are not seen through.
 */
import { homedir } from "node:os";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import {
  nameFile,
  nameHardLinks,
  parseFileResource,
} from "../../agents/coordination/contracts/resource-names.ts";
import type { PathEnd, ResourceFiles } from "../../agents/coordination/ports/resource-files.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { nodeFileCalls, type FileCalls, type FileFacts } from "./file-calls.ts";
import { findChangedFiles } from "./find-changed-files.ts";
import { createLetterCaseLookup, type LetterCase } from "./letter-case.ts";
import { lookAtFile } from "./look-at-file.ts";
import { walkPath, type PathComponent } from "./walk-path.ts";

/** The longest path that any system takes. `..` and links may make it shorter than its resource may be. */
const PATH_CHARS_MAX = 32_768;

/**
 * Creates the access to the files of this machine by resource name: it names the file at a path, and looks at the file
 * of a name. `machine`: named in the resources; absent where a path means the same file on every machine.
 */
export function createRealFiles(calls: FileCalls = nodeFileCalls, machine?: string): ResourceFiles {
  const letters = createLetterCaseLookup(calls);
  const pathOf = (resource: string): string | undefined => {
    const file = parseFileResource(resource);
    return file?.machine === machine ? file?.path : undefined;
  };
  const nameInBounds = (name: string): string | undefined => {
    const resource = nameFile(name, machine);
    return resource.length <= BOUNDS.resourceCharsMax ? resource : undefined;
  };
  return {
    ...(machine !== undefined && { machine }),
    home: formatPathForResource(calls, homedir()),
    locate: async (path, folder, end) => {
      const absolute = resolveAbsolutePath(calls, path, folder);
      const name = absolute === undefined ? undefined : await findRealName(calls, letters, absolute, end);
      return name === undefined ? undefined : nameInBounds(name);
    },
    spelledName: (path, folder) => {
      const absolute = resolveAbsolutePath(calls, path, folder);
      const spelled = absolute === undefined ? undefined : formatPathForResource(calls, absolute);
      return Promise.resolve(spelled === undefined ? undefined : nameInBounds(spelled));
    },
    look: (resource) => {
      const path = pathOf(resource);
      return path === undefined ? Promise.resolve({ kind: "unreadable" }) : lookAtFile(calls, path);
    },
    sharedName: async (resource) => {
      const facts = await readFactsOrAbsence(calls, pathOf(resource));
      return facts && facts !== "absent" && facts.isFile() && facts.nlink > 1n
        ? nameHardLinks(facts.dev, facts.ino, machine)
        : undefined;
    },
    hasMoreEntries: async (resource, count) => {
      const path = pathOf(resource);
      const facts = await readFactsOrAbsence(calls, path);
      if (path === undefined || !facts || facts === "absent" || !facts.isDirectory()) return false;
      const names = await calls.someNames(path, count + 1).catch(() => []);
      return names.length > count;
    },
    stamp: async (resource) => {
      const facts = await readFactsOrAbsence(calls, pathOf(resource));
      if (facts === "absent") return "absent";
      return facts && !facts.isDirectory() ? formatStamp(facts) : undefined;
    },
    findChanged: (folder, sinceMs) => findChangedFiles(calls, folder, sinceMs),
  };
}

/**
 * Returns the facts of a path, of a link itself; `absent` where nothing is there, `undefined` where it cannot be seen
 * or there is no path.
 */
async function readFactsOrAbsence(
  calls: FileCalls,
  path: string | undefined,
): Promise<FileFacts | "absent" | undefined> {
  if (path === undefined) return undefined;
  try {
    return await calls.lstat(path);
  } catch (error) {
    return readSystemErrorCode(error) === "ENOENT" ? "absent" : undefined;
  }
}

/**
 * Formats a text that differs after every change of a file, also one that keeps size and times. Nobody sets the time
 * of the last change of an inode.
 */
function formatStamp({ dev, ino, size, mtimeNs, ctimeNs }: FileFacts): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join("-");
}

/** Returns the absolute path as text, without a look at the disk; `undefined` for what can be no path. */
function resolveAbsolutePath({ path: paths }: FileCalls, path: string, folder: string): string | undefined {
  if (path === "" || path.length + folder.length > PATH_CHARS_MAX) return undefined;
  if (path.includes("\0") || folder.includes("\0")) return undefined;
  if (!paths.isAbsolute(path) && !paths.isAbsolute(folder)) return undefined;
  // Half a surrogate pair reaches the file system as U+FFFD.
  return paths.resolve(folder, path).toWellFormed();
}

/** Formats a path as resources have it: with `/`, and a root of one spelling. */
function formatPathForResource(calls: FileCalls, path: string): string {
  const { root } = calls.path.parse(path);
  return normalizeRootName(calls, root) + path.slice(root.length).replaceAll(calls.path.sep, "/");
}

/**
 * Returns the name of the place that a path leads to, with links followed as far as `end` says; `undefined` where it
 * leads nowhere.
 */
async function findRealName(
  calls: FileCalls,
  letters: LetterCase,
  path: string,
  end: PathEnd | undefined,
): Promise<string | undefined> {
  const plain = await findNameWithoutLinks(calls, letters, path);
  if (plain !== undefined) return plain;
  const places = await tryWalkPath(calls, path, end);
  return places && formatNameOfPlaces(calls, letters, places);
}

/**
 * Returns the name of a path that has no link, without a look at each of its components. `undefined` where that does not
 * tell: nothing is there yet, or a name has letters to fold and nothing is known of its folder.
 */
async function findNameWithoutLinks(
  calls: FileCalls,
  letters: LetterCase,
  path: string,
): Promise<string | undefined> {
  const { root } = calls.path.parse(path);
  const names = path.slice(root.length).split(calls.path.sep);
  const formatName = async (name: string, index: number): Promise<string | undefined> => {
    const folded = foldName(name);
    if (folded === name) return name;
    const folder = await readFactsOrAbsence(calls, calls.path.join(root, ...names.slice(0, index)));
    const isIgnored = folder && folder !== "absent" ? letters.recall(folder) : undefined;
    return isIgnored === undefined ? undefined : isIgnored ? folded : name;
  };
  const realPath = calls.realpath(path).catch(() => undefined);
  const spelled = await Promise.all(names.map(formatName));
  if ((await realPath) !== path || spelled.includes(undefined)) return undefined;
  return normalizeRootName(calls, root) + spelled.join("/");
}

/** Returns the places on the way of a path; `undefined` where it leads nowhere, or there is no such drive. */
async function tryWalkPath(
  calls: FileCalls,
  path: string,
  end: PathEnd | undefined,
): Promise<readonly PathComponent[] | undefined> {
  try {
    return await walkPath(calls, path, end);
  } catch {
    // There is no such drive.
    return undefined;
  }
}

/** Joins the names of places to one, each folded where its folder ignores upper and lower case. */
async function formatNameOfPlaces(
  calls: FileCalls,
  letters: LetterCase,
  places: readonly PathComponent[],
): Promise<string> {
  const [root, ...below] = places;
  const names: string[] = [];
  const folders: { path: string; facts: FileFacts }[] = [];
  let before = root;
  for (const place of below) {
    if (before?.what === "folder" && before.facts) folders.push({ path: before.path, facts: before.facts });
    const folded = foldName(place.name);
    const entry = place.facts && { name: place.name, facts: place.facts };
    const isFolded = folded !== place.name && (await letters.isIgnored(folders, entry));
    names.push(isFolded ? folded : place.name);
    before = place;
  }
  return normalizeRootName(calls, root?.name ?? "") + names.join("/");
}

/** Returns the root in lower case and with `/` on Windows, as it is elsewhere. */
function normalizeRootName(calls: FileCalls, root: string): string {
  if (calls.path.sep !== "\\") return root;
  return root
    .replace(/^\\\\\?\\(?=[a-z]:)/iu, "")
    .replaceAll("\\", "/")
    .toLowerCase();
}

/**
 * Returns one spelling for names that a file system without upper and lower case takes for the same. Letter by letter:
 * what `toLowerCase` makes of a text depends on where in a word a sigma stands, and may be longer.
 */
function foldName(name: string): string {
  return Array.from(name.normalize("NFC"), foldLetter).join("").normalize("NFC");
}

function foldLetter(letter: string): string {
  if (letter === "ς") return "σ";
  const lower = letter.toLowerCase();
  return lower.length === letter.length ? lower : letter;
}
