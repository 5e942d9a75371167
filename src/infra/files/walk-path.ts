/** Owns: where a path leads, component by component as the kernel goes. Does not own: how the place is then called. */
import type { PathEnd } from "../../agents/coordination/ports/resource-files.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import type { FileCalls, FileFacts } from "./file-calls.ts";

/** One component of where the path leads. The first of them is the root. */
export interface PathComponent {
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
 * Returns the places from the root to where an absolute path leads, with links followed; `undefined` where it leads
 * nowhere: a loop of links, or a file where a folder would have to be. A link at its end is not followed where `end`
 * is `entry`, nor is one that is removed before; all below the latter is missing.
 */
export async function walkPath(
  fileCalls: FileCalls,
  path: string,
  end: PathEnd = "target",
): Promise<readonly PathComponent[] | undefined> {
  const root = fileCalls.path.parse(path).root;
  const calls = fetchFactsAhead(fileCalls, path, root);
  let places: PathComponent[] = [await lookAtPlace(calls, root, root)];
  const ahead = splitIntoComponents(calls, path.slice(root.length));
  const namesBelowLast = countNamesBelowLast(end);
  let links = 0;
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    // The names of a link's target come before the rest of the path, so the last names of all are the path's own.
    const next = await stepInto(calls, places, { name, isLast: ahead.length === namesBelowLast });
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
      places = [await lookAtPlace(calls, from, from)];
    }
    ahead.push(...splitIntoComponents(calls, next.link.slice(linkRoot.length)));
  }
  return places;
}

/** Returns how many names are behind the last one that is there; -1 where links are followed to the end. */
function countNamesBelowLast(end: PathEnd): number {
  if (typeof end === "object") return end.namesBelowRemoved;
  return end === "entry" ? 0 : -1;
}

/**
 * Returns calls that have begun to look at all components at once, where they are 32 at most and none is `..`. Where
 * none is a link, which is usual, the walk waits only once.
 */
function fetchFactsAhead(calls: FileCalls, path: string, root: string): FileCalls {
  const names = splitIntoComponents(calls, path.slice(root.length)).toReversed();
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

/** Splits a path into its components, the last one first. */
function splitIntoComponents(calls: FileCalls, path: string): string[] {
  const names = path.split(calls.path.sep === "\\" ? /[\\/]/u : "/");
  return names.filter((name) => name !== "" && name !== ".").reverse();
}

/** The components after one step along a path, or the link that it came to. */
type WalkStep = { readonly places: PathComponent[]; readonly link?: undefined } | { readonly link: string };

/**
 * Returns the places with one component more, or a link's target to follow; `undefined` for nowhere. Below the last one that is there
 * all is missing.
 */
async function stepInto(
  calls: FileCalls,
  places: PathComponent[],
  { name, isLast }: { readonly name: string; readonly isLast: boolean },
): Promise<WalkStep | undefined> {
  const here = places.at(-1);
  if (!here || here.what === "file") return undefined;
  if (name === "..") return stepUp(places, here);
  const path = calls.path.join(here.path, name);
  if (here.what !== "folder") return { places: [...places, { name, path, what: here.what }] };
  try {
    const place = await lookAtPlace(calls, path, name);
    if (isLast) return { places: [...places, { ...place, what: "missing" }] };
    if (place.facts?.isSymbolicLink() === true) return { link: await calls.readlink(path) };
    return { places: [...places, place] };
  } catch (error) {
    const code = readSystemErrorCode(error);
    if (NOWHERE.includes(code)) return undefined;
    return { places: [...places, createUnseenPlace(path, name, code)] };
  }
}

/** Returns a place that cannot be looked at: because there is nothing, or for another reason. */
function createUnseenPlace(path: string, name: string, code: string | undefined): PathComponent {
  return { name, path, what: code === "ENOENT" ? "missing" : "hidden" };
}

/** Returns the places without the last one, for `..`; the root stays. `undefined` where the last one is missing. */
function stepUp(places: PathComponent[], here: PathComponent): WalkStep | undefined {
  if (here.what === "missing") return undefined;
  return { places: places.length === 1 ? places : places.slice(0, -1) };
}

/** Returns what is at a path, of a link itself. Rejects where it cannot be seen. */
async function lookAtPlace(calls: FileCalls, path: string, name: string): Promise<PathComponent> {
  const facts = await calls.lstat(path);
  return { name, path, what: facts.isDirectory() ? "folder" : "file", facts };
}
