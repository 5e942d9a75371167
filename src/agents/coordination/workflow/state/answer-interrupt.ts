/** Owns: what counts as an answer to an interrupt (interrupt.md), and what follows from one. */
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import { decisionSchema, type WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import type { Interrupt, NodeRun, Vote, WorkflowRun } from "./workflow-state.ts";
import { isRecord, sameValue, type Values } from "./values.ts";

export type Answering =
  | { readonly ok: true; readonly drafts: readonly WorkflowDraft[] }
  | { readonly ok: false; readonly code: "validation_error" | "forbidden"; readonly message: string };

interface Given {
  readonly node: NodeRun;
  readonly interrupt: Interrupt;
  readonly value: unknown;
  /** Who answers, as the host knows them. */
  readonly by: string;
}

/** How those begin who hold a token and are nobody in particular. */
export const TOKEN_HOLDER = "token:";

export function answerInterrupt(_run: WorkflowRun, given: Given): Answering {
  switch (given.interrupt.kind) {
    case "approval":
      return answerApproval(given);
    case "clarification":
      return answerClarification(given);
    case "external-event":
      return answerExternal(given);
    case "low-confidence":
      return answerDoubt(given);
    case "custom":
      return resolved(given, recordOf(given.value));
  }
}

function recordOf(value: unknown): Values {
  return isRecord(value) ? value : { value: value ?? null };
}

function refuse(message: string): Answering {
  return { ok: false, code: "validation_error", message };
}

function resolved(
  { node: { nodeId }, interrupt, by }: Given,
  resumeValue: Values,
  more: Values = {},
): Answering {
  const { interruptId, kind } = interrupt;
  const payload = { nodeId, interruptId, kind, resumeValue, resolvedBy: by, ...more };
  return { ok: true, drafts: [{ type: "interrupt.resolved", nodeId, payload }] };
}

/** The older vocabulary of approvals. */
const LEGACY: Readonly<Record<string, string>> = { approved: "accept", rejected: "reject" };

function actionIn({ action, decision }: Values): unknown {
  return action ?? (typeof decision === "string" ? LEGACY[decision] : undefined);
}

/** Anything but a no lets what was doubted go on. */
function answerDoubt(given: Given): Answering {
  const value = recordOf(given.value);
  const action = actionIn(value);
  const isDecision = given.interrupt.data["decision"] !== undefined;
  if (action === "edit-accept" && isDecision && !isDecisionIn(value)) return refuse(NO_DECISION);
  return resolved(given, { ...value, ...(action !== undefined && { action }) });
}

/** What an orchestrator's decision becomes where it is edited. */
export const DECISION_ARTIFACT = "orchestrator-decision";
const NO_DECISION = "editedArtifactData must be a decision";

function isDecisionIn({ editedArtifactData }: Values): boolean {
  return decisionSchema.safeParse(editedArtifactData).success;
}

function answerApproval(given: Given): Answering {
  const { interrupt, value } = given;
  if (!isRecord(value)) return refuse("an approval is answered with {action: ...}");
  const action = actionIn(value);
  const actions: readonly unknown[] = Array.isArray(interrupt.data["actions"])
    ? interrupt.data["actions"]
    : [];
  if (typeof action !== "string" || !actions.includes(action))
    return refuse(`action must be one of ${actions.map(String).join(", ")}`);
  if (action === "refine" && !isRecord(value["refineFeedback"])) return refuse("refine needs refineFeedback");
  const brokenEdit = action === "edit-accept" ? editProblem(interrupt, value) : undefined;
  if (brokenEdit !== undefined) return refuse(brokenEdit);
  const stranger = notAmongApprovers(given);
  return stranger ?? counted(given, action, { ...value, action });
}

/** What a child run produced, by its own names. */
export const SUBRUN_ARTIFACT = "subrun-output";

function editProblem({ data }: Interrupt, value: Values): string | undefined {
  if (value["editedArtifactData"] === undefined) return "edit-accept needs editedArtifactData";
  if (data["artifactType"] === SUBRUN_ARTIFACT && !isRecord(value["editedArtifactData"]))
    return "editedArtifactData must be an object of the child's outputs";
  return data["artifactType"] === DECISION_ARTIFACT && !isDecisionIn(value) ? NO_DECISION : undefined;
}

function notAmongApprovers({ interrupt, by }: Given): Answering | undefined {
  const list = interrupt.data["approversList"];
  if (!Array.isArray(list) || list.length === 0 || list.includes(by)) return undefined;
  return { ok: false, code: "forbidden", message: "only those on the list of approvers may answer" };
}

/** Whoever holds a token has one voice; a client with a credential may speak for several people, unless they are listed. */
function voterIn({ interrupt, by }: Given, { voter }: Values): string {
  const isBelieved =
    typeof voter === "string" && voter !== "" && voter.length <= WORKFLOW_BOUNDS.nameCharsMax;
  return isBelieved && !hasList(interrupt) && !by.startsWith(TOKEN_HOLDER) ? voter : by;
}

/** A gate may need several approvals; a voter who speaks again replaces the own vote. */
function counted(given: Given, action: string, value: Values): Answering {
  const { interrupt, node } = given;
  const needed = interrupt.data["requiredApprovals"];
  const more = {
    action,
    ...(value["refineFeedback"] !== undefined && { refineFeedback: value["refineFeedback"] }),
    ...(value["editedArtifactData"] !== undefined && { editedArtifactData: value["editedArtifactData"] }),
  };
  if (typeof needed !== "number" || needed <= 1) return resolved(given, value, more);
  const voter = voterIn(given, value);
  const { nodeId } = node;
  const { interruptId } = interrupt;
  const vote: WorkflowDraft = {
    type: "approval.received",
    nodeId,
    payload: { nodeId, interruptId, action, decidedBy: voter },
  };
  const votes = [...interrupt.votes.filter((cast) => cast.by !== voter), { by: voter, action }];
  const outcome = outcomeOf(votes, needed, interrupt.data["rejectionPolicy"] === "majority");
  if (outcome === "open") return { ok: true, drafts: [vote] };
  const settled = resolved(given, { ...value, action: outcome === "vetoed" ? "reject" : action }, more);
  return settled.ok ? { ok: true, drafts: [vote, ...settled.drafts] } : settled;
}

/** Who wants it refined has neither approved nor rejected it. */
function outcomeOf(
  votes: readonly Vote[],
  needed: number,
  byMajority: boolean,
): "open" | "granted" | "vetoed" {
  const rejections = votes.filter(({ action }) => action === "reject").length;
  const approvals = votes.filter(({ action }) => action === "accept" || action === "edit-accept").length;
  if (byMajority ? rejections * 2 > needed : rejections > 0) return "vetoed";
  return approvals >= needed ? "granted" : "open";
}

function hasList({ data }: Interrupt): boolean {
  return Array.isArray(data["approversList"]) && data["approversList"].length > 0;
}

/** Answers come as a list or by the questions' ids. */
function answerClarification(given: Given): Answering {
  const { value, interrupt } = given;
  const answers = isRecord(value) ? value["answers"] : undefined;
  const byId = Array.isArray(answers)
    ? Object.fromEntries(
        answers.filter(isRecord).flatMap(({ id, answer }) => (typeof id === "string" ? [[id, answer]] : [])),
      )
    : answers;
  if (!isRecord(byId)) return refuse("a clarification is answered with {answers: {<question id>: <answer>}}");
  const questions = Array.isArray(interrupt.data["questions"])
    ? interrupt.data["questions"].filter(isRecord)
    : [];
  const missing = questions.map(({ id }) => String(id)).filter((id) => !Object.hasOwn(byId, id));
  if (missing.length > 0) return refuse(`there is no answer to ${missing.join(", ")}`);
  return resolved(given, { answers: byId });
}

/** What does not belong to the awaited event is not its answer. */
function answerExternal(given: Given): Answering {
  const { value, interrupt } = given;
  const { eventPayload } = isRecord(value) ? value : {};
  const event = isRecord(eventPayload) ? eventPayload : value;
  if (!isRecord(event)) return refuse("an external event is an object");
  const correlation = isRecord(interrupt.data["correlation"]) ? interrupt.data["correlation"] : {};
  const differs = Object.entries(correlation).find(([key, expected]) => !sameValue(event[key], expected));
  return differs ? refuse(`the event is about another ${differs[0]}`) : resolved(given, event);
}
