/** Owns: a coordinator as tools and gateway methods see it, answering what a test says and remembering what it was asked. */
import type { LaneMetrics } from "../../src/agents/coordination/ports/lane-runner.ts";
import type { EpochMs, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  CoordinationView,
  StepView,
} from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { PlanAccess, UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { contentOf } from "../support/ledger-fixtures.ts";

export const SESSION = "agent:research:main" as SessionKey;
export const START = Date.UTC(2026, 0, 2, 3, 4, 5) as EpochMs;

export interface PlanCall {
  readonly subject: keyof PlanAccess;
  readonly args: readonly unknown[];
}

export interface StubPlans {
  readonly use: UsePlans;
  readonly askedCalls: PlanCall[];
}

const IDLE: LaneMetrics = {
  concurrency: 4,
  running: 0,
  waiting: 0,
  queueMax: 256,
  admitted: 0,
  refused: 0,
  waitedMs: { total: 0, max: 0 },
};

/** A method that is not given answers as if nothing were there. */
export function createStubPlans(
  says: Partial<Omit<PlanAccess, "reads">> & { readonly reads?: Partial<PlanAccess["reads"]> } = {},
  config: Partial<SharedRuntime["config"]> = {},
): StubPlans {
  const askedCalls: PlanCall[] = [];
  const plans: PlanAccess = {
    submitPlan: (request) => {
      askedCalls.push({ subject: "submitPlan", args: [request] });
      return says.submitPlan?.(request) ?? Promise.reject(new Error("submitPlan was not expected"));
    },
    forkPlan: (request) => {
      askedCalls.push({ subject: "forkPlan", args: [request] });
      return says.forkPlan?.(request) ?? Promise.reject(new Error("forkPlan was not expected"));
    },
    cancel: (request) => {
      askedCalls.push({ subject: "cancel", args: [request] });
      return says.cancel?.(request) ?? Promise.reject(new Error("cancel was not expected"));
    },
    retry: (request) => {
      askedCalls.push({ subject: "retry", args: [request] });
      return says.retry?.(request) ?? Promise.reject(new Error("retry was not expected"));
    },
    report: (...args) => {
      askedCalls.push({ subject: "report", args: args });
      return says.report?.(...args) ?? Promise.reject(new Error("report was not expected"));
    },
    progress: (...args) => {
      askedCalls.push({ subject: "progress", args: args });
      return says.progress?.(...args) ?? Promise.reject(new Error("progress was not expected"));
    },
    answerChild: (request) => {
      askedCalls.push({ subject: "answerChild", args: [request] });
      return says.answerChild?.(request) ?? Promise.reject(new Error("answerChild was not expected"));
    },
    isCountedAnswer: (request) =>
      says.isCountedAnswer?.(request) ?? Promise.reject(new Error("isCountedAnswer was not expected")),
    listQuestionsTo: (...args) =>
      says.listQuestionsTo?.(...args) ?? Promise.resolve({ questions: [], leftOut: 0 }),
    answer: (request) => {
      askedCalls.push({ subject: "answer", args: [request] });
      return says.answer?.(request) ?? Promise.reject(new Error("answer was not expected"));
    },
    ask: (request) => {
      askedCalls.push({ subject: "ask", args: [request] });
      return says.ask?.(request) ?? Promise.reject(new Error("ask was not expected"));
    },
    outcome: (...args) => {
      askedCalls.push({ subject: "outcome", args: args });
      return says.outcome?.(...args) ?? Promise.reject(new Error("outcome was not expected"));
    },
    signedAnswers: () => says.signedAnswers?.() ?? Promise.reject(new Error("no answer is signed here")),
    envelopeForChild: (session) => says.envelopeForChild?.(session) ?? Promise.resolve(undefined),
    laneMetrics: () => ({ control: IDLE, data: { ...IDLE, running: 3 }, escalation: IDLE }),
    reads: {
      ...(says.reads?.gateway !== undefined && { gateway: says.reads.gateway }),
      view: (id) => says.reads?.view?.(id) ?? Promise.resolve(undefined),
      list: (query) => says.reads?.list?.(query) ?? Promise.resolve([]),
      get: (sha256) => says.reads?.get?.(sha256) ?? Promise.resolve(undefined),
      getMany: (sha256s) => says.reads?.getMany?.(sha256s) ?? Promise.resolve(new Map()),
    },
  };
  const runtime = { config: { stepTimeoutMs: 600_000, acpAgents: {}, ...config } } as SharedRuntime;
  return { askedCalls: askedCalls, use: (work) => work(plans, runtime) };
}

export function stepView(stepId: string, fields: Partial<Record<keyof StepView, unknown>> = {}): StepView {
  return {
    stepId: stepId as StepId,
    attempt: 1,
    status: "running",
    lane: "data",
    agentId: "main",
    runner: "subagent",
    idempotencyKey: `co-1:${stepId}:1`,
    sourceSession: SESSION,
    priority: "normal",
    deliveryMode: "at_least_once",
    collect: false,
    input: contentOf("secret task").ref,
    admittedAtMs: START,
    ...fields,
  } as StepView;
}

/** A completed step with the outputs that it left. */
export function createCompletedView(
  stepId: string,
  output: ReturnType<typeof contentOf>["ref"],
  fields: Partial<Record<keyof StepView, unknown>> = {},
): StepView {
  const results = [{ kind: "outputs", attempt: 1, content: output }];
  return stepView(stepId, { status: "completed", output, results, ...fields });
}

export function viewOf(
  steps: readonly StepView[],
  fields: Partial<Record<keyof CoordinationView, unknown>> = {},
): CoordinationView {
  return {
    coordinationId: "co-1",
    status: "running",
    objective: contentOf("secret objective").ref,
    ownerSession: SESSION,
    createdAtMs: START,
    trace: {},
    steps,
    conflicts: [],
    escalations: [],
    ...fields,
  } as CoordinationView;
}

/** Outputs that are kept, as `reads.get` finds them. */
export function keepOutputs(outputs: object): {
  readonly ref: ReturnType<typeof contentOf>["ref"];
  readonly get: PlanAccess["reads"]["get"];
} {
  const { ref, text } = contentOf(JSON.stringify(outputs));
  return { ref, get: (sha256) => Promise.resolve(sha256 === ref.sha256 ? text : undefined) };
}
