/** Owns: what `show` tells of held results, questions to people and criteria. `questions` lists all questions, with what was asked. */
import type { StepId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  CoordinationView,
  QuestionView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { GateLog, Released, VerdictRecord } from "./gate-log.ts";
import { paintFor } from "../terminal/paint.ts";
import { printable } from "../terminal/printable.ts";
import { aboutText, causeText, checkText, closedText, percent } from "./question-lines.ts";
import { formatCount, formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

const LINES_MAX = 10;

export function questionsText({ escalations }: CoordinationView): string {
  const open = escalations.filter(({ closed }) => !closed).length;
  if (escalations.length === 0) return "";
  return `${escalations.length}${open > 0 ? `, ${open} open` : ""}`;
}

export function criteriaText({ successCriteria = [] }: CoordinationView): string {
  return successCriteria.map(({ key, met }) => `${key} ${met ? "met" : "not met"}`).join(", ");
}

/** One line each, newest first. */
export function questionLines(
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
      const parts = [escalationId, questionText(question, names), outcomeText(question, now)];
      const said = parts.map((part) => printable(part, terminal.unicode)).join("  ");
      return `  ${formatInstant(askedAtMs)}  ${paint.tone(closed ? "plain" : "warning", said)}`;
    });
  const more = escalations.length > lines.length ? [`  and ${escalations.length - lines.length} more`] : [];
  return ["", "questions, newest first", ...lines, ...more];
}

export function namesOf(steps: readonly StepView[]): ReadonlyMap<StepId, string> {
  return new Map(steps.flatMap(({ stepId, name }) => (name === undefined ? [] : [[stepId, name] as const])));
}

/** What the question is about and why it was asked. */
export function questionText(question: QuestionView, names: ReadonlyMap<StepId, string>): string {
  const stepName = question.stepId && names.get(question.stepId);
  const asked = { ...question, ...(stepName !== undefined && { stepName }) };
  return `${aboutText(asked)}: ${causeText(asked)}`;
}

/** What came of it, or until when people may answer. */
export function outcomeText(question: QuestionView, now: number): string {
  const { closed, deadlineAtMs } = question;
  if (closed) return closedText(question);
  return deadlineAtMs > now
    ? `open until ${formatInstant(deadlineAtMs)} (${formatDuration(deadlineAtMs - now)} left)`
    : `open, past its time since ${formatInstant(deadlineAtMs)}`;
}

export type VerdictsOf = ReadonlyMap<StepId, readonly VerdictRecord[]>;

export function verdictsByStep({ verdicts }: GateLog): VerdictsOf {
  return Map.groupBy(verdicts, ({ stepId }) => stepId);
}

/** The fields of a step about its result being held; those without a value are left out. */
export function gateFields(
  step: StepView,
  log: Pick<GateLog, "released">,
  verdicts: VerdictsOf,
): [string, string][] {
  const { stepId, held, revisions } = step;
  const released = log.released.get(stepId);
  return [
    ["held", held ? heldText(step) : ""],
    ["question", held?.escalationId ?? ""],
    ["checks", checksText(step, verdicts.get(stepId) ?? [])],
    ["revised", revisions === undefined ? "" : formatCount(revisions, "time")],
    ["released", released ? RELEASED[released] : ""],
  ];
}

const RELEASED: Readonly<Record<Released, string>> = {
  verified: "its checks passed",
  approved: "people approved it",
  replaced: "people replaced it",
};

function heldText({ held, endedAtMs }: StepView): string {
  const since = endedAtMs === undefined ? "" : `since ${formatInstant(endedAtMs)}`;
  if (held?.confidenceUnreadable) return `${since}; the confidence that its agent states cannot be read`;
  return held?.confidence === undefined ? since : `${since}; its agent is ${percent(held.confidence)} sure`;
}

/** While it is held, also the checks that are not answered yet. */
function checksText({ held, attempt }: StepView, own: readonly VerdictRecord[]): string {
  const ruled = new Set(own.filter((verdict) => verdict.attempt === attempt).map(({ check }) => check));
  const asked = (held?.checks ?? []).filter((check) => !ruled.has(check));
  return [...own.map(verdictText), ...asked.map((check) => checkText({ check }))].join("; ");
}

export function verdictText(verdict: VerdictRecord): string {
  return `${checkText(verdict)}${verdict.attempt > 1 ? `, attempt ${verdict.attempt}` : ""}`;
}
