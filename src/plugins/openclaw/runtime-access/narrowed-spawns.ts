/**
 * Owns: which session a spawn makes whose child is to be held to something, as long as the ledger does not know it. Such a child may
 * outlive a reload.
 */
import type { EpochMs, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { shareInProcess } from "../host/share-in-process.ts";
import { readSpawnResult } from "../host/spawn-result.ts";

/** A spawn whose child is to be bounded. */
interface NarrowedSpawn {
  readonly parent: SessionKey;
  /** Absent until the host has told it. */
  readonly child?: SessionKey;
}

/** Returns the spawns of this process, by tool call. */
export const accessNarrowedSpawns = shareInProcess("narrowed-spawns", () => new Map<string, NarrowedSpawn>());

/** Returns since when this process notes them there: since it first opened a ledger. */
export const accessNarrowedSince = shareInProcess("narrowed-since", () => Date.now() as EpochMs);

/**
 * Notes, for a spawn with bounds, which session the host told as its child, or forgets the spawn where the host
 * refused it. Whether the ledger can record it or not, other children of the same session need wait no longer.
 */
export function noteNarrowedChild(call: string, event: Parameters<typeof readSpawnResult>[0]): void {
  const narrowedSpawns = accessNarrowedSpawns();
  const spawn = narrowedSpawns.get(call);
  if (!spawn) return;
  const result = readSpawnResult(event);
  if (result.kind === "refused") narrowedSpawns.delete(call);
  if (result.kind !== "accepted") return;
  const { parent } = spawn;
  narrowedSpawns.set(call, { parent, child: result.child.childSessionKey });
}

/**
 * Forgets the spawn with bounds that a tool call made. Where it could not be recorded and the host has told its child,
 * it stays: nothing else says that this session is to be held.
 */
export function forgetNarrowedSpawn(call: string, isRecorded: boolean): void {
  const narrowedSpawns = accessNarrowedSpawns();
  if (isRecorded || narrowedSpawns.get(call)?.child === undefined) narrowedSpawns.delete(call);
}

/**
 * True of a session that may be the child of a spawn whose bounds are not in the ledger yet. Where nobody knows who
 * spawned it, any spawn may be its own.
 */
export function isNarrowedChild(session: string, parent: SessionKey | undefined): boolean {
  return [...accessNarrowedSpawns().values()].some((spawn) =>
    spawn.child === undefined ? parent === undefined || parent === spawn.parent : session === spawn.child,
  );
}
