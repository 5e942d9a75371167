/**
 * Owns: the words of children that are kept back from others, in memory until they are in the ledger. No truth: what is not in the
 * ledger when the process ends is lost, and its step fails.
 *
 * A text that is still being written comes in pieces and again and again, longer each time: of those only the newest are remembered.
 * What became part of a message is remembered longer, because its agent is to read it again.
 */
import type { ContentRef } from "../../contracts/fact-fields.ts";
import type { SessionKey } from "../../contracts/ids.ts";

/** Of one session. */
const PIECES_MAX = 64;
const CHARS_MAX = 1_000_000;
const SESSIONS_MAX = 200;

export interface WithheldTexts {
  /** Remembers a text of a session and returns its name; the same text has the same name. */
  add(session: SessionKey, text: string): ContentRef;
  /** The text became part of a message. */
  keepWhole(session: SessionKey, sha256: string): void;
  /** Of that session: no other one may read it. */
  textOf(session: SessionKey, sha256: string): string | undefined;
  /** Work that brings a text of a session to the disk; what does not resolve to `true` has lost it. */
  keeping(session: SessionKey, work: Promise<true | undefined>): void;
  /** Whether the newest text of a session did not come to the disk. */
  isLost(session: SessionKey): boolean;
  /** Resolves when nothing of the session is on its way to the disk any more. */
  settled(session: SessionKey): Promise<void>;
}

interface Texts {
  readonly pieces: Map<string, string>;
  readonly whole: Map<string, string>;
}

export function createWithheldTexts(refOf: (text: string) => ContentRef): WithheldTexts {
  const sessions = new Map<SessionKey, Texts>();
  const underway = new Map<SessionKey, Promise<unknown>>();
  const lostSessions = new Set<SessionKey>();
  const textOf = (session: SessionKey, sha256: string): string | undefined => {
    const texts = sessions.get(session);
    return texts?.whole.get(sha256) ?? texts?.pieces.get(sha256);
  };
  return {
    add: (session, text) => {
      const ref = refOf(text);
      remember(textsOf(sessions, session).pieces, ref.sha256, text);
      return ref;
    },
    keepWhole: (session, sha256) => {
      const text = textOf(session, sha256);
      if (text !== undefined) rememberWhole(textsOf(sessions, session).whole, sha256, text);
    },
    textOf,
    isLost: (session) => lostSessions.has(session),
    keeping: (session, work) => {
      const before = underway.get(session);
      const mine = Promise.allSettled([before, work]).then(([, kept]) => {
        if (kept.status === "fulfilled" && kept.value) lostSessions.delete(session);
        else lostSessions.add(session);
        if (underway.get(session) === mine) underway.delete(session);
      });
      underway.set(session, mine);
    },
    settled: async (session) => {
      for (let work = underway.get(session); work; work = underway.get(session)) await work;
    },
  };
}

function textsOf(sessions: Map<SessionKey, Texts>, session: SessionKey): Texts {
  const texts = sessions.get(session) ?? {
    pieces: new Map<string, string>(),
    whole: new Map<string, string>(),
  };
  sessions.delete(session);
  sessions.set(session, texts);
  const [oldest] = sessions.keys();
  if (sessions.size > SESSIONS_MAX && oldest !== undefined) sessions.delete(oldest);
  return texts;
}

function remember(pieces: Map<string, string>, sha256: string, text: string): void {
  const newest = [...pieces].at(-1);
  if (newest && newest[0] !== sha256 && text.startsWith(newest[1])) pieces.delete(newest[0]);
  pieces.delete(sha256);
  pieces.set(sha256, text);
  const [oldest] = pieces.keys();
  if (pieces.size > PIECES_MAX && oldest !== undefined) pieces.delete(oldest);
}

function rememberWhole(whole: Map<string, string>, sha256: string, text: string): void {
  whole.delete(sha256);
  whole.set(sha256, text);
  let chars = 0;
  for (const one of whole.values()) chars += one.length;
  for (const [oldest, one] of whole) {
    if (chars <= CHARS_MAX || whole.size === 1) return;
    whole.delete(oldest);
    chars -= one.length;
  }
}
