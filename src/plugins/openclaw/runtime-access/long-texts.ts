/**
 * Owns: the long texts of children in memory, from the moment that they are said until they are in the ledger, and shorter ones for
 * the next calls of the child's own model. No truth: what is forgotten is read from the ledger by pages, like by everybody else.
 */
import { hash } from "node:crypto";
import { createReadOn, SHORTENED, type KeptText } from "../../../agents/coordination/results/read-on.ts";
import { shortenText } from "../../../agents/coordination/results/shorten-text.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";

/** Characters over all sessions: on their way to the disk, and for their own models. */
const UNKEPT_CHARS_MAX = 64_000_000;
const KEPT_CHARS_MAX = 1_000_000;
/** The host gives its child no longer text again than this. */
const OWN_CHARS_MAX = 200_000;

export interface LongText {
  readonly session: SessionKey;
  readonly text: string;
  /** The text in its place in the transcript. */
  readonly shown: string;
  readonly sha256: string;
}

export interface LongTexts {
  /** Returns what others are shown of a text. */
  shorten(session: SessionKey, text: string, charsMax: number, of: KeptText["of"]): string;
  /** Takes the texts that became part of a message, so that they are brought to the disk once. */
  takeWritten(session: SessionKey, message: string): readonly LongText[];
  /** Puts the session's own words in the place of what stands for them, as far as they are remembered. */
  restore(session: SessionKey, text: string): string;
}

/**
 * Creates the memory of children's long texts that were shortened for their parents, until they are part of a message,
 * and then of the smaller ones to restore them; beyond a bound the oldest are forgotten.
 */
export function createLongTexts(): LongTexts {
  let unkept: readonly LongText[] = [];
  let kept: readonly LongText[] = [];
  return {
    shorten: (session, text, charsMax, of) => {
      const newest = unkept.findLast((each) => each.session === session);
      if (newest?.text === text) return newest.shown;
      const longText = createLongText(session, text, charsMax, of);
      // One that is still being written comes again and again, longer each time.
      const others = unkept.filter((each) => each !== newest || !text.startsWith(newest.text));
      unkept = keepNewestTexts([...others, longText], UNKEPT_CHARS_MAX);
      return longText.shown;
    },
    takeWritten: (session, message) => {
      const written = unkept.filter((each) => each.session === session && message.includes(each.sha256));
      if (written.length === 0) return [];
      unkept = unkept.filter((each) => each.session !== session);
      const ownTexts = written.filter(({ text }) => text.length <= OWN_CHARS_MAX);
      kept = keepNewestTexts([...kept, ...ownTexts], KEPT_CHARS_MAX);
      return written;
    },
    restore: (session, text) => {
      if (!text.includes(SHORTENED)) return text;
      const ownTexts = kept.filter((each) => each.session === session);
      return ownTexts.reduce(
        (restored, { shown, text: words }) => restored.replace(shown, () => words),
        text,
      );
    },
  };
}

/** Shortens a text for others, with how to read on. */
function createLongText(session: SessionKey, text: string, charsMax: number, of: KeptText["of"]): LongText {
  const sha256 = hash("sha256", text);
  const readOn = createReadOn({ sha256, chars: text.length, of });
  return { session, text, sha256, shown: shortenText(text, { charsMax, readOn }) };
}

/** Returns the newest texts that fit the bound together; the newest one stays, however long it is. */
function keepNewestTexts(texts: readonly LongText[], charsMax: number): readonly LongText[] {
  let chars = 0;
  const first = texts.findLastIndex(({ text }) => (chars += text.length) > charsMax);
  return first === -1 ? texts : texts.slice(Math.min(first + 1, texts.length - 1));
}
