/** Owns: what a scripted model answers for once, as providers and models do; then it follows its scripts. */
import type { Rule, Turn } from "./scripted-model.ts";

/** A rule remembers that it has answered: each model needs one of its own. */
export function answerOnce(isMeant: (text: string) => boolean, turn: Turn): Rule {
  let isOver = false;
  return {
    when: (text) => {
      if (isOver || !isMeant(text)) return false;
      isOver = true;
      return true;
    },
    turns: [turn],
  };
}
