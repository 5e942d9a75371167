/**
 * Owns: the words of children that are kept back from others, in memory until they are in the ledger. No truth: a text that is not in
 * the ledger when the process ends is lost, and its step fails.
 *
 * A text that is still being written comes in pieces and again and again, longer each time: only the newest of them are remembered.
 * A text that became part of a message is remembered longer, because its agent is to read it again.
 */
import type { SessionKey } from "../../contracts/ids.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

/** Pieces of one session. */
const PIECES_MAX = 64;
const CHARS_MAX = 1_000_000;
const SESSIONS_MAX = 200;

/**
 * Returns the name of a text of a session: 64 hexadecimal digits. Where others see the name, it is made with a key,
 * because a short text could be guessed from a plain hash.
 */
export type NameText = (session: SessionKey, text: string) => string;

/**
 * The end of a session counts only with its newest words, and with the model that it ran on where it is held for that. The whole of
 * a text that others are shown a part of, by its sha256, decides nothing.
 */
export type KeptFact = "words" | "model" | `whole ${string}`;

/** Brings a fact of a session to the disk, and resolves to `true` where it did. It may be called again where it did not. */
export type KeepFact = () => Promise<true | undefined>;

export interface WithheldTexts {
  /** Remembers a text of a session and returns its name; the same text of the same session has the same name. */
  add(session: SessionKey, text: string): string;
  readonly nameOf: NameText;
  /** The text became part of a message. */
  keepWhole(session: SessionKey, name: string): void;
  /** Returns a text of that session: no other one may read it. */
  textOf(session: SessionKey, name: string): string | undefined;
  /** Begins to keep the newest fact of that kind. */
  keeping(session: SessionKey, fact: KeptFact, keep: KeepFact): void;
  /** Other work on the texts of a session that `settled` waits for; it does not reject. */
  following(session: SessionKey, work: Promise<unknown>): void;
  /**
   * Waits as `settled` does, and tries once more to keep the facts of the session that could not be kept; false where one that
   * decides cannot be kept now either.
   */
  keepAgain(session: SessionKey): Promise<boolean>;
  /** Resolves when nothing of the session is on its way to the disk any more. */
  settled(session: SessionKey): Promise<void>;
}

/** The withheld texts of one session by name: pieces of messages, and whole messages. */
interface SessionTexts {
  readonly pieces: Map<string, string>;
  readonly whole: Map<string, string>;
}

/**
 * Creates the memory of the texts of sessions that are withheld from others, by session and name, and of the facts
 * about them that are still on their way to the disk.
 */
export function createWithheldTexts(nameOf: NameText): WithheldTexts {
  const sessions = new Map<SessionKey, SessionTexts>();
  const underway = new Map<SessionKey, Promise<unknown>>();
  const unkept = new Map<SessionKey, Map<KeptFact, KeepFact>>();
  const textOf = (session: SessionKey, name: string): string | undefined => {
    const texts = sessions.get(session);
    return texts?.whole.get(name) ?? texts?.pieces.get(name);
  };
  const follow = (session: SessionKey, work: (before: Promise<unknown> | undefined) => Promise<unknown>) => {
    const mine = work(underway.get(session)).then(() => {
      if (underway.get(session) === mine) underway.delete(session);
    });
    underway.set(session, mine);
  };
  const beginKeeping: WithheldTexts["keeping"] = (session, fact, keep) => {
    const begun = keep();
    follow(session, async (before) => {
      const [, kept] = await Promise.allSettled([before, begun]);
      const facts = unkept.get(session) ?? new Map<KeptFact, KeepFact>();
      if (kept.status === "fulfilled" && kept.value) facts.delete(fact);
      else facts.set(fact, keep);
      if (facts.size > 0) unkept.set(session, facts);
      else unkept.delete(session);
    });
  };
  const awaitSettled: WithheldTexts["settled"] = async (session) => {
    for (let work = underway.get(session); work; work = underway.get(session)) await work;
  };
  return {
    add: (session, text) => {
      const name = nameOf(session, text);
      rememberPiece(ensureTextsOfSession(sessions, session).pieces, name, text);
      return name;
    },
    nameOf,
    keepWhole: (session, name) => {
      const text = textOf(session, name);
      if (text !== undefined) rememberWhole(ensureTextsOfSession(sessions, session).whole, name, text);
    },
    textOf,
    keeping: beginKeeping,
    keepAgain: async (session) => {
      await awaitSettled(session);
      for (const [fact, keep] of unkept.get(session) ?? []) beginKeeping(session, fact, keep);
      await awaitSettled(session);
      const deciding = [...(unkept.get(session) ?? [])].filter(([fact]) => isDecidingFact(fact));
      // A whole text has many characters: they are not remembered for a third time.
      if (deciding.length > 0) unkept.set(session, new Map(deciding));
      else unkept.delete(session);
      return deciding.length === 0;
    },
    following: (session, work) => {
      follow(session, (before) => Promise.all([before, work]));
    },
    settled: awaitSettled,
  };
}

function isDecidingFact(fact: KeptFact): boolean {
  return fact === "words" || fact === "model";
}

function ensureTextsOfSession(sessions: Map<SessionKey, SessionTexts>, session: SessionKey): SessionTexts {
  const texts = sessions.get(session) ?? {
    pieces: new Map<string, string>(),
    whole: new Map<string, string>(),
  };
  rememberNewest(sessions, session, texts, SESSIONS_MAX);
  return texts;
}

/** Remembers a piece of a text, in place of a shorter one that it continues. */
function rememberPiece(pieces: Map<string, string>, name: string, text: string): void {
  const newest = [...pieces].at(-1);
  if (newest && newest[0] !== name && text.startsWith(newest[1])) pieces.delete(newest[0]);
  rememberNewest(pieces, name, text, PIECES_MAX);
}

/** Remembers a text as part of a message; the oldest are forgotten beyond a number of characters. */
function rememberWhole(whole: Map<string, string>, name: string, text: string): void {
  whole.delete(name);
  whole.set(name, text);
  let chars = 0;
  for (const one of whole.values()) chars += one.length;
  for (const [oldest, one] of whole) {
    if (chars <= CHARS_MAX || whole.size === 1) return;
    whole.delete(oldest);
    chars -= one.length;
  }
}
