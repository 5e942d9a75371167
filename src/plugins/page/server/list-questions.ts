/** Owns: questions, conflicts and claims as the page shows them, and the revision that an answer is bound to. */
import { hash } from "node:crypto";
import { OWNER_STEP_ID } from "../../../agents/coordination/contracts/ids.ts";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { listClaims } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { giveWay } from "../../../platform/give-way.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import { createClaimReport } from "../../reports/claim-report.ts";
import { classifyOutcome } from "../../reports/conflict-outcome.ts";
import { findNewestConflicts } from "../../reports/find-conflicts.ts";
import { readKeptText } from "../../reports/find-coordination.ts";
import {
  createQuestionReads,
  findNewestQuestions,
  findQuestion,
  OPEN_QUESTIONS_MAX,
} from "../../reports/find-questions.ts";
import { createQuestionReport, findHeldText, type FoundQuestion } from "../../reports/question-report.ts";
import type {
  ClaimsList,
  ConflictsList,
  QuestionDetail,
  QuestionsList,
  ShownClaim,
  ShownConflict,
  ShownQuestion,
} from "../contract/questions.ts";
import type { Rights } from "../contract/session.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";

export interface OpenWanted {
  readonly isOpen: boolean;
  readonly limit: number;
}

/**
 * Returns open questions, those that expire first before the others, or the newest of all questions, with whether
 * there are more and how many logs are unreadable; texts appear by the session's rights.
 */
export async function listShownQuestions(
  reader: ReportedLedger,
  { isOpen, limit }: OpenWanted,
  rights: Rights,
): Promise<QuestionsList> {
  const newest = await findNewestQuestions(
    createQuestionReads(reader),
    isOpen ? { wanted: "open", limit: OPEN_QUESTIONS_MAX } : { wanted: "all", limit: limit + 1 },
  );
  const orderedQuestions = isOpen ? sortByDeadline(newest.questions) : newest.questions;
  const questions: ShownQuestion[] = [];
  for (const each of orderedQuestions.slice(0, limit)) {
    questions.push(await createShownQuestion(reader, each, rights));
    await giveWay();
  }
  const unreadable = newest.unreadable.length;
  return { questions, isMore: orderedQuestions.length > limit, ...(unreadable > 0 && { unreadable }) };
}

function sortByDeadline(found: readonly FoundQuestion[]): FoundQuestion[] {
  return found.toSorted((a, b) => a.question.deadlineAtMs - b.question.deadlineAtMs);
}

/**
 * Returns a question, with its held text where the session may read results; `undefined` for an id that is unknown or
 * only a prefix.
 */
export async function readQuestionDetail(
  reader: ReportedLedger,
  id: string,
  rights: Rights,
): Promise<QuestionDetail | undefined> {
  const named = await findQuestion(createQuestionReads(reader), id);
  if (named.kind !== "found") return undefined;
  const shown = await createShownQuestion(reader, named.found, rights);
  if (shown.questionId !== id) return undefined;
  if (!rights.results) return shown;
  const text = findHeldText(named.found);
  if (!text) return shown;
  return { ...shown, ...cutHeldText(await readKeptText(reader, text)) };
}

function cutHeldText(text: string | null): Partial<QuestionDetail> {
  if (text === null || text.length <= PAGE_BOUNDS.textCharsMax) return { heldText: text };
  return { heldText: text.slice(0, PAGE_BOUNDS.textCharsMax), isCut: true };
}

async function createShownQuestion(
  reader: ReportedLedger,
  found: FoundQuestion,
  { results }: Rights,
): Promise<ShownQuestion> {
  const report = await createQuestionReport(reader, found, { isForOperator: results });
  return { ...report, revision: computeQuestionRevision(found) };
}

/**
 * Returns a hash of all that an answer rules on. Another text, check, verdict or set of answers is another revision;
 * who was told of the question, and answers that did not count, change nothing.
 */
function computeQuestionRevision({ view, question }: FoundQuestion): string {
  const { notified: _, notices: __, refusedAnswers: ___, ...ruledOn } = question;
  const step = view.steps.find(({ stepId }) => stepId === question.stepId);
  const about = step && { attempt: step.attempt, held: step.held, differences: step.differences };
  return hash("sha256", formatCanonicalJson(JSON.parse(JSON.stringify({ ruledOn, about })))).slice(0, 32);
}

/**
 * Returns the newest conflicts of all coordinations, or the open ones, each with its outcome and the requesting step's
 * name.
 */
export async function listConflicts(
  reader: ReportedLedger,
  { isOpen, limit }: OpenWanted,
): Promise<ConflictsList> {
  const query = { isOpen, limit: limit + 1 };
  const { conflicts: found, unreadable } = await findNewestConflicts(reader, query);
  return {
    isMore: found.length > limit,
    ...(unreadable.length > 0 && { unreadable: unreadable.length }),
    conflicts: found.slice(0, limit).map(({ conflict, names }): ShownConflict => {
      const { contest } = conflict;
      const requester = contest ? (names.get(contest.requester) ?? contest.requester) : "-";
      return { ...conflict, requesterName: requester, outcome: classifyOutcome(conflict) };
    }),
  };
}

/**
 * Returns the claims of all coordinations up to the page's bound, with whether there are more; those that have expired
 * are marked.
 */
export async function listHeldClaims(reader: ReportedLedger, now: number): Promise<ClaimsList> {
  const claims: ShownClaim[] = [];
  for await (const entry of listClaims(reader)) {
    if (claims.length === PAGE_BOUNDS.claimsMax) return { claims, isMore: true };
    claims.push({ ...createClaimReport(entry, now), isOfOwner: entry.stepId === OWNER_STEP_ID });
  }
  return { claims, isMore: false };
}
