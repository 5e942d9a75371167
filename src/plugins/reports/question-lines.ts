/**
 * Owns: how a question to people reads: why it is asked, what answers bring about, what came of it. Does not own: making it safe for
 * a terminal, which the callers do.
 */
import type { Answerer, AnswerKind } from "../../agents/coordination/contracts/escalation.ts";
import type { ChildDifference } from "../../agents/coordination/contracts/fact-fields.ts";
import type {
  AskedQuestion,
  CheckReport,
  ContestedWrite,
  NoticeReport,
  QuestionReport,
} from "./question-report.ts";
import { describeShownResource } from "./shown-resource.ts";
import { formatInstant } from "../../agents/coordination/std/quantities.ts";

/** The part of a question that tells what it is about. */
type QuestionSubject = Pick<
  AskedQuestion,
  "cause" | "stepId" | "stepName" | "confidence" | "overwritten" | "stepEnded"
>;

/** The subject of an answer. */
type AnswerSubject =
  "result" | "step" | "plan" | "attempt" | "budget" | "write" | "overwrite" | "late overwrite" | "agent";

/** Returns the kind of thing that an answer decides about, such as a result, a write or the budget. */
function classifySubject({
  cause,
  stepId,
  confidence,
  overwritten,
  stepEnded,
}: QuestionSubject): AnswerSubject {
  switch (cause) {
    case "verifier":
    case "mismatch":
    case "merge":
      return "result";
    case "confidence":
      if ((confidence?.of ?? "decision") !== "decision") return "result";
      return stepId === undefined ? "plan" : "step";
    case "retries_exhausted":
    case "deadline":
      return "attempt";
    case "budget":
      return stepId === undefined ? "budget" : "attempt";
    case "conflict":
      if (!overwritten) return "write";
      return stepEnded ? "late overwrite" : "overwrite";
    case "agent":
      return "agent";
  }
}

/** Returns basis points as a text in percent: `90%` of 9000. */
export function formatPercent(basisPoints: number): string {
  return `${basisPoints / 100}%`;
}

/**
 * Returns the text for what a question is about: the step by name and id, or the plan or the owner where it is about
 * no step.
 */
export function describeSubject({ stepId, stepName, cause }: QuestionSubject): string {
  if (stepId === undefined) return cause === "agent" ? "the owner" : "the plan";
  return stepName === undefined || stepName === stepId ? `step ${stepId}` : `step ${stepName} (${stepId})`;
}

/** Returns the reasons why a question is asked as one text. */
export function describeCause(question: AskedQuestion): string {
  return listCauses(question).join("; ");
}

/**
 * Lists the texts that say why a question is asked; where it is about a write, also against whom and of which resource,
 * and where it is about a result, also how its agent ran otherwise than asked.
 */
export function listCauses(question: AskedQuestion): string[] {
  const reason = describeReason(question);
  const { cause, contested, differences = [] } = question;
  if (contested) return [reason, ...listContestants(contested)];
  const isOther = classifySubject(question) === "result" && cause !== "mismatch";
  return isOther && differences.length > 0 ? [reason, describeMismatch(question)] : [reason];
}

function describeReason(question: AskedQuestion): string {
  switch (question.cause) {
    case "confidence":
      return describeConfidence(question);
    case "verifier":
      return describeChecks(question);
    case "mismatch":
      return describeMismatch(question);
    case "merge":
      return "what it did in its worktree could not be merged";
    case "conflict":
      return question.overwritten
        ? "its command overwrote a file that others hold"
        : "others stand against its write";
    case "retries_exhausted":
      return "its last attempt failed";
    case "deadline":
      return "its last attempt ran out of time";
    case "budget":
      return "its budget is spent";
    case "agent":
      if (question.askedOf !== undefined && question.forwardedAtMs === undefined)
        return "its agent asks its parent";
      return question.kind === "approval" ? "its agent asks for approval" : "its agent asks";
  }
}

/** Agents choose these names: they are in quotes, and each kind has a line of its own where a terminal cuts long ones. */
function listContestants({ resource, by }: ContestedWrite): string[] {
  const about = `about ${JSON.stringify(describeShownResource(resource))}`;
  return by.length === 0 ? [about] : [about, `against ${by.map((name) => JSON.stringify(name)).join(", ")}`];
}

function describeMismatch({ differences = [] }: AskedQuestion): string {
  const details = differences.map(describeDifference).join("; ");
  return `its agent did not run as it was asked${details === "" ? "" : `: ${details}`}`;
}

/**
 * Returns the text of how a child ran otherwise than asked, like `model openai/large was asked, and openai/small ran`.
 */
export function describeDifference({ field, asked: requested, ran }: ChildDifference): string {
  return field === "writes"
    ? `it was to work in ${requested}, and wrote ${ran}`
    : `${field} ${requested} was asked, and ${ran} ran`;
}

function describeConfidence({ confidence }: AskedQuestion): string {
  const { measured, floor, of = "decision" } = confidence ?? { floor: 0 };
  const subjects = { decision: "its planner states", result: "its agent states", verdict: "a check states" }[
    of
  ];
  const below = floor > 0 ? formatPercent(floor) : "what is demanded";
  return measured === undefined
    ? `${subjects} no readable confidence, and ${below} is demanded`
    : `${subjects} a confidence of ${formatPercent(measured)}${of === "verdict" ? " in its verdict" : ""}, below ${below}`;
}

function describeChecks({ checks = [] }: AskedQuestion): string {
  if (checks.some(({ because }) => because)) return "its result could not be checked";
  return checks.some(({ verdict }) => verdict === "revise")
    ? "a check wants another revision, and there is none left"
    : "its result could not be verified";
}

/**
 * Returns the text of a check of a result with its verdict, like `facts: fail by agent:critic at 90% (sources)`, or
 * why there is none.
 */
export function formatCheck({
  check,
  verdict,
  because,
  agentId,
  confidence,
  criteria,
  self,
}: CheckReport): string {
  if (because) return `${check}: no verdict (${because.replaceAll("_", " ")})`;
  if (!verdict) return `${check}: not yet`;
  const by = agentId === undefined ? "" : ` by ${agentId}${self ? ", which did the work itself" : ""}`;
  const confidenceText = confidence === undefined ? "" : ` at ${formatPercent(confidence)}`;
  const keys = criteria && criteria.length > 0 ? ` (${criteria.join(", ")})` : "";
  return `${check}: ${verdict}${by}${confidenceText}${keys}`;
}

/** Returns the text of a notice to people: its channel and what became of it, or when it is due. */
export function describeNotice({ channel, atMs, outcome }: NoticeReport): string {
  return outcome === "pending" ? `${channel} due at ${formatInstant(atMs)}` : `${channel} ${outcome}`;
}

/**
 * Returns the kinds of answers that a question takes as one text; where it takes none, what to do in place of
 * answering.
 */
export function describeAnswers(answers: readonly AnswerKind[]): string {
  if (answers.length === 0) return "none: retry or cancel the step";
  return answers.length === 1
    ? (answers[0] ?? "")
    : `${answers.slice(0, -1).join(", ")} or ${answers.at(-1) ?? ""}`;
}

/** How a question was closed, as its report says. */
type ReportedResolution = NonNullable<QuestionReport["closed"]>["resolution"];

/** Returns the text that says what a resolution of a question brings about, be it an answer or its end without one. */
export function describeEffect(question: QuestionSubject, resolution: ReportedResolution): string {
  const about = describeSubject(question);
  const subject = classifySubject(question);
  switch (resolution) {
    case "approved":
      return APPROVED[subject](about);
    case "denied":
      return DENIED[subject](about);
    case "answered":
      return subject === "result"
        ? `your text counts as the result of ${about}`
        : "the agent is told your answer";
    case "retried":
      return `${about} is tried again`;
    case "continued":
      return "the plan goes on beyond its budget";
    case "expired":
      return `nobody answered in time: ${DENIED[subject](about)}`;
    case "cancelled":
      return "nobody needs an answer any more";
  }
}

const APPROVED: Readonly<Record<AnswerSubject, (about: string) => string>> = {
  result: (about) => `the result of ${about} counts now`,
  step: (about) => `${about} may begin`,
  plan: () => "the plan may begin",
  attempt: (about) => `${about} is tried again`,
  budget: () => "the plan goes on beyond its budget",
  write: (about) => `the write of ${about} may happen`,
  overwrite: (about) => `${about} has the file now, and what others claimed of it ends`,
  "late overwrite": () => "the file stays as it is now, and its holder keeps its claim",
  agent: () => "the agent is told yes",
};

const DENIED: Readonly<Record<AnswerSubject, (about: string) => string>> = {
  result: (about) => `the result of ${about} stays withheld, and the step fails`,
  step: (about) => `${about} is skipped`,
  plan: () => "the plan does not begin",
  attempt: (about) => `${about} fails`,
  budget: () => "the plan stops",
  write: (about) => `the write of ${about} does not happen`,
  overwrite: () => "the file stays as it is now, and its holder keeps its claim",
  "late overwrite": () => "the file stays as it is now, and its holder keeps its claim",
  agent: () => "the agent is told no",
};

/** Returns the text that says what happens to a question when nobody answers it in time. */
export function describeExpiry(question: QuestionReport): string {
  return question.onExpiry === "default"
    ? "what its agent named for this case counts"
    : DENIED[classifySubject(question)](describeSubject(question));
}

/** Names the answerer like `person telegram:42`, or by the kind of caller when there is no name. */
function describeAnswerer({ kind, id, session }: Answerer): string {
  if (kind === "agent") return `the agent of ${session ?? "its parent"}`;
  return id === undefined ? `an ${kind === "operator" ? "operator" : "unnamed person"}` : `${kind} ${id}`;
}

/**
 * Returns the text that says what closed a question, like `approved by person telegram:42 through chat at 2026-…`;
 * empty for an open one.
 */
export function describeClosing({ closed, answered, deadlineAtMs }: AskedQuestion): string {
  if (!closed) return "";
  const { resolution } = closed;
  if (answered) {
    const { by, through, atMs } = answered;
    return `${resolution} by ${describeAnswerer(by)} through ${through} at ${formatInstant(atMs)}`;
  }
  if (resolution === "expired") return `expired at ${formatInstant(deadlineAtMs)}: nobody answered`;
  return resolution === "cancelled" ? "withdrawn: nobody needs an answer any more" : resolution;
}
