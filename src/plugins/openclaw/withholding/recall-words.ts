/**
 * Owns: learning what a session and its children said before the plugin was loaded. The host may send it to a chat only now, and what
 * was remembered of it went with the process before. The host's transcripts have it.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { listChildren } from "../../../agents/coordination/runtime/children-of-session.ts";
import { messageOf } from "../host/host-runs.ts";
import { createRecent } from "../../../agents/coordination/std/recent.ts";
import { accessGateMemory } from "../runtime-access/gate-memory.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { readSaid, type Said } from "./message-parts.ts";

/** Resolves when the words of the session's children are known, as far as the host has them. Asks once for each session. Never throws. */
export type RecallWords = (runtime: SharedRuntime, session: SessionKey) => Promise<void>;

const SESSIONS_MAX = 10_000;
/** The newest children, whose last words are compared. */
const CHILDREN_MAX = 8;

export function createRecallWords(): RecallWords {
  const recalls = createRecent<Promise<void>>(SESSIONS_MAX);
  const loadedAtMs = Date.now();
  return async (runtime, session) => {
    const recall = recalls.get(session) ?? recallWords(runtime, session, loadedAtMs);
    recalls.set(session, recall);
    try {
      await recall;
    } catch (error) {
      recalls.delete(session);
      runtime.logger.warn(
        { session },
        `cannot tell what children said before the plugin was loaded: ${messageOf(error)}`,
      );
    }
  };
}

async function recallWords(runtime: SharedRuntime, session: SessionKey, beforeMs: number): Promise<void> {
  const { spoken } = accessGateMemory();
  const children = await listEarlierChildren(runtime, session, beforeMs);
  if (children.length === 0) return;
  let firstAtMs = Number.POSITIVE_INFINITY;
  for (const child of children) {
    const last = (await readAllSaid(runtime, child)).find(({ words }) => words !== "");
    if (!last) continue;
    spoken.recallOfChild(session, child, last.words);
    firstAtMs = Math.min(firstAtMs, last.atMs);
  }
  // A task that the parent wrote before does not make a child's words its own.
  for (const { words, toTools, atMs } of await readAllSaid(runtime, session))
    if (atMs > firstAtMs) {
      spoken.recallOwn(session, words);
      spoken.recallToTools(session, toTools.join("\n"));
    }
}

/** Lists children that may have spoken before that time, the newest first. */
async function listEarlierChildren(
  runtime: SharedRuntime,
  session: SessionKey,
  beforeMs: number,
): Promise<SessionKey[]> {
  const { reads } = await runtime.coordinator();
  return (await listChildren(reads, session))
    .filter(({ step }) => step.admittedAtMs < beforeMs)
    .flatMap(({ step }) => step.childSessionKey ?? [])
    .slice(0, CHILDREN_MAX);
}

interface SaidAt extends Said {
  /** Unix time in milliseconds; 0 where the host does not say when. */
  readonly atMs: number;
}

/** Reads what a session said, the newest first, as far as the host has it. */
async function readAllSaid(runtime: SharedRuntime, session: SessionKey): Promise<readonly SaidAt[]> {
  const messages = await runtime.readTranscript(session);
  return messages
    .filter(({ role }) => role === "assistant")
    .map(({ content, timestamp: atMs = 0 }) => ({ ...readSaid(content), atMs }))
    .toReversed();
}
