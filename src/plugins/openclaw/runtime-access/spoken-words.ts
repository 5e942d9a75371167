/**
 * Owns: what parents and their children said last, so that words of a child are known when the host is about to send them in the name
 * of the parent. No truth, and nothing that outlives the process.
 */
import { createRecent } from "../host/recent.ts";

/** Texts of one session, and how many sessions. */
const TEXTS_MAX = 8;
const CHARS_MAX = 2_000;
const SESSIONS_MAX = 100;
/** So much of a message is compared. */
const COMPARED_CHARS = 1_000;

export interface SpokenWords {
  /** A session said this, in a message or to a tool. */
  noteOwn(session: string, text: string): void;
  /** A child of a session said this. */
  noteOfChild(parent: string, child: string, text: string): void;
  /** A child of a session said this before all that is remembered. */
  recallOfChild(parent: string, child: string, text: string): void;
  /** A session said this before all that is remembered of it, and after a child of it said something. */
  recallOwn(session: string, text: string): void;
  /** Returns the child whose words a message in the name of a session is; `undefined` where the session said them itself. */
  findChild(session: string, message: string): string | undefined;
}

interface Words {
  readonly by: string;
  /** Letters and digits alone: the host changes the rest on the way to a chat. */
  readonly letters: string;
}

export function createSpokenWords(): SpokenWords {
  const byParents = createRecent<readonly Words[]>(SESSIONS_MAX);
  const byChildren = createRecent<readonly Words[]>(SESSIONS_MAX);
  const note = (memory: typeof byParents, session: string, words: Words): void => {
    if (words.letters !== "") memory.set(session, [...(memory.get(session) ?? []), words].slice(-TEXTS_MAX));
  };
  const recall = (memory: typeof byParents, session: string, words: Words): void => {
    const later = memory.get(session) ?? [];
    if (words.letters !== "") memory.set(session, [words, ...later].slice(-TEXTS_MAX));
  };
  return {
    noteOwn: (session, text) => {
      // Before a child of it has said anything, nothing can be mistaken for its words.
      if (!byChildren.get(session)) return;
      note(byParents, session, { by: session, letters: lettersOf(text, 2 * CHARS_MAX) });
    },
    noteOfChild: (parent, child, text) =>
      note(byChildren, parent, { by: child, letters: lettersOf(text, CHARS_MAX) }),
    recallOfChild: (parent, child, text) =>
      recall(byChildren, parent, { by: child, letters: lettersOf(text, CHARS_MAX) }),
    recallOwn: (session, text) =>
      recall(byParents, session, { by: session, letters: lettersOf(text, 2 * CHARS_MAX) }),
    findChild: (session, message) => {
      const letters = lettersOf(message, COMPARED_CHARS);
      if (letters === "") return undefined;
      const isSaidIn = (words: Words): boolean => words.letters.includes(letters);
      return byParents.get(session)?.some(isSaidIn)
        ? undefined
        : byChildren.get(session)?.findLast(isSaidIn)?.by;
    },
  };
}

function lettersOf(text: string, charsMax: number): string {
  // Twice as much has room for what is left out.
  return text
    .slice(0, 2 * charsMax)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .slice(0, charsMax);
}
