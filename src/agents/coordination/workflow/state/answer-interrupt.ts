/**
 * Owns: what counts as an answer to an interrupt (interrupt.md), and what follows from one.
 *
 * I1 an answer is one of those that the question takes; whatever else is refused, and the question stays open. I2 every voice is that
 * of a principal who was authenticated: a name in the answer is no authority, and whoever only holds a token has no voice among several.
 */
import { decisionSchema, type WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { isGiven, readAction, type AnswerAction } from "./answer-words.ts";
import { readClarificationAnswers } from "./clarification-answers.ts";
import type { InterruptAnswer, Interrupt, NodeRun, Vote } from "./workflow-state.ts";
import { isSameValue, type Values } from "./values.ts";
import { isRecord } from "../../std/is-record.ts";

/** The events that record an answer to an interrupt, or why it is refused. */
export type AnswerRuling =
  | { readonly ok: true; readonly drafts: readonly WorkflowDraft[] }
  | { readonly ok: false; readonly code: "validation_error" | "forbidden"; readonly message: string };

export interface AnswerRequest {
  readonly node: NodeRun;
  readonly interrupt: Interrupt;
  readonly value: unknown;
  /** Who answers, as the host knows them. */
  readonly by: string;
  /** Nobody was authenticated: a signed token was the authority. */
  readonly isTokenHolder?: boolean;
  /** Set for runs of the protocol's own suite: `voter` of the answer is who speaks. */
  readonly believesVoter?: boolean;
}

/**
 * Drafts what follows from an answer to a node's question, or returns why the question does not take it. It records
 * nothing.
 */
export function answerInterrupt(request: AnswerRequest): AnswerRuling {
  if (request.isTokenHolder && needsLogin(request.interrupt))
    return forbidAnswer(
      "this question wants to know who answers: answer with a bearer token, not with a signed one",
    );
  switch (request.interrupt.kind) {
    case "approval":
      return answerApproval(request);
    case "clarification":
      return answerClarification(request);
    case "external-event":
      return answerExternalEvent(request);
    case "low-confidence":
      return answerDoubt(request);
    case "custom":
      return acceptAnswer(request, wrapAsRecord(request.value));
  }
}

/** True when this answer, by the same person, is the one that settled the node's question, and is given again. */
export function isRecordedAnswer(
  recorded: InterruptAnswer,
  request: Omit<AnswerRequest, "interrupt">,
): boolean {
  const { interruptId, kind, asked: question, eventId, resumeValue, by } = recorded;
  if (by !== request.by) return false;
  // Where several must approve, the vote that settled the question stands in the log by itself.
  const data = { ...question.data, requiredApprovals: 1 };
  const interrupt = { interruptId, kind, key: "", atMs: request.node.startedAtMs, eventId, data, votes: [] };
  const { value } = request;
  const values = [value];
  // Earlier releases recorded every refusal in the older words as a no, with feedback too.
  if (kind === "approval" && isRefusalInOlderWords(value)) values.push({ ...value, action: "reject" });
  return values.some((possible) => {
    const answered = answerInterrupt({ ...request, interrupt, value: possible });
    return (
      answered.ok &&
      answered.drafts.some(
        (draft) => draft.type === "interrupt.resolved" && isSameValue(draft.payload.resumeValue, resumeValue),
      )
    );
  });
}

function wrapAsRecord(value: unknown): Values {
  return isRecord(value) ? value : { value: value ?? null };
}

function refuseInvalidAnswer(message: string): AnswerRuling {
  return { ok: false, code: "validation_error", message };
}

function forbidAnswer(message: string): AnswerRuling {
  return { ok: false, code: "forbidden", message };
}

/** The profile of a question that is answered with a bearer token only. */
export const LOGIN_PROFILE = "openwop-interrupt-auth-required";

/**
 * True when a question may be answered only by somebody who is logged in: whoever holds a signed token is nobody in
 * particular.
 */
export function needsLogin(interrupt: Interrupt): boolean {
  return (
    interrupt.data["profile"] === LOGIN_PROFILE ||
    hasApproversList(interrupt) ||
    countNeededApprovals(interrupt) > 1
  );
}

function countNeededApprovals({ data: { requiredApprovals } }: Interrupt): number {
  return typeof requiredApprovals === "number" ? requiredApprovals : 1;
}

function acceptAnswer(
  { node: { nodeId }, interrupt, by }: AnswerRequest,
  resumeValue: Values,
  more: Values = {},
): AnswerRuling & { ok: true } {
  const { interruptId, kind } = interrupt;
  const payload = { nodeId, interruptId, kind, resumeValue, resolvedBy: by, ...more };
  return { ok: true, drafts: [{ type: "interrupt.resolved", nodeId, payload }] };
}

const DOUBT_ACTIONS: readonly AnswerAction[] = ["accept", "reject"];
const DECISION_ACTIONS: readonly AnswerAction[] = ["accept", "reject", "edit-accept"];

/**
 * Answers a doubt. Only a yes lets it go on; a doubted decision may be replaced by another one, which interrupt.md
 * lets stand alone.
 */
function answerDoubt(request: AnswerRequest): AnswerRuling {
  const isAboutDecision = isDecision(request.interrupt.data["decision"]);
  const value: unknown =
    isAboutDecision && isDecision(request.value)
      ? { action: "edit-accept", editedArtifactData: request.value }
      : request.value;
  const read = readAction(value, isAboutDecision ? DECISION_ACTIONS : DOUBT_ACTIONS);
  if (!read.ok) return refuseInvalidAnswer(read.message);
  const answer = wrapAsRecord(value);
  if (read.action === "edit-accept" && !isDecision(answer["editedArtifactData"]))
    return refuseInvalidAnswer(NO_DECISION);
  const named = replaceDecidedBy(request, { ...answer, action: read.action });
  return refuseStranger(request, answer) ?? acceptAnswer(request, named);
}

/** The type of artifact of an orchestrator's decision, where it is edited. */
export const DECISION_ARTIFACT = "orchestrator-decision";
const NO_DECISION = "editedArtifactData must be a decision";

function isDecision(value: unknown): boolean {
  return decisionSchema.safeParse(value).success;
}

const APPROVAL_ACTIONS: readonly AnswerAction[] = ["accept", "reject", "refine", "edit-accept"];

function answerApproval(request: AnswerRequest): AnswerRuling {
  const { interrupt } = request;
  const { actions } = interrupt.data;
  const offered = APPROVAL_ACTIONS.filter((action) => Array.isArray(actions) && actions.includes(action));
  const mayRefine = offered.includes("refine") && countNeededApprovals(interrupt) <= 1;
  const value = mayRefine ? translateFeedback(request.value) : request.value;
  const read = readAction(value, offered);
  if (!read.ok) return refuseInvalidAnswer(read.message);
  const answer = wrapAsRecord(value);
  const { action } = read;
  const problem = findApprovalProblem(interrupt, action, answer);
  if (problem !== undefined) return refuseInvalidAnswer(problem);
  return (
    refuseStranger(request, answer) ??
    recordApprovalVote(request, action, replaceDecidedBy(request, { ...answer, action }))
  );
}

/** Returns an answer in which feedback beside a refusal in the older words asks for another version (interrupt.md). */
function translateFeedback(value: unknown): unknown {
  if (!isRefusalInOlderWords(value)) return value;
  const { feedback, refineFeedback: stated } = value;
  if (typeof feedback !== "string" || feedback.trim() === "") return value;
  const refineFeedback = isRecord(stated) ? stated : { scope: "whole", text: feedback };
  return { ...value, action: "refine", refineFeedback };
}

function isRefusalInOlderWords(value: unknown): value is Values {
  return isRecord(value) && value["decision"] === "rejected" && !isGiven(value, "action");
}

function findApprovalProblem(interrupt: Interrupt, action: AnswerAction, answer: Values): string | undefined {
  if (action !== "refine" && action !== "edit-accept") return undefined;
  if (countNeededApprovals(interrupt) > 1)
    return `${action} does not count where several must approve, because ${NO_VOTE[action]}; answer with another action`;
  if (action === "edit-accept") return findEditProblem(interrupt, answer);
  return isRecord(answer["refineFeedback"]) ? undefined : "refine needs refineFeedback";
}

const NO_VOTE = { refine: "a vote has no feedback", "edit-accept": "the others have not seen the edit" };

/**
 * Returns the answer with the authenticated principal in place of its `decidedBy`, where it gives one: a name in the
 * answer is no authority.
 */
function replaceDecidedBy({ by }: AnswerRequest, answer: Values): Values {
  return isGiven(answer, "decidedBy") ? { ...answer, decidedBy: by } : answer;
}

/** The type of artifact of a child run's outputs, by its own names. */
export const SUBRUN_ARTIFACT = "subrun-output";

function findEditProblem({ data }: Interrupt, value: Values): string | undefined {
  if (value["editedArtifactData"] === undefined) return "edit-accept needs editedArtifactData";
  if (data["artifactType"] === SUBRUN_ARTIFACT && !isRecord(value["editedArtifactData"]))
    return "editedArtifactData must be an object of the child's outputs";
  return data["artifactType"] === DECISION_ARTIFACT && !isDecision(value["editedArtifactData"])
    ? NO_DECISION
    : undefined;
}

/**
 * Refuses who is not on the list of approvers, or names another voter and is not believed; `undefined` for anyone else
 * (I2).
 */
function refuseStranger(
  { interrupt, by, believesVoter }: AnswerRequest,
  answer: Values,
): AnswerRuling | undefined {
  const { approversList: list } = interrupt.data;
  if (Array.isArray(list) && list.length > 0 && !list.includes(by))
    return forbidAnswer("only those on the list of approvers may answer");
  if (!isGiven(answer, "voter") || answer["voter"] === by || believesVoter) return undefined;
  return forbidAnswer(
    "voter names somebody else than the authenticated principal; leave it out: each principal has one voice",
  );
}

function chooseVoter({ by, believesVoter, interrupt }: AnswerRequest, { voter }: Values): string {
  const isBelieved =
    believesVoter && typeof voter === "string" && voter !== "" && !hasApproversList(interrupt);
  return isBelieved ? voter : by;
}

/**
 * Drafts a vote, and the end of the question where it is decided by it. A gate may need several approvals; a voter who
 * speaks again replaces the own vote.
 */
function recordApprovalVote(request: AnswerRequest, action: AnswerAction, value: Values): AnswerRuling {
  const { interrupt, node } = request;
  const needed = countNeededApprovals(interrupt);
  const more = {
    action,
    ...(value["refineFeedback"] !== undefined && { refineFeedback: value["refineFeedback"] }),
    ...(value["editedArtifactData"] !== undefined && { editedArtifactData: value["editedArtifactData"] }),
  };
  const voter = chooseVoter(request, value);
  const { nodeId } = node;
  const { interruptId } = interrupt;
  const vote: WorkflowDraft = {
    type: "approval.received",
    nodeId,
    payload: { nodeId, interruptId, action, decidedBy: voter },
  };
  if (needed <= 1) return { ok: true, drafts: [vote, ...acceptAnswer(request, value, more).drafts] };
  const votes = [...interrupt.votes.filter((cast) => cast.by !== voter), { by: voter, action }];
  const outcome = tallyVotes(votes, needed, interrupt.data["rejectionPolicy"] === "majority");
  if (outcome === "open") return { ok: true, drafts: [vote] };
  // The votes of others may have decided before, where a branch was taken right after the last of them.
  const settled =
    action === outcome
      ? acceptAnswer(request, value, more)
      : acceptAnswer(request, { action: outcome }, { action: outcome });
  return { ok: true, drafts: [vote, ...settled.drafts] };
}

/** Returns what the votes come to. Logs of earlier releases have votes to refine, which neither approve nor reject. */
function tallyVotes(
  votes: readonly Vote[],
  needed: number,
  byMajority: boolean,
): "open" | "accept" | "reject" {
  const rejections = votes.filter(({ action }) => action === "reject").length;
  const approvals = votes.filter(({ action }) => action === "accept" || action === "edit-accept").length;
  if (byMajority ? rejections * 2 > needed : rejections > 0) return "reject";
  return approvals >= needed ? "accept" : "open";
}

function hasApproversList({ data }: Interrupt): boolean {
  return Array.isArray(data["approversList"]) && data["approversList"].length > 0;
}

function answerClarification(request: AnswerRequest): AnswerRuling {
  const read = readClarificationAnswers(request.interrupt.data["questions"], request.value);
  return read.ok ? acceptAnswer(request, { answers: read.answers }) : refuseInvalidAnswer(read.message);
}

/**
 * Returns the external event that an answer brings: its `eventPayload` where that is a record, else the whole answer.
 */
export function unwrapExternalEvent(value: Values): Values {
  const { eventPayload } = value;
  return isRecord(eventPayload) ? eventPayload : value;
}

/**
 * Answers with an external event, or refuses one about another thing. The correlation counts in the payload and beside
 * it, and where both have it they must agree.
 */
function answerExternalEvent(request: AnswerRequest): AnswerRuling {
  const { value, interrupt } = request;
  if (!isRecord(value)) return refuseInvalidAnswer("an external event is an object");
  const event = unwrapExternalEvent(value);
  const correlation = isRecord(interrupt.data["correlation"]) ? interrupt.data["correlation"] : {};
  const other = Object.entries(correlation).find(
    ([key, expected]) => !isCorrelated(key, expected, [event, value]),
  );
  return other ? refuseInvalidAnswer(`the event is about another ${other[0]}`) : acceptAnswer(request, event);
}

function isCorrelated(key: string, expected: unknown, places: readonly Values[]): boolean {
  const named = places.filter((place) => Object.hasOwn(place, key));
  return named.length > 0 && named.every((place) => isSameValue(place[key], expected));
}
