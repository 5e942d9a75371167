/** Owns: which results of a step those may read who may read it at all. G1: what is held, or was withheld, is not among them. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { ContentRef } from "../contracts/fact-fields.ts";
import { sessionOf, type Escalation, type KnownCoordination, type Step, type StepPhase } from "./state.ts";
import { isEverythingWithheld, isReleased } from "./withheld-words.ts";

export interface ReadableResult {
  /** Whether it is the agent's words, or its outputs as JSON. */
  readonly kind: "text" | "outputs";
  readonly attempt: number;
  readonly content: ContentRef;
}

/** Returns the outputs of a completed step. A step that has not completed has none, and one that has may have left none. */
export function outputOf(phase: StepPhase | undefined): ContentRef | undefined {
  return phase?.status === "completed" ? phase.output : undefined;
}

/** The newest last. */
export function listReadableResults(step: Step): ReadableResult[] {
  const { phase } = step;
  const output = outputOf(phase) ?? findFailedReport(step);
  const { attempt } = phase;
  return [...listTexts(step), ...(output ? [{ kind: "outputs" as const, attempt, content: output }] : [])];
}

/**
 * Finds the outputs with which the agent of the newest attempt reported that it could not do the work. `undefined` where it did not,
 * and where its words are kept from others.
 */
export function findFailedReport(step: Step): ContentRef | undefined {
  const { phase, report } = step;
  const isReported = "error" in phase && phase.error.code === "reported_failed";
  if (!isReported || report?.attempt !== phase.attempt || report.outcome !== "failed") return undefined;
  const isWithheld = isKeptFromOthers(step) || isEverythingWithheld(step, sessionOf(phase));
  return isWithheld ? undefined : report.output;
}

/** Finds the failed report of a step while people are asked, by this question, whether to try the step once more. */
export function findReportBehind(
  steps: KnownCoordination["steps"],
  { escalationId, stepId }: Pick<Escalation, "escalationId" | "stepId">,
): ContentRef | undefined {
  const step = stepId === undefined ? undefined : steps.get(stepId);
  const isAsked = step?.phase.status === "blocked" && step.phase.escalationId === escalationId;
  return isAsked ? findFailedReport(step) : undefined;
}

function listTexts(step: Step): ReadableResult[] {
  const { phase, withheld, shortened = [] } = step;
  if (isKeptFromOthers(step)) return [];
  const texts = shortened.map(({ attempt, text }) => ({ kind: "text" as const, attempt, content: text }));
  const isOwn = isReleased(step) && withheld?.attempt === phase.attempt;
  return isOwn ? [...texts, { kind: "text", attempt: withheld.attempt, content: withheld.text }] : texts;
}

/** True where one more long text of a step may be kept whole. */
export function hasRoomForText({ shortened }: Pick<Step, "shortened">): boolean {
  return (shortened?.length ?? 0) < BOUNDS.shortenedTextsMax;
}

const REJECTED: ReadonlySet<string> = new Set(["verification_failed", "withheld", "result_lost"]);

function isKeptFromOthers(step: Step): boolean {
  const { phase, withheld } = step;
  if (phase.status === "held" || (withheld !== undefined && !isReleased(step))) return true;
  return "error" in phase && REJECTED.has(phase.error.code);
}
