/** Owns: answers that the model of the pains' gateways gives for once, as providers and models do. */
import { answerOnce } from "../support/answer-once.ts";
import { isAnnounce, type Rule, type Turn } from "../support/scripted-model.ts";

export const NEVER_SAID = "This is never said.";

const REFUSED_BY_PROVIDER: Turn = { httpError: 400 };

/** Each gateway has rules of its own, because they remember what they answered. */
export function createRules(): Rule[] {
  return [
    answerOnce((text) => isTelling(text, "unheard"), REFUSED_BY_PROVIDER),
    answerOnce((text) => isWork(text, "zombie-work"), REFUSED_BY_PROVIDER),
    answerOnce((text) => isWork(text, "synthesis-step"), { say: "Noted. I wait for the others." }),
  ];
}

/** The turns that tell these results take longer than their gateways live. */
export function createSlowRules(): Rule[] {
  const slow: Turn = { delayMs: 120_000, say: NEVER_SAID };
  return [
    answerOnce((text) => isTelling(text, "posted"), slow),
    answerOnce((text) => isAnnounce(text) && text.includes("of killed-silent"), slow),
    answerOnce((text) => isAnnounce(text) && text.includes("of killed-teller"), slow),
  ];
}

/** True for a text that tells a session, by the host or by us, how the work of this name went. */
function isTelling(text: string, label: string): boolean {
  return (
    (isAnnounce(text) && text.includes(`${label}-child`)) || text.includes(`The plan ${label} has ended`)
  );
}

/** The task of this name, and not the request of somebody who has it done. */
function isWork(text: string, label: string): boolean {
  return text.includes(label) && !text.includes('"spawn"') && !isAnnounce(text);
}
