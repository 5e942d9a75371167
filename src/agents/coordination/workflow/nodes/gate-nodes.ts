/** Owns: the nodes that wait for somebody: a person who approves or answers, or a system that tells of an event. */
import { areAskableQuestions, readAskableQuestions } from "../state/clarification-answers.ts";
import { LOGIN_PROFILE } from "../state/answer-interrupt.ts";
import { createWaitStep } from "../node-contract/suspension.ts";
import type { NewInterrupt, NodeStep, NodeType, NodeView } from "../node-contract/node-type.ts";
import { findLogIdentity, type InterruptAnswer } from "../state/workflow-state.ts";
import { readNodeInputs, type Values } from "../state/values.ts";
import { listSchemaProblems } from "../../plan/output-schema.ts";
import { isRecord } from "../../std/is-record.ts";

/**
 * Creates a node type that asks once; the answer, or the end of the time, decides. The function `answered` says what
 * an answer means.
 */
function createQuestionNode(
  ask: (view: NodeView) => NewInterrupt,
  answered: (answer: InterruptAnswer, view: NodeView) => NodeStep,
  check: NonNullable<NodeType["check"]>,
): NodeType {
  return {
    check,
    step: (view) => {
      const { interrupt, answers } = view.nodeRun;
      const answer = answers.at(-1);
      if (answer) return answered(answer, view);
      if (!interrupt) return { kind: "suspend", interrupt: ask(view) };
      return createWaitStep(interrupt);
    },
  };
}

export const approvalGate = createQuestionNode(
  (view) => ({ kind: "approval", data: createApprovalData(view), ...readTimeout(view) }),
  ({ resumeValue }) => {
    const value = isRecord(resumeValue) ? resumeValue : {};
    const { action } = value;
    if (action === "accept" || action === "edit-accept" || action === "refine")
      return { kind: "complete", outputs: { ...value, approved: action !== "refine" } };
    return { kind: "fail", error: NOT_APPROVED[action === "timeout" ? "timeout" : "reject"] };
  },
  ({ node: { id, config } }) => listApprovalProblems(id, config),
);

/** Who may approve, and how many must: a gate that misunderstood it would open too early. */
const RULES: Readonly<Record<string, (value: unknown) => boolean>> = {
  requiredApprovals: (value) => Number.isInteger(value) && (value as number) >= 1,
  rejectionPolicy: (value) => value === "single-veto" || value === "majority",
  approversList: (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  overrideBypassesQuorum: (value) => typeof value === "boolean",
  description: (value) => typeof value === "string",
  profile: (value) => typeof value === "string",
};

function listApprovalProblems(id: string, config: Values): string[] {
  const problems = Object.entries(RULES).flatMap(([key, holds]) => {
    const value = config[key] ?? undefined;
    return value === undefined || holds(value) ? [] : [`${key} of node ${id} is none of the protocol's`];
  });
  return problems.length > 0 ? problems : listQuorumProblems(id, config);
}

/** Returns the problems of a quorum. Each person on the list has one voice. */
function listQuorumProblems(id: string, { requiredApprovals, approversList }: Values): string[] {
  const voices = Array.isArray(approversList) ? new Set(approversList).size : 0;
  return voices > 0 && typeof requiredApprovals === "number" && requiredApprovals > voices
    ? [`node ${id} needs ${requiredApprovals} approvals, and its approversList has ${voices} people`]
    : [];
}

const NOT_APPROVED = {
  timeout: { code: "approval_timeout", message: "nobody approved in time, which counts as rejected" },
  reject: { code: "approval_rejected", message: "the approval was rejected" },
} as const;

/** Creates the `ApprovalData` of suspend-request.schema.json, which names an artifact whether there is one or not. */
function createApprovalData(view: NodeView, more: Values = {}): Values {
  const { id, name } = view.node.node;
  const config = { ...view.node.node.config, ...more };
  const { artifact } = readNodeInputs(view.run, view.graph, view.node);
  const kept = Object.keys(RULES).filter((key) => config[key] !== undefined && config[key] !== null);
  return {
    ...Object.fromEntries(kept.map((key) => [key, config[key]])),
    artifactId: readTextOr(config["artifactId"], `${findLogIdentity(view.run)}:${id}`),
    artifactType: readTextOr(config["artifactType"], "approval"),
    title: readTextOr(config["title"], name ?? id),
    actions: selectOfferedActions(config),
    ...(artifact !== undefined && { artifactData: artifact }),
  };
}

/** Asking back within an approval is not offered. */
const ACTIONS: readonly unknown[] = ["accept", "reject", "refine", "edit-accept"];
/** The actions that count as votes, where several must approve. */
const VOTES: readonly unknown[] = ["accept", "reject"];

/**
 * Selects the configured actions that an approval may offer, where several must approve only the votes; accept and
 * reject where none is left.
 */
function selectOfferedActions({ actions, requiredApprovals }: Values): readonly unknown[] {
  const counted = typeof requiredApprovals === "number" && requiredApprovals > 1 ? VOTES : ACTIONS;
  const offered = Array.isArray(actions)
    ? [...new Set(actions)].filter((action) => counted.includes(action))
    : [];
  return offered.length > 0 ? offered : VOTES;
}

export const clarificationGate = createQuestionNode(
  (view) => ({
    kind: "clarification",
    data: { questions: readQuestionsOrName(view) },
    ...readTimeout(view),
  }),
  ({ resumeValue, isExpired }) => {
    const value = isRecord(resumeValue) ? resumeValue : {};
    return isExpired
      ? { kind: "fail", error: { code: "clarification_timeout", message: "nobody answered in time" } }
      : { kind: "complete", outputs: { answers: value["answers"] ?? {} } };
  },
  ({ node: { id, config } }) => [
    ...listQuestionProblems(id, config["questions"]),
    ...listLoginProblems(id, [config]),
  ],
);

/** Returns the configured questions, else one question that is the node's name. */
function readQuestionsOrName({ node: { node } }: NodeView): readonly object[] {
  const questions = readAskableQuestions(node.config["questions"]);
  return questions.length > 0 ? questions : [{ id: "q1", question: node.name ?? node.id }];
}

/** Lists the problems of configured questions: one that cannot be asked is told before the run begins. */
function listQuestionProblems(id: string, questions: unknown): string[] {
  if (questions === undefined || questions === null) return [];
  if (areAskableQuestions(questions))
    return questions.flatMap((question) =>
      listSchemaProblems(question["schema"], `schema of question ${question.id} of node ${id}`),
    );
  return [`questions of node ${id} is no list of {id, question}, each with an id of its own`];
}

/** `core.interrupt`: any kind of interrupt, as its configuration says. */
export const interruptGate = createQuestionNode(
  (view) => {
    const { config } = view.node.node;
    const data = readInterruptData(config);
    const schema = isRecord(config["resumeSchema"]) ? { resumeSchema: config["resumeSchema"] } : {};
    const common = { ...schema, ...readTimeout(view) };
    switch (config["kind"]) {
      case "external-event":
        return { kind: "external-event", data: createExternalEventData(data), ...common };
      case "approval":
        return { kind: "approval", data: { ...data, ...createApprovalData(view, data) }, ...common };
      case "clarification":
        return { kind: "clarification", data: { questions: readQuestionsOrName(view), ...data }, ...common };
      default:
        return {
          kind: "custom",
          data: {
            customKind: readTextOr(data["customKind"], "custom"),
            payload: isRecord(config["data"]) ? config["data"] : {},
          },
          ...common,
        };
    }
  },
  ({ resumeValue, kind, isExpired }, view) => {
    if (kind === "approval") {
      const settled = approvalGate.step(view);
      if (settled.kind === "fail") return settled;
    }
    const value = isRecord(resumeValue) ? resumeValue : {};
    return isExpired
      ? { kind: "fail", error: { code: "interrupt_timeout", message: "nobody answered in time" } }
      : { kind: "complete", outputs: { ...value } };
  },
  ({ node: { id, config } }) => [
    ...listInterruptProblems(id, config),
    ...listSchemaProblems(config["resumeSchema"], `resumeSchema of node ${id}`),
  ],
);

/** Returns the configured data without what is null, which must not hide what is configured beside the data. */
function readInterruptData({ data }: Values): Values {
  if (!isRecord(data)) return {};
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null));
}

const KINDS: readonly unknown[] = ["approval", "clarification", "external-event", "custom"];

/** Lists the problems of an interrupt. A kind that was misspelt would be a custom one, which takes any answer. */
function listInterruptProblems(id: string, config: Values): string[] {
  const { kind = "custom", questions } = config;
  const data = readInterruptData(config);
  if (kind !== null && !KINDS.includes(kind)) return [`kind of node ${id} is none of ${KINDS.join(", ")}`];
  if (kind === "approval") return listApprovalProblems(id, { ...config, ...data });
  const loginProblems = listLoginProblems(id, [config, data]);
  if (kind !== "clarification") return loginProblems;
  return [
    ...listQuestionProblems(id, questions),
    ...listQuestionProblems(id, data["questions"]),
    ...loginProblems,
  ];
}

/**
 * Lists the problem of a question, not an approval, whose settings ask who answers: anybody who has its link can
 * answer it. Empty where none of them does.
 */
function listLoginProblems(id: string, places: readonly Values[]): string[] {
  const keys = Object.entries(ASKS_WHO).flatMap(([key, asks]) =>
    places.some((place) => asks(place[key] ?? undefined)) ? [key] : [],
  );
  return keys.length > 0
    ? [`node ${id} has ${keys.join(" and ")}, and only an approval can ask who answers`]
    : [];
}

/** Says of a value of each such member whether it asks who answers. */
const ASKS_WHO: Readonly<Record<string, (value: unknown) => boolean>> = {
  profile: (value) => value === LOGIN_PROFILE,
  approversList: (value) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  requiredApprovals: (value) => typeof value === "number" && value > 1,
};

function createExternalEventData({ eventType, correlation }: Values): Values {
  return {
    eventType: readTextOr(eventType, "external"),
    correlation: isRecord(correlation) ? correlation : {},
  };
}

function readTimeout({ node: { node } }: NodeView): { timeoutMs?: number } {
  const { timeoutMs } = node.config;
  return typeof timeoutMs === "number" && timeoutMs > 0 ? { timeoutMs: Math.ceil(timeoutMs) } : {};
}

function readTextOr(value: unknown, otherwise: string): string {
  return typeof value === "string" && value !== "" ? value : otherwise;
}
