/**
 * Owns: finding which files below a folder have changed since a time. It is bounded in files and in time, follows no links, and
 * passes over what tools keep for themselves.
 */
import type { FoundChanges } from "../../agents/coordination/ports/resource-files.ts";
import { giveWay } from "../../platform/give-way.ts";
import type { FileCalls } from "./file-calls.ts";

/** Files and folders that are looked at. */
const LOOKED_AT_MAX = 20_000;
const SEARCH_MS_MAX = 300;
const FOUND_MAX = 256;
/** Version control and package managers write there: that is nobody's work. */
const PASSED_OVER: ReadonlySet<string> = new Set([
  ".git",
  ".hg",
  ".jj",
  ".svn",
  "node_modules",
  "__pycache__",
]);
/** The clock that stamps files lags behind by up to one tick of the kernel. */
const TICK_MS = 20;

/** A search for files that changed since a time, and how far it is. */
interface FileSearch {
  readonly calls: FileCalls;
  readonly sinceNs: bigint;
  readonly endsAtMs: number;
  readonly paths: string[];
  /** Folders that are still to be looked into. */
  readonly ahead: string[];
  lookedAt: number;
}

/**
 * Returns the paths of files below a folder that changed since a time, passing over folders of version control and
 * package managers; `isWhole` is false where a bound cut the search short.
 */
export async function findChangedFiles(
  calls: FileCalls,
  folder: string,
  sinceMs: number,
): Promise<FoundChanges> {
  const search: FileSearch = {
    calls,
    sinceNs: BigInt(Math.floor(sinceMs) - TICK_MS) * 1_000_000n,
    endsAtMs: performance.now() + SEARCH_MS_MAX,
    paths: [],
    ahead: [folder],
    lookedAt: 0,
  };
  for (let next = search.ahead.shift(); next !== undefined; next = search.ahead.shift()) {
    if (!(await scanFolder(search, next))) return { paths: search.paths, isWhole: false };
    await giveWay();
  }
  return { paths: search.paths, isWhole: true };
}

/**
 * Adds a folder's changed files to the result, and its subfolders to those still to be scanned. Returns false where a
 * bound was reached.
 */
async function scanFolder(search: FileSearch, folder: string): Promise<boolean> {
  try {
    for await (const { name, kind } of search.calls.entries(folder)) {
      search.lookedAt += 1;
      if (isAtBound(search)) return false;
      const path = search.calls.path.join(folder, name);
      if (kind === "folder" && !PASSED_OVER.has(name)) search.ahead.push(path);
      if (kind === "file" && (await hasChangedSince(search, path))) search.paths.push(path);
    }
  } catch {
    // It is gone, or may not be looked into: then nobody can say more of it.
  }
  return true;
}

function isAtBound({ lookedAt, endsAtMs, paths }: FileSearch): boolean {
  return lookedAt > LOOKED_AT_MAX || paths.length >= FOUND_MAX || performance.now() > endsAtMs;
}

/**
 * Returns whether a file's inode changed since the search's time; false where it cannot be seen. Unlike the time of
 * the content, no program sets that of the inode.
 */
async function hasChangedSince({ calls, sinceNs }: FileSearch, path: string): Promise<boolean> {
  try {
    return (await calls.lstat(path)).ctimeNs >= sinceNs;
  } catch {
    return false;
  }
}
