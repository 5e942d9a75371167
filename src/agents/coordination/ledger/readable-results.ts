/** Owns: which results of a step those may read who may read it at all. G1: what is held, or was withheld, is not among them. */
import type { ContentRef } from "../contracts/fact-fields.ts";
import type { Step } from "./state.ts";
import { isReleased } from "./withheld-words.ts";

export interface ReadableResult {
  /** Whether it is the agent's words, or its outputs as JSON. */
  readonly kind: "text" | "outputs";
  readonly attempt: number;
  readonly content: ContentRef;
}

/** The newest last. */
export function listReadableResults(step: Step): ReadableResult[] {
  const { phase } = step;
  if (phase.status !== "completed") return listTexts(step);
  const { attempt, output } = phase;
  return [...listTexts(step), ...(output ? [{ kind: "outputs" as const, attempt, content: output }] : [])];
}

function listTexts(step: Step): ReadableResult[] {
  const { phase, withheld, shortened = [] } = step;
  if (isKeptFromOthers(step)) return [];
  const texts = shortened.map(({ attempt, text }) => ({ kind: "text" as const, attempt, content: text }));
  const isOwn = isReleased(step) && withheld?.attempt === phase.attempt;
  return isOwn ? [...texts, { kind: "text", attempt: withheld.attempt, content: withheld.text }] : texts;
}

const REJECTED: ReadonlySet<string> = new Set(["verification_failed", "withheld", "result_lost"]);

function isKeptFromOthers(step: Step): boolean {
  const { phase, withheld } = step;
  if (phase.status === "held" || (withheld !== undefined && !isReleased(step))) return true;
  return "error" in phase && REJECTED.has(phase.error.code);
}
