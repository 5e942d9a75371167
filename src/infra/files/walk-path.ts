/** Owns: where a path leads, component by component as the kernel goes. Does not own: how the place is then called. */
import type { PathEnd } from "../../agents/coordination/ports/resource-files.ts";
import { readErrorCode, type FileCalls, type FileFacts } from "./file-calls.ts";

/** One component of where the path leads. The first of them is the root. */
export interface Place {
  /** As the path or the link had it. */
  readonly name: string;
  /** The whole path up to here, without a link in it. */
  readonly path: string;
  readonly what: "folder" | "file" | "missing" | "hidden";
  /** Absent for what is missing, or hidden by a folder that may not be searched. */
  readonly facts?: FileFacts;
}

/** As many as Linux follows. */
const LINKS_MAX = 40;

/** Errors that say that a path cannot lead anywhere, now or after something is created. */
const NOWHERE: readonly (string | undefined)[] = ["ENAMETOOLONG", "ENOTDIR", "ELOOP", "EINVAL"];

/** More components than these are looked at one after the other. */
const AHEAD_MAX = 32;

/**
 * `path` is absolute. A link at its end is not followed where `end` is `entry`. `undefined` where it leads nowhere: a loop of links, or
 * a file where a folder would have to be.
 */
export async function walkPath(
  fileCalls: FileCalls,
  path: string,
  end: PathEnd = "target",
): Promise<readonly Place[] | undefined> {
  const root = fileCalls.path.parse(path).root;
  const calls = lookAhead(fileCalls, path, root);
  let places: Place[] = [await placeAt(calls, root, root)];
  const ahead = componentsOf(calls, path.slice(root.length));
  let links = 0;
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    // The names of a link's target come before the rest of the path, so the last name of all is the path's own.
    const next = await stepInto(calls, places, { name, isFollowed: end === "target" || ahead.length > 0 });
    if (!next) return undefined;
    if (next.link === undefined) {
      places = next.places;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) return undefined;
    const linkRoot = calls.path.parse(next.link).root;
    if (linkRoot !== "") {
      const from = calls.path.resolve(places.at(-1)?.path ?? root, linkRoot);
      places = [await placeAt(calls, from, from)];
    }
    ahead.push(...componentsOf(calls, next.link.slice(linkRoot.length)));
  }
  return places;
}

/** Looks at all components at once: where none is a link, which is usual, the walk waits only once. */
function lookAhead(calls: FileCalls, path: string, root: string): FileCalls {
  const names = componentsOf(calls, path.slice(root.length)).toReversed();
  if (names.length > AHEAD_MAX || names.includes("..")) return calls;
  const looks = new Map<string, Promise<FileFacts>>();
  let prefix = root;
  for (const name of ["", ...names]) {
    prefix = calls.path.join(prefix, name);
    const look = calls.lstat(prefix);
    // The walk may never come there.
    look.catch(() => undefined);
    looks.set(prefix, look);
  }
  return { ...calls, lstat: (place) => looks.get(place) ?? calls.lstat(place) };
}

/** The last one first. */
function componentsOf(calls: FileCalls, path: string): string[] {
  const names = path.split(calls.path.sep === "\\" ? /[\\/]/u : "/");
  return names.filter((name) => name !== "" && name !== ".").reverse();
}

type Step = { readonly places: Place[]; readonly link?: undefined } | { readonly link: string };

async function stepInto(
  calls: FileCalls,
  places: Place[],
  { name, isFollowed }: { readonly name: string; readonly isFollowed: boolean },
): Promise<Step | undefined> {
  const here = places.at(-1);
  if (!here || here.what === "file") return undefined;
  if (name === "..") return stepUp(places, here);
  const path = calls.path.join(here.path, name);
  if (here.what !== "folder") return { places: [...places, { name, path, what: here.what }] };
  try {
    const place = await placeAt(calls, path, name);
    if (isFollowed && place.facts?.isSymbolicLink() === true) return { link: await calls.readlink(path) };
    return { places: [...places, place] };
  } catch (error) {
    const code = readErrorCode(error);
    if (NOWHERE.includes(code)) return undefined;
    return { places: [...places, createUnseenPlace(path, name, code)] };
  }
}

/** Returns a place that cannot be looked at: because there is nothing, or for another reason. */
function createUnseenPlace(path: string, name: string, code: string | undefined): Place {
  return { name, path, what: code === "ENOENT" ? "missing" : "hidden" };
}

/** Above what is missing there is nothing to go up from. */
function stepUp(places: Place[], here: Place): Step | undefined {
  if (here.what === "missing") return undefined;
  return { places: places.length === 1 ? places : places.slice(0, -1) };
}

async function placeAt(calls: FileCalls, path: string, name: string): Promise<Place> {
  const facts = await calls.lstat(path);
  return { name, path, what: facts.isDirectory() ? "folder" : "file", facts };
}
