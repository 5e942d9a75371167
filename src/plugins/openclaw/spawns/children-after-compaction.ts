/**
 * Owns: what a session whose history was compacted is told of its children, and refusing it a spawn that repeats one. Spawns
 * since then are never such a repetition: two equal spawns of one message are two children.
 */
import type { EpochMs, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import {
  describeChildren,
  explainRepeatedSpawn,
  findRepeatedChild,
  listChildrenOfSession,
} from "../../../agents/coordination/runtime/children-of-session.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { SpawnReading } from "./spawn-request.ts";

/** Records in the runtime and the host's session entry that the history of a session was compacted now. */
export async function noteCompaction(runtime: SharedRuntime, session: SessionKey): Promise<void> {
  await runtime.compactions.record(session, { atMs: Date.now() as EpochMs });
}

/**
 * Returns the note on a session's children for the prompts of the first run after a compaction, and records that run
 * as the one that is told; `undefined` for any other run, without a compaction, and where the setting is off.
 */
export async function describeCompactedChildren(
  runtime: SharedRuntime,
  session: SessionKey,
  runId: string | undefined,
): Promise<string | undefined> {
  const { compactions, config } = runtime;
  const compaction = config.compaction.tellChildren ? compactions.find(session) : undefined;
  if (!compaction) return undefined;
  const { atMs, toldIn } = compaction;
  if (toldIn !== undefined && toldIn !== runId) return undefined;
  const { reads } = await runtime.coordinator();
  const note = await describeChildren(reads, session);
  // The prompt need not wait until the host has written it.
  if (toldIn === undefined) void compactions.record(session, { atMs, toldIn: runId ?? "" });
  return note;
}

/**
 * Returns the reason to refuse a spawn that repeats a child of the session from before its compaction, still open or
 * just completed; `undefined` where it may happen, as when it says that it is meant again.
 */
export async function explainRepetition(
  runtime: SharedRuntime,
  reading: SpawnReading,
): Promise<string | undefined> {
  const { compaction: settings } = runtime.config;
  if (reading.kind !== "spawn" || reading.isMeantAgain || settings.repeats === "allow") return undefined;
  const { sourceSession, spawn, input } = reading.request;
  const compaction = runtime.compactions.find(sourceSession);
  if (!compaction) return undefined;
  const { reads } = await runtime.coordinator();
  const child = findRepeatedChild(await listChildrenOfSession(reads, sourceSession), {
    agentId: spawn.agentId,
    runner: spawn.runner,
    sha256: input.ref.sha256,
    compactedAtMs: compaction.atMs,
    completedSinceMs: (Date.now() - settings.repeatMs) as EpochMs,
  });
  return child && explainRepeatedSpawn(child);
}
