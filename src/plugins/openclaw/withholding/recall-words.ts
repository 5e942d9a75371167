/**
 * Owns: learning what a session and its children said before the plugin was loaded. The host may send it to a chat only now, and what
 * was remembered of it went with the process before. The host's transcripts have it.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { listChildrenOfSession } from "../../../agents/coordination/runtime/children-of-session.ts";
import { formatErrorSentence } from "../host/host-runs.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import { accessGateMemory } from "../runtime-access/gate-memory.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { readSpokenWords, type MessageWords } from "./message-parts.ts";

/** Resolves when the words of the session's children are known, as far as the host has them. Asks once for each session. Never throws. */
export type RecallWords = (runtime: SharedRuntime, session: SessionKey) => Promise<void>;

const SESSIONS_MAX = 10_000;
/** The newest children, whose last words are compared. */
const CHILDREN_MAX = 8;

/**
 * Creates the function that reads once from the host's transcripts what a session and its children said before the
 * plugin was loaded; a failure is logged, and tried again the next time.
 */
export function createRecallWords(): RecallWords {
  const recalls = createRecentMap<Promise<void>>(SESSIONS_MAX);
  const loadedAtMs = Date.now();
  return async (runtime, session) => {
    const recall = recalls.get(session) ?? recallEarlierWords(runtime, session, loadedAtMs);
    recalls.set(session, recall);
    try {
      await recall;
    } catch (error) {
      recalls.delete(session);
      runtime.logger.warn(
        { session },
        `cannot tell what children said before the plugin was loaded: ${formatErrorSentence(error)}`,
      );
    }
  };
}

/**
 * Remembers the last words of children that were admitted before that time, and what the session said after the
 * earliest of these words, as far as the host has it.
 */
async function recallEarlierWords(
  runtime: SharedRuntime,
  session: SessionKey,
  beforeMs: number,
): Promise<void> {
  const { spoken } = accessGateMemory();
  const children = await listEarlierChildren(runtime, session, beforeMs);
  if (children.length === 0) return;
  let firstAtMs = Number.POSITIVE_INFINITY;
  for (const child of children) {
    const last = (await readSessionWords(runtime, child)).find(({ words }) => words !== "");
    if (!last) continue;
    spoken.recallOfChild(session, child, last.words);
    firstAtMs = Math.min(firstAtMs, last.atMs);
  }
  // A task that the parent wrote before does not make a child's words its own.
  for (const { words, toTools, atMs } of await readSessionWords(runtime, session))
    if (atMs > firstAtMs) {
      spoken.recallOwn(session, words);
      spoken.recallToTools(session, toTools.join("\n"));
    }
}

/** Lists at most eight children that may have spoken before that time, the newest first. */
async function listEarlierChildren(
  runtime: SharedRuntime,
  session: SessionKey,
  beforeMs: number,
): Promise<SessionKey[]> {
  const { reads } = await runtime.coordinator();
  return (await listChildrenOfSession(reads, session))
    .filter(({ step }) => step.admittedAtMs < beforeMs)
    .flatMap(({ step }) => step.childSessionKey ?? [])
    .slice(0, CHILDREN_MAX);
}

interface SaidAt extends MessageWords {
  /** Unix time in milliseconds; 0 where the host does not say when. */
  readonly atMs: number;
}

/** Reads what a session said, the newest first, as far as the host has it. */
async function readSessionWords(runtime: SharedRuntime, session: SessionKey): Promise<readonly SaidAt[]> {
  const messages = await runtime.readTranscript(session);
  return messages
    .filter(({ role }) => role === "assistant")
    .map(({ content, timestamp: atMs = 0 }) => ({ ...readSpokenWords(content), atMs }))
    .toReversed();
}
