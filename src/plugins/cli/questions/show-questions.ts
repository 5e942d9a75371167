/** Owns: what `show` tells of held results, questions to people and criteria. `questions` lists all questions, with what was asked. */
import { isBudgetStop } from "../../../agents/coordination/contracts/escalation.ts";
import type { StepId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  CoordinationView,
  QuestionView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { GateLog, RecordedRelease, VerdictRecord } from "../../reports/gate-log.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable, shortenStart } from "../terminal/printable.ts";
import {
  findContestedWrite,
  type ContestedWrite,
  type FoundQuestion,
} from "../../reports/question-report.ts";
import {
  describeSubject,
  describeCause,
  formatCheck,
  describeClosing,
  formatPercent,
} from "../../reports/question-lines.ts";
import { describeShownResource } from "../../reports/shown-resource.ts";
import { mapStepNames } from "../../reports/step-name.ts";
import { formatCount, formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

const LINES_MAX = 10;
const RESOURCE_CELLS_MAX = 60;

/** Returns a plan's success criteria in words, each with whether it was met; an empty text without any. */
export function describeCriteria({ successCriteria = [] }: CoordinationView): string {
  return successCriteria.map(({ key, met }) => `${key} ${met ? "met" : "not met"}`).join(", ");
}

/** Returns the lines of a titled list of the newest questions, the newest first; empty where there is none. */
export function renderQuestionLines(
  view: CoordinationView,
  { terminal, now }: { readonly terminal: Terminal; readonly now: number },
): string[] {
  const { escalations, steps } = view;
  if (escalations.length === 0) return [];
  const paint = createPaint(terminal);
  const names = mapStepNames(steps);
  const lines = escalations
    .toReversed()
    .slice(0, LINES_MAX)
    .map((question) => {
      const { escalationId, askedAtMs, closed } = question;
      const parts = [
        escalationId,
        describeQuestion({ view, question }, names, terminal.unicode),
        describeQuestionOutcome(question, now),
      ];
      const line = parts.map((part) => formatPrintable(part, terminal.unicode)).join("  ");
      return `  ${formatInstant(askedAtMs)}  ${paint.tone(closed ? "plain" : "warning", line)}`;
    });
  const more = escalations.length > lines.length ? [`  and ${escalations.length - lines.length} more`] : [];
  return ["", "questions, newest first", ...lines, ...more];
}

/** Returns in words what a question is about and why it was asked; of a long name of a resource only the end. */
export function describeQuestion(
  found: FoundQuestion,
  names: ReadonlyMap<StepId, string>,
  unicode: boolean,
): string {
  const { question } = found;
  const stepName = question.stepId && names.get(question.stepId);
  const contested = findContestedWrite(found);
  const namedQuestion = {
    ...question,
    ...(stepName !== undefined && { stepName }),
    ...(contested && { contested: { ...contested, resource: shortenResource(contested, unicode) } }),
  };
  return `${describeSubject(namedQuestion)}: ${describeCause(namedQuestion)}`;
}

function shortenResource({ resource }: ContestedWrite, unicode: boolean): string {
  return shortenStart(describeShownResource(resource), RESOURCE_CELLS_MAX, unicode);
}

/** Returns in words what came of a question, until when people may answer, or since when it is past its time. */
export function describeQuestionOutcome(question: QuestionView, now: number): string {
  const { closed, deadlineAtMs } = question;
  if (isBudgetStop(question)) return "stopped, nobody was asked";
  if (closed) return describeClosing(question);
  return deadlineAtMs > now
    ? `open until ${formatInstant(deadlineAtMs)} (${formatDuration(deadlineAtMs - now)} left)`
    : `open, past its time since ${formatInstant(deadlineAtMs)}`;
}

export type VerdictsOf = ReadonlyMap<StepId, readonly VerdictRecord[]>;

/** Returns the verdicts of a coordination's gates by the ids of their steps. */
export function groupVerdictsByStep({ verdicts }: GateLog): VerdictsOf {
  return Map.groupBy(verdicts, ({ stepId }) => stepId);
}

/**
 * Returns the fields of a step for `show` about its result being held, as names with values; a value is empty where
 * there is none.
 */
export function listGateFields(step: StepView, log: GateLog, verdicts: VerdictsOf): [string, string][] {
  const { stepId, held: heldView, revisions } = step;
  const released = log.released.get(stepId);
  return [
    ["held", heldView ? describeHolding(step) : ""],
    ["question", heldView?.escalationId ?? ""],
    ["checks", describeChecks(step, verdicts.get(stepId) ?? [])],
    ["revised", revisions === undefined ? "" : formatCount(revisions, "time")],
    ["released", released ? RELEASED[released] : ""],
  ];
}

const RELEASED: Readonly<Record<RecordedRelease, string>> = {
  verified: "its checks passed",
  approved: "people approved it",
  replaced: "people replaced it",
};

/** Describes since when the result is held, and how sure its agent says to be. */
function describeHolding({ held: heldView, endedAtMs }: StepView): string {
  const since = endedAtMs === undefined ? "" : `since ${formatInstant(endedAtMs)}`;
  if (heldView?.confidenceUnreadable) return `${since}; the confidence that its agent states cannot be read`;
  return heldView?.confidence === undefined
    ? since
    : `${since}; its agent is ${formatPercent(heldView.confidence)} sure`;
}

/** Describes the verdicts on a step's results and, while one is held, the checks that are not answered yet. */
function describeChecks({ held: heldView, attempt }: StepView, verdicts: readonly VerdictRecord[]): string {
  const ruled = new Set(verdicts.filter((verdict) => verdict.attempt === attempt).map(({ check }) => check));
  const openChecks = (heldView?.checks ?? []).filter((check) => !ruled.has(check));
  return [...verdicts.map(describeVerdict), ...openChecks.map((check) => formatCheck({ check }))].join("; ");
}

/** Returns a gate's verdict in words, with the attempt it was about where that is not the first. */
export function describeVerdict(verdict: VerdictRecord): string {
  return `${formatCheck(verdict)}${verdict.attempt > 1 ? `, attempt ${verdict.attempt}` : ""}`;
}
