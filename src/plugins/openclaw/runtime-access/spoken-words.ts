/**
 * Owns: what parents and their children said last, so that words of a child are known when the host is about to send them in the name
 * of the parent. No truth, and nothing that outlives the process.
 */
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";

/** Texts of the children of one session, and how many sessions. */
const TEXTS_MAX = 8;
const CHARS_MAX = 2_000;
const SESSIONS_MAX = 100;
/** So many letters of a session's own texts, the newest: what it says in a chat may be far down in them, or some messages ago. */
const OWN_LETTERS_MAX = 64_000;
/** So many letters of what it wrote to tools, and of one call: files that it writes must not push out what it said. */
const TO_TOOLS_LETTERS_MAX = 32_000;
const TO_TOOL_LETTERS_MAX = 4_000;
/** So much of a message is compared. */
const COMPARED_CHARS = 1_000;
/** Fewer letters may be in anybody's text by chance. */
const TELLING_LETTERS_MIN = 24;

export interface SpokenWords {
  /** A session said this in a message. */
  noteOwn(session: string, text: string): void;
  /** A session wrote this to tools. */
  noteToTools(session: string, text: string): void;
  /** A child of a session said this. */
  noteOfChild(parent: string, child: string, text: string): void;
  /** A child of a session said this before all that is remembered. */
  recallOfChild(parent: string, child: string, text: string): void;
  /** A session said this before all that is remembered of it, and after a child of it said something. */
  recallOwn(session: string, text: string): void;
  /** A session wrote this to tools before all that is remembered of it, and after a child of it said something. */
  recallToTools(session: string, text: string): void;
  /**
   * Returns the child whose words a message in the name of a session is; `undefined` where the session said them itself, and where
   * they are a few words out of a longer text.
   */
  findChild(session: string, message: string): string | undefined;
  /** Returns the child that named these files; `undefined` where the session named them itself. */
  findChildOfFiles(session: string, names: string): string | undefined;
}

/** Letters and digits alone: the host changes the rest on the way to a chat. */
interface SpokenText {
  readonly by: string;
  readonly letters: string;
  /** Without the lines by which files are sent. */
  readonly shown: string;
}

/**
 * Creates the memory of what sessions and their children said last. It finds the child whose words a message in its
 * parent's name has, unless the parent said them itself.
 */
export function createSpokenWords(): SpokenWords {
  const byParents = createLetterMemory(OWN_LETTERS_MAX);
  const toTools = createLetterMemory(TO_TOOLS_LETTERS_MAX);
  const byChildren = createRecentMap<readonly SpokenText[]>(SESSIONS_MAX);
  const recallOfChild = (parent: string, child: string, text: string): void => {
    const words = createWords(child, text);
    if (words.letters !== "")
      byChildren.set(parent, [words, ...(byChildren.get(parent) ?? [])].slice(-TEXTS_MAX));
  };
  const findSpeaker = (session: string, message: string, lettersMin: number): string | undefined => {
    const letters = extractLetters(message, COMPARED_CHARS);
    if (letters === "" || byParents.includes(session, letters) || toTools.includes(session, letters))
      return undefined;
    return byChildren.get(session)?.findLast((words) => isWithinWords(words, letters, lettersMin))?.by;
  };
  // Before a child of it has said anything, nothing can be mistaken for its words.
  const canBeMistaken = (session: string): boolean => byChildren.get(session) !== undefined;
  return {
    noteOwn: (session, text) => {
      if (canBeMistaken(session))
        for (const letters of listLetterForms(text)) byParents.append(session, letters);
    },
    noteToTools: (session, text) => {
      if (canBeMistaken(session)) toTools.append(session, extractLetters(text, TO_TOOL_LETTERS_MAX));
    },
    noteOfChild: (parent, child, text) => {
      const words = createWords(child, text);
      if (words.letters !== "")
        byChildren.set(parent, [...(byChildren.get(parent) ?? []), words].slice(-TEXTS_MAX));
    },
    recallOfChild,
    recallOwn: (session, text) => {
      for (const letters of listLetterForms(text)) byParents.prepend(session, letters);
    },
    recallToTools: (session, text) => toTools.prepend(session, extractLetters(text, TO_TOOL_LETTERS_MAX)),
    findChild: (session, message) => findSpeaker(session, message, TELLING_LETTERS_MIN),
    findChildOfFiles: (session, names) => findSpeaker(session, names, 1),
  };
}

interface LetterMemory {
  append(session: string, letters: string): void;
  prepend(session: string, letters: string): void;
  includes(session: string, letters: string): boolean;
}

/** Creates a memory of the newest letters of each session, in one text: many short texts take no more than a long one. */
function createLetterMemory(lettersMax: number): LetterMemory {
  const memory = createRecentMap<string>(SESSIONS_MAX);
  const keep = (session: string, older: string, newer: string): void =>
    // The line's end is no letter: nothing is found across two texts.
    memory.set(session, `${older}\n${newer}`.slice(-lettersMax));
  return {
    append: (session, letters) => {
      if (letters !== "") keep(session, memory.get(session) ?? "", letters);
    },
    prepend: (session, letters) => {
      if (letters !== "") keep(session, letters, memory.get(session) ?? "");
    },
    includes: (session, letters) => memory.get(session)?.includes(letters) ?? false,
  };
}

function createWords(by: string, text: string): SpokenText {
  return {
    by,
    letters: extractLetters(text, CHARS_MAX),
    shown: extractLetters(omitFileLines(text), CHARS_MAX),
  };
}

/** Lists the letters of a text as it was written and, where that is something else, as the host shows it. */
function listLetterForms(text: string): Iterable<string> {
  return new Set([
    extractLetters(text, OWN_LETTERS_MAX),
    extractLetters(omitFileLines(text), OWN_LETTERS_MAX),
  ]);
}

/** True where a message is these words, or at least `lettersMin` letters in a row out of them. */
function isWithinWords({ letters, shown }: SpokenText, message: string, lettersMin: number): boolean {
  if (message === letters || message === shown) return true;
  return message.length >= lettersMin && (letters.includes(message) || shown.includes(message));
}

/** Leaves out the lines by which a session has the host send files. */
function omitFileLines(text: string): string {
  return text.replaceAll(/^[ \t]*MEDIA:.*$/gimu, "");
}

/** Returns the letters and digits of a text in lower case, at most `charsMax`. */
function extractLetters(text: string, charsMax: number): string {
  // Twice as much has room for what is left out.
  return text
    .slice(0, 2 * charsMax)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .slice(0, charsMax);
}
