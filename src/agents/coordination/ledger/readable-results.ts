/** Owns: which results of a step those may read who may read it at all. G1: what is held, or was withheld, is not among them. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { ContentRef } from "../contracts/fact-fields.ts";
import {
  findSessionOfPhase,
  type Escalation,
  type KnownCoordination,
  type Step,
  type StepPhase,
} from "./state.ts";
import { isEverythingWithheld, isResultReleased } from "./withheld-words.ts";

export interface ReadableResult {
  /** Whether it is the agent's words, or its outputs as JSON. */
  readonly kind: "text" | "outputs";
  readonly attempt: number;
  readonly content: ContentRef;
}

/** Returns the outputs of a completed step; `undefined` where the step has not completed, or left none. */
export function findCompletedOutput(phase: StepPhase | undefined): ContentRef | undefined {
  return phase?.status === "completed" ? phase.output : undefined;
}

/** Lists the texts and outputs of a step that others may read, the newest last. */
export function listReadableResults(step: Step): ReadableResult[] {
  const { phase } = step;
  const output = findCompletedOutput(phase) ?? findFailedReport(step);
  const { attempt } = phase;
  return [
    ...listReadableTexts(step),
    ...(output ? [{ kind: "outputs" as const, attempt, content: output }] : []),
  ];
}

/**
 * Returns the outputs with which the agent of a failed step reported that it could not do the work; `undefined` where
 * it did not, or where its words are kept from others.
 */
export function findFailedReport(step: Step): ContentRef | undefined {
  const { phase, report } = step;
  const isReported = "error" in phase && phase.error.code === "reported_failed";
  if (!isReported || report?.attempt !== phase.attempt || report.outcome !== "failed") return undefined;
  const isWithheld = isResultKeptFromOthers(step) || isEverythingWithheld(step, findSessionOfPhase(phase));
  return isWithheld ? undefined : report.output;
}

/**
 * Returns the outputs of a step's failed report while people are asked, by this question, whether to try the step once
 * more; `undefined` otherwise.
 */
export function findReportBehindQuestion(
  steps: KnownCoordination["steps"],
  { escalationId, stepId }: Pick<Escalation, "escalationId" | "stepId">,
): ContentRef | undefined {
  const step = stepId === undefined ? undefined : steps.get(stepId);
  const isAsked = step?.phase.status === "blocked" && step.phase.escalationId === escalationId;
  return isAsked ? findFailedReport(step) : undefined;
}

function listReadableTexts(step: Step): ReadableResult[] {
  const { phase, withheld, shortened = [] } = step;
  if (isResultKeptFromOthers(step)) return [];
  const texts = shortened.map(({ attempt, text }) => ({ kind: "text" as const, attempt, content: text }));
  const isOwn = isResultReleased(step) && withheld?.attempt === phase.attempt;
  return isOwn ? [...texts, { kind: "text", attempt: withheld.attempt, content: withheld.text }] : texts;
}

/** True when fewer shortened texts of a step are kept whole than the bound allows. */
export function hasRoomForText({ shortened }: Pick<Step, "shortened">): boolean {
  return (shortened?.length ?? 0) < BOUNDS.shortenedTextsMax;
}

const REJECTED: ReadonlySet<string> = new Set(["verification_failed", "withheld", "result_lost"]);

/** True when the result of a step is held, was withheld or was rejected: others may not read it. */
function isResultKeptFromOthers(step: Step): boolean {
  const { phase, withheld } = step;
  if (phase.status === "held" || (withheld !== undefined && !isResultReleased(step))) return true;
  return "error" in phase && REJECTED.has(phase.error.code);
}
