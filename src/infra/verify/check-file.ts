/**
 * Owns: whether a file below a workspace is there, and what its hash is.
 *
 * A plan, which a model may have written, names the path, and an agent may have put links anywhere below its workspace. Where
 * the path leads is found without opening anything; what is opened is asked again where it is. A file outside has no
 * verdict, there or not, so that nobody learns from one what is there. `..` is taken as text, before any link.
 */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readlink, realpath, type FileHandle } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import { nameSystemError } from "../../platform/system-error.ts";
import { nodeFileCalls } from "../files/file-calls.ts";
import { walkPath, type PathComponent } from "../files/walk-path.ts";
import { createPassOrFailVerdict, type CheckOf } from "./check-answer.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

/** The folder in which a check looks for a file. */
export interface CheckedWorkspace {
  /** Absolute. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** The result of looking for a file. */
type FileLookup =
  | { readonly kind: "file"; readonly sha256?: string }
  /** A folder, a device, a socket. */
  | { readonly kind: "other" | "missing" }
  | { readonly kind: "none"; readonly answer: CheckAnswer };

/**
 * Returns the verdict whether a file is in the workspace, with the hash that the check names, if any. `absent` turns
 * it round: nothing is there, or no file with this hash. No verdict where the place cannot be looked at.
 */
export async function checkFile(
  check: CheckOf<"file">,
  { key }: CheckRequest,
  workspace: CheckedWorkspace,
): Promise<CheckAnswer> {
  const look = await lookFor(check, workspace);
  if (look.kind === "none") return look.answer;
  const isAsked = look.kind === "file" && look.sha256 === check.sha256;
  if (check.absent !== true) return createPassOrFailVerdict(key, isAsked);
  return createPassOrFailVerdict(key, check.sha256 === undefined ? look.kind === "missing" : !isAsked);
}

async function lookFor(check: CheckOf<"file">, workspace: CheckedWorkspace): Promise<FileLookup> {
  const root = await resolveWorkspaceRoot(workspace.path);
  if (root === undefined) return createUndecidedLook("unavailable", "the agent's workspace is not there");
  const path = resolvePathBelow(root, check.path);
  if (path === undefined)
    return createUndecidedLook("failed", "the check's path is not one below the workspace");
  try {
    return await lookAtPlace(await walkPath(nodeFileCalls, path), { root, check, signal: workspace.signal });
  } catch (error) {
    return createUndecidedLook("failed", `the file cannot be looked at (${nameSystemError(error)})`);
  }
}

function createUndecidedLook(because: "failed" | "unavailable", message: string): FileLookup {
  return { kind: "none", answer: createNoVerdict(because, message) };
}

async function resolveWorkspaceRoot(workspace: string): Promise<string | undefined> {
  if (!isAbsolute(workspace)) return undefined;
  return realpath(workspace).catch(() => undefined);
}

/** Returns the absolute path of a file below the root; `undefined` for a path that is none or leads out of it. */
function resolvePathBelow(root: string, path: string): string | undefined {
  if (path.includes("\0") || !path.isWellFormed() || isAbsolute(path)) return undefined;
  const whole = resolve(root, path);
  return isBelow(root, whole) ? whole : undefined;
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The file that a check looks for, and the folder it must be in. */
interface FileSearchRequest {
  readonly root: string;
  readonly check: CheckOf<"file">;
  readonly signal: AbortSignal;
}

/** Says whether the place that a path leads to is a file, and of what hash where the check asks for one. */
async function lookAtPlace(
  places: readonly PathComponent[] | undefined,
  looking: FileSearchRequest,
): Promise<FileLookup> {
  const place = places?.at(-1);
  if (!place) return createUndecidedLook("failed", "the check's path leads nowhere");
  if (!isBelow(looking.root, place.path))
    return createUndecidedLook("failed", "the check's path leads out of the workspace");
  if (place.what === "hidden")
    return createUndecidedLook("failed", "a folder on the way may not be searched");
  if (place.what === "missing") return { kind: "missing" };
  if (place.facts?.isFile() !== true) return { kind: "other" };
  return looking.check.sha256 === undefined ? { kind: "file" } : await lookIntoFile(place.path, looking);
}

/** Opens and hashes a file. There is no answer where it was replaced or changed meanwhile, or is too large. */
async function lookIntoFile(path: string, { root, signal }: FileSearchRequest): Promise<FileLookup> {
  // Without waiting for a writer, should a pipe have taken the file's place.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const before = await file.stat({ bigint: true });
    // Between the look and now, any folder on the way may have become a link.
    if (!before.isFile() || !isBelow(root, await findRealPath(file, path)))
      return createUndecidedLook("failed", "the file was replaced while it was looked at");
    if (before.size > VERIFY_LIMITS.fileBytesMax) return createTooLargeLook();
    const sha256 = await hashOpenFile(file, signal);
    if (sha256 === undefined) return createTooLargeLook();
    const after = await file.stat({ bigint: true });
    const isSame = after.size === before.size && after.mtimeNs === before.mtimeNs;
    return isSame
      ? { kind: "file", sha256 }
      : createUndecidedLook("failed", "the file changed while it was read");
  } finally {
    await file.close();
  }
}

function createTooLargeLook(): FileLookup {
  return createUndecidedLook("failed", `the file has more than ${VERIFY_LIMITS.fileBytesMax} bytes`);
}

/** Returns the path of an open file without links, as Linux tells it. Elsewhere the path is followed again. */
async function findRealPath(file: FileHandle, path: string): Promise<string> {
  try {
    return await readlink(`/proc/self/fd/${file.fd}`);
  } catch {
    return realpath(path);
  }
}

/** Hashes a file; `undefined` when it grows beyond the bound. */
async function hashOpenFile(file: FileHandle, signal: AbortSignal): Promise<string | undefined> {
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafe(VERIFY_LIMITS.chunkBytes);
  let position = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return hash.digest("hex");
    position += bytesRead;
    if (position > VERIFY_LIMITS.fileBytesMax) return undefined;
    hash.update(chunk.subarray(0, bytesRead));
  }
}
