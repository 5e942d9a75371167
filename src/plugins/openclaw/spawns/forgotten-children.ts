/**
 * Owns: what a session whose history was compacted is told of its children, and refusing it a spawn that repeats one. Spawns
 * since then are never such a repetition: two equal spawns of one message are two children.
 */
import type { EpochMs, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import {
  describeChildren,
  explainRepeated,
  findRepeatedChild,
  listChildren,
} from "../../../agents/coordination/runtime/children-of-session.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { SpawnReading } from "./spawn-request.ts";

/** Records that the history of a session was compacted. */
export async function noteCompaction(runtime: SharedRuntime, session: SessionKey): Promise<void> {
  await runtime.compactions.record(session, { atMs: Date.now() as EpochMs });
}

/** Returns what the first prompts after a compaction say of the session's children: those of one run. */
export async function recallChildren(
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

/** Returns why a spawn is refused that repeats a child from before the compaction; `undefined` where it may happen. */
export async function findRepetition(
  runtime: SharedRuntime,
  reading: SpawnReading,
): Promise<string | undefined> {
  const { compaction: settings } = runtime.config;
  if (reading.kind !== "spawn" || reading.isMeantAgain || settings.repeats === "allow") return undefined;
  const { sourceSession, spawn, input } = reading.request;
  const compaction = runtime.compactions.find(sourceSession);
  if (!compaction) return undefined;
  const { reads } = await runtime.coordinator();
  const child = findRepeatedChild(await listChildren(reads, sourceSession), {
    agentId: spawn.agentId,
    runner: spawn.runner,
    sha256: input.ref.sha256,
    compactedAtMs: compaction.atMs,
    completedSinceMs: (Date.now() - settings.repeatMs) as EpochMs,
  });
  return child && explainRepeated(child);
}
