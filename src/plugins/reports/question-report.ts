/** Owns: the form in which a question to people is shown to programs. Does not own: how it reads (`question-text.ts`). */
import type { AnswerKind, Notice, QuestionText } from "../../agents/coordination/contracts/escalation.ts";
import type { ChildDifference, ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId, SessionKey } from "../../agents/coordination/contracts/ids.ts";
import type { Finding, VerificationFailure } from "../../agents/coordination/contracts/verification.ts";
import type { ContentReader } from "../../agents/coordination/ports/content-store.ts";
import type {
  CoordinationView,
  HeldView,
  QuestionView,
  StepView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { createQuestionId } from "../../agents/coordination/runtime/questions/question-requests.ts";
import { readQuestionText } from "../../agents/coordination/runtime/questions/question-text.ts";
import { readReportedReason } from "../../agents/coordination/runtime/questions/reported-reason.ts";
import { isRequester } from "./conflict-outcome.ts";
import { mapStepNames, nameParty } from "./step-name.ts";

/** The name of a field that a report has from the view of its question. */
type SharedField =
  | "escalationId"
  | "cause"
  | "kind"
  | "stepId"
  | "askedBy"
  | "askedOf"
  | "forwardedAtMs"
  | "askedAtMs"
  | "deadlineAtMs"
  | "confidence"
  | "conflictId"
  | "overwritten"
  | "stepEnded"
  | "requireDifferentApprover"
  | "closed"
  | "answered"
  | "refusedAnswers"
  | "wordsWithheld";

/** A question with as much of its step as tells why it is asked. */
export interface AskedQuestion extends Pick<QuestionView, SharedField> {
  readonly stepName?: string;
  /** Checks of the result that it is about, while that is held. */
  readonly checks?: readonly CheckReport[];
  /** Differences of the step that it is about: where its agent did not run as it was asked. */
  readonly differences?: readonly ChildDifference[];
  /** The write that it is about; absent in chats, in answers of gateway methods, and on the page without its right `results`. */
  readonly contested?: ContestedWrite;
}

/** A resource that a step wants to write, or has written, and those who stand against it by name. */
export interface ContestedWrite {
  readonly resource: string;
  readonly by: readonly string[];
}

/** As the commands print it with `--json`, and gateway methods answer it. Confidences are in basis points. */
export interface QuestionReport extends AskedQuestion {
  /** The id by which it is answered. */
  readonly questionId: string;
  readonly coordinationId: CoordinationId;
  readonly ownerSession: SessionKey;
  readonly status: "open" | "closed";
  readonly answers: readonly AnswerKind[];
  readonly onExpiry: "deny" | "default";
  /** The held result or words. The hash is for operators who read the ledger, because a short text is guessed from it. */
  readonly result?: HeldResult;
  /** The question, as an agent wrote it; `null` once it is no longer kept; absent where it is withheld, but for operators who read the ledger. */
  readonly asked?: QuestionText | null;
  /** Why its agent could not do the step that is to be tried once more, as the agent wrote it; absent once it is no longer kept. */
  readonly reason?: string;
  readonly notices?: readonly NoticeReport[];
}

/** The size of a held result, in bytes of UTF-8, and the hash that names it where the reader may read the text. */
export interface HeldResult {
  readonly bytes: number;
  readonly sha256?: string;
}

/** Says what a check found, why it found nothing, or neither while it is asked. */
export interface CheckReport extends Partial<Finding> {
  readonly check: string;
  readonly because?: VerificationFailure;
}

export interface NoticeReport extends Notice {
  readonly outcome: "delivered" | "failed" | "pending";
}

/** A question with the coordination that it is of. */
export interface FoundQuestion {
  readonly view: CoordinationView;
  readonly question: QuestionView;
}

/**
 * Returns the reference to the text that a question rules on: the held result, or the last words of an agent that
 * reported none; `undefined` where its step is not held for it.
 */
export function findHeldText({ view, question }: FoundQuestion): ContentRef | undefined {
  const heldView = view.steps.find(({ stepId }) => stepId === question.stepId)?.held;
  return heldView?.escalationId === question.escalationId ? (heldView.output ?? heldView.words) : undefined;
}

/**
 * Reads the texts of a question and returns its report; texts that are withheld are in it for operators alone. @throws
 * CoordinationError as `ContentStore.get`
 */
export async function createQuestionReport(
  content: ContentReader,
  found: FoundQuestion,
  { isForOperator }: { readonly isForOperator: boolean },
): Promise<QuestionReport> {
  const { view, question } = found;
  const { coordinationId, ownerSession, steps } = view;
  const { question: text, reason: _, notices, notified: __, ...others } = question;
  const { answers = [], onExpiry = "deny", ...shared } = others;
  const isReadable = isForOperator || !shared.wordsWithheld;
  const step = steps.find(({ stepId }) => stepId === shared.stepId);
  return {
    questionId: createQuestionId(coordinationId, shared.escalationId),
    coordinationId,
    ownerSession,
    status: question.closed ? "closed" : "open",
    ...shared,
    ...(step && createStepFields(step, question)),
    ...createResultField(found, isForOperator),
    ...createContestField(found, isForOperator),
    answers,
    onExpiry,
    ...(await readReasonField(content, question)),
    ...(text && isReadable && { asked: (await readQuestionText({ content }, question)) ?? null }),
    ...(notices && { notices: listNoticeReports(notices, question) }),
  };
}

/** Returns the field with the size of the held text; its hash is for operators only. Empty where there is none. */
function createResultField(found: FoundQuestion, isForOperator: boolean): Pick<QuestionReport, "result"> {
  const text = findHeldText(found);
  return text ? { result: isForOperator ? text : { bytes: text.bytes } } : {};
}

/** Returns the field with the write that a question is about; for operators only. Empty where it is about none. */
function createContestField(found: FoundQuestion, isForOperator: boolean): Pick<QuestionReport, "contested"> {
  const contested = isForOperator ? findContestedWrite(found) : undefined;
  return contested ? { contested } : {};
}

/** Returns the write that a question is about, with who stands against it; `undefined` where it is about none. */
export function findContestedWrite({ view, question }: FoundQuestion): ContestedWrite | undefined {
  const conflict = view.conflicts.find(({ conflictId }) => conflictId === question.conflictId);
  if (!conflict) return undefined;
  const { resource, claims, contest } = conflict;
  const others = claims.filter((claim) => !isRequester(contest, claim));
  const ids = new Set(others.map(({ stepId }) => stepId));
  const names = mapStepNames(view.steps.filter(({ stepId }) => ids.has(stepId)));
  return { resource, by: [...new Set(others.map((claim) => nameParty(names, claim)))] };
}

async function readReasonField(
  content: ContentReader,
  { reason: report }: QuestionView,
): Promise<Pick<QuestionReport, "reason">> {
  const reason = report && (await readReportedReason({ content }, report));
  return reason === undefined ? {} : { reason };
}

function createStepFields(
  { name, held: heldView, differences }: StepView,
  { escalationId }: QuestionView,
): Partial<AskedQuestion> {
  return {
    ...(name !== undefined && { stepName: name }),
    ...(differences && { differences }),
    ...(heldView?.escalationId === escalationId &&
      heldView.checks.length > 0 && { checks: listCheckReports(heldView) }),
  };
}

/** Lists the notices. One that is due after its question was closed is never sent. */
function listNoticeReports(
  notices: readonly Notice[],
  { notified = {}, closed }: QuestionView,
): NoticeReport[] {
  return notices.flatMap((notice, place) => {
    const outcome = notified[place] ?? (closed ? undefined : "pending");
    return outcome === undefined ? [] : [{ ...notice, outcome }];
  });
}

function listCheckReports({ checks, findings, failures }: HeldView): CheckReport[] {
  return checks.map((check) => {
    const finding = findings.find((each) => each.check === check);
    const because = failures[check];
    return finding ?? { check, ...(because && { because }) };
  });
}
