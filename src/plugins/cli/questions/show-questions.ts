/** Owns: what `show` tells of held results, questions to people and criteria. `questions` lists all questions, with what was asked. */
import { isBudgetStop } from "../../../agents/coordination/contracts/escalation.ts";
import type { StepId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  CoordinationView,
  QuestionView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { GateLog, Released, VerdictRecord } from "../../reports/gate-log.ts";
import { paintFor } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  describeSubject,
  describeCause,
  checkText,
  describeClosing,
  formatPercent,
} from "../../reports/question-lines.ts";
import { formatCount, formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

const LINES_MAX = 10;

export function describeQuestions({ escalations }: CoordinationView): string {
  const questions = escalations.filter((question) => !isBudgetStop(question));
  const open = questions.filter(({ closed }) => !closed).length;
  if (questions.length === 0) return "";
  return `${questions.length}${open > 0 ? `, ${open} open` : ""}`;
}

export function describeCriteria({ successCriteria = [] }: CoordinationView): string {
  return successCriteria.map(({ key, met }) => `${key} ${met ? "met" : "not met"}`).join(", ");
}

/** Renders one line for each question, the newest first. */
export function renderQuestions(
  { escalations, steps }: CoordinationView,
  { terminal, now }: { readonly terminal: Terminal; readonly now: number },
): string[] {
  if (escalations.length === 0) return [];
  const paint = paintFor(terminal);
  const names = namesOf(steps);
  const lines = escalations
    .toReversed()
    .slice(0, LINES_MAX)
    .map((question) => {
      const { escalationId, askedAtMs, closed } = question;
      const parts = [escalationId, describeQuestion(question, names), describeOutcome(question, now)];
      const line = parts.map((part) => formatPrintable(part, terminal.unicode)).join("  ");
      return `  ${formatInstant(askedAtMs)}  ${paint.tone(closed ? "plain" : "warning", line)}`;
    });
  const more = escalations.length > lines.length ? [`  and ${escalations.length - lines.length} more`] : [];
  return ["", "questions, newest first", ...lines, ...more];
}

export function namesOf(steps: readonly StepView[]): ReadonlyMap<StepId, string> {
  return new Map(steps.flatMap(({ stepId, name }) => (name === undefined ? [] : [[stepId, name] as const])));
}

/** Describes what the question is about and why it was asked. */
export function describeQuestion(question: QuestionView, names: ReadonlyMap<StepId, string>): string {
  const stepName = question.stepId && names.get(question.stepId);
  const namedQuestion = { ...question, ...(stepName !== undefined && { stepName }) };
  return `${describeSubject(namedQuestion)}: ${describeCause(namedQuestion)}`;
}

/** Describes what came of the question, or until when people may answer. */
export function describeOutcome(question: QuestionView, now: number): string {
  const { closed, deadlineAtMs } = question;
  if (isBudgetStop(question)) return "stopped, nobody was asked";
  if (closed) return describeClosing(question);
  return deadlineAtMs > now
    ? `open until ${formatInstant(deadlineAtMs)} (${formatDuration(deadlineAtMs - now)} left)`
    : `open, past its time since ${formatInstant(deadlineAtMs)}`;
}

export type VerdictsOf = ReadonlyMap<StepId, readonly VerdictRecord[]>;

export function groupVerdictsByStep({ verdicts }: GateLog): VerdictsOf {
  return Map.groupBy(verdicts, ({ stepId }) => stepId);
}

/** The fields of a step about its result being held; those without a value are left out. */
export function listGateFields(step: StepView, log: GateLog, verdicts: VerdictsOf): [string, string][] {
  const { stepId, held: heldView, revisions } = step;
  const released = log.released.get(stepId);
  return [
    ["held", heldView ? describeHeld(step) : ""],
    ["question", heldView?.escalationId ?? ""],
    ["checks", describeChecks(step, verdicts.get(stepId) ?? [])],
    ["revised", revisions === undefined ? "" : formatCount(revisions, "time")],
    ["released", released ? RELEASED[released] : ""],
  ];
}

const RELEASED: Readonly<Record<Released, string>> = {
  verified: "its checks passed",
  approved: "people approved it",
  replaced: "people replaced it",
};

function describeHeld({ held: heldView, endedAtMs }: StepView): string {
  const since = endedAtMs === undefined ? "" : `since ${formatInstant(endedAtMs)}`;
  if (heldView?.confidenceUnreadable) return `${since}; the confidence that its agent states cannot be read`;
  return heldView?.confidence === undefined
    ? since
    : `${since}; its agent is ${formatPercent(heldView.confidence)} sure`;
}

/** While it is held, also the checks that are not answered yet. */
function describeChecks({ held: heldView, attempt }: StepView, verdicts: readonly VerdictRecord[]): string {
  const ruled = new Set(verdicts.filter((verdict) => verdict.attempt === attempt).map(({ check }) => check));
  const openChecks = (heldView?.checks ?? []).filter((check) => !ruled.has(check));
  return [...verdicts.map(describeVerdict), ...openChecks.map((check) => checkText({ check }))].join("; ");
}

export function describeVerdict(verdict: VerdictRecord): string {
  return `${checkText(verdict)}${verdict.attempt > 1 ? `, attempt ${verdict.attempt}` : ""}`;
}
