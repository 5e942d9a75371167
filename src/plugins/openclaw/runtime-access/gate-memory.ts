/**
 * Owns: which session a model call belongs to, which sessions are gated, and what they said. Module instances of the plugin and the
 * runs under way outlive a reload. No truth: hooks fill it in before every model call.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { convertToBasisPointsDown } from "../../../agents/coordination/gates/stated-confidence.ts";
import type { GatedSession } from "../../../agents/coordination/runtime/held-results/withhold-text.ts";
import {
  createWithheldTexts,
  type WithheldTexts,
} from "../../../agents/coordination/runtime/environment/withheld-texts.ts";
import type { KeptText } from "../../../agents/coordination/results/read-on.ts";
import { createSpokenWords, type SpokenWords } from "./spoken-words.ts";
import { createLongTexts, type LongTexts } from "./long-texts.ts";
import { createRecentMap, type RecentMap } from "../../../agents/coordination/std/recent.ts";
import { shareInProcess } from "../host/share-in-process.ts";

export interface GatedNow extends GatedSession {
  /** Its newest message states a low confidence: every part of it is kept back. */
  readonly isDoubted?: boolean;
  /** The ledger does not say yet what the session is. */
  readonly isProvisional?: true;
  /** Calls that may change something and whose changes are not recorded yet, where those may be why its words are kept back. */
  readonly changes?: ReadonlySet<string>;
}

/**
 * True where every text of a gated session is kept back now, whatever confidence it states: its gate is strict, or a
 * call that may change something is under way.
 */
export function isKeptBack({ isStrict, changes }: GatedNow): boolean {
  return isStrict || (changes !== undefined && changes.size > 0);
}

/** A session whose words reach others: its parent, or a chat. */
export interface SpeakingChild {
  readonly session: SessionKey;
  /** Absent where the ledger does not say yet whose child it is. */
  readonly of?: KeptText["of"];
  /** The session that spawned it. */
  readonly parent?: SessionKey;
  readonly isPlanned?: boolean;
  /** The ledger takes one more long text of it. */
  readonly canKeepWhole?: boolean;
}

export interface GateMemory {
  /** The session of a run, by the span that its model calls have as parent. */
  readonly spans: RecentMap<SessionKey>;
  readonly gated: RecentMap<GatedNow>;
  readonly texts: WithheldTexts;
  readonly children: RecentMap<SpeakingChild>;
  readonly longTexts: LongTexts;
  /** Sessions whose children's words might go to a chat in their name. */
  readonly spoken: SpokenWords;
  /** Sessions that people wrote to in a chat, by channel and session. */
  readonly addressed: RecentMap<true>;
  /** How much of a result a parent is shown; the operator's, once a coordinator has opened. */
  parentCharsMax: number;
  /** Makes the names of texts that are kept back; the one that outlives the process, once a coordinator has opened. */
  key: Uint8Array;
}

/** Before the key of the state folder is read. */
const KEY_BYTES = 32;
/** Before the configuration is read. */
const PARENT_CHARS_MAX = 16_000;
const SPANS_MAX = 20_000;
const SESSIONS_MAX = 10_000;

/** Returns the memory of this process. */
export const accessGateMemory = shareInProcess("gate-memory.5", createGateMemory);

function createGateMemory(): GateMemory {
  const memory: GateMemory = {
    spans: createRecentMap<SessionKey>(SPANS_MAX),
    gated: createRecentMap<GatedNow>(SESSIONS_MAX),
    texts: createWithheldTexts((session, text) =>
      createHmac("sha256", memory.key).update(`${session}\0${text}`).digest("hex"),
    ),
    children: createRecentMap<SpeakingChild>(SESSIONS_MAX),
    longTexts: createLongTexts(),
    spoken: createSpokenWords(),
    addressed: createRecentMap<true>(SESSIONS_MAX),
    parentCharsMax: PARENT_CHARS_MAX,
    key: randomBytes(KEY_BYTES),
  };
  return memory;
}

/**
 * Sets in the memory of gates how sure the session's agent has just reported to be, which decides at once what it may
 * say; does nothing for a session without a gate.
 */
export function noteReportedConfidence(session: string, confidence: number | undefined): void {
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (!gatedSession) return;
  const { reported: _, ...rest } = gatedSession;
  const stated =
    confidence === undefined ? {} : { reported: { confidence: convertToBasisPointsDown(confidence) } };
  gated.set(session, { ...rest, ...stated });
}
