/**
 * Owns: what the agent tools do. Does not own: what models read of them (`tool-declarations.ts`).
 *
 * H2 a tool never throws into the host: what goes wrong is a sentence in its result. H3 the session that calls is the one that
 * the host names; it owns the plans that it submits, reports about the step that the ledger says it works on, and sees only
 * coordinations that it owns or works in.
 */
import { hash, randomUUID } from "node:crypto";
import { z } from "zod";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { isAgentListed } from "../../../agents/coordination/contracts/host-agent-id.ts";
import {
  formatTimestamp,
  type AgentId,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../../../agents/coordination/contracts/ids.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
  PLAN_BOUNDS,
} from "../../../agents/coordination/contracts/validation.ts";
import { isOwnedBy } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type {
  PlanSubmission,
  PlanSubmitted,
} from "../../../agents/coordination/runtime/plans/plan-requests.ts";
import type {
  QuestionsToSession,
  QuestionToSession,
} from "../../../agents/coordination/runtime/questions/question-requests.ts";
import { listRuns } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import type { MayRun } from "../host/allowed-agents.ts";
import { readOutputsReport, readStatusReport, statusParams } from "./coordination-status.ts";
import { findSessionPlace, maySeeStep } from "./place-in.ts";
import { recordChildProgress } from "./progress-tool.ts";
import { reportOutcome } from "./report-tool.ts";
import { readResults } from "./result-tool.ts";
import { answerChild } from "../questions/answer-tool.ts";
import { askAndWait } from "../questions/escalate-tool.ts";
import type { UsePlans } from "../runtime-access/plan-access.ts";
import {
  createToolError,
  type ToolCallScope,
  type ToolAnswer,
  type ToolCallRunner,
} from "../runtime-access/tool-call.ts";
import type { ToolName } from "../declarations/tool-declarations.ts";
import { readSessionAgent } from "../host/session-entry.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** The session that calls, as the host names it. */
export interface CallingSession {
  readonly sessionKey?: string | undefined;
  /** The conversation, which is another one after a reset of the session. */
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  /** The host keeps the session from its own machine. */
  readonly sandboxed?: boolean | undefined;
  /** The provider's name for this call, which comes again in other conversations. */
  readonly toolCallId?: string | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal | undefined;
}

export type PlanTools = (tool: ToolName, caller: CallingSession, params: unknown) => Promise<ToolAnswer>;

const OFF = "coordination is not enabled for this agent; its operator can add it to `agents`";

/** Answers a call of one tool. */
type PlanTool = (use: ToolCallRunner, params: unknown) => Promise<ToolAnswer>;
const TOOLS: Readonly<Record<ToolName, PlanTool>> = {
  coordination_plan: submitPlan,
  coordination_report: reportOutcome,
  coordination_status: readStatus,
  coordination_result: readResults,
  coordination_escalate: askAndWait,
  coordination_progress: recordChildProgress,
  coordination_answer: answerChild,
};

/**
 * Creates the function that runs any of our agent tools for the session that calls it; errors become answers that the
 * model reads. `parentOf`: the host's record of who spawned whom; absent: nobody spawned a session that the ledger
 * does not know.
 */
export function createPlanTools(
  use: UsePlans,
  mayRun: MayRun,
  parentOf?: PlanSubmission["parentOf"],
): PlanTools {
  return async (tool, caller, params) => {
    const { sessionKey, agentId, sandboxed, signal } = caller;
    if (!sessionKey)
      return createToolError("this call belongs to no session, so no coordination can be its own");
    const session = sessionKey as SessionKey;
    const agent = (agentId ?? readSessionAgent(sessionKey)) as AgentId;
    const planId = createPlanId(caller);
    try {
      return await TOOLS[tool](
        (work) =>
          use((plans, { config: { agents, acpAgents } }) => {
            // A child's report belongs to the plan that it works for, whoever may plan.
            const isOff = tool === "coordination_plan" && agents && !isAgentListed(agents, agent);
            if (isOff) return Promise.reject(new Error(OFF));
            const requester = { agent, isSandboxed: sandboxed === true };
            const programs = new Set(Object.keys(acpAgents).map((id) => id.trim().toLowerCase()));
            return work({
              plans,
              session,
              agent,
              planId,
              signal,
              ...(parentOf && { parentOf }),
              mayRun: (other) => mayRun(requester, { agent: other, isProgram: programs.has(other) }),
            });
          }),
        params,
      );
    } catch (error) {
      return createToolError(formatErrorAdvice(error));
    }
  };
}

/**
 * Creates a plan's id from its tool call, or at random. A call that is repeated in its conversation, or tried again
 * after a reload, submits the same plan.
 */
function createPlanId({ sessionKey, sessionId, toolCallId }: CallingSession): string {
  return toolCallId
    ? `plan-${hash("sha256", JSON.stringify([sessionKey, sessionId, toolCallId])).slice(0, 32)}`
    : `plan-${randomUUID()}`;
}

/** Formats an error as a sentence for a model, with its advice where it has one. */
function formatErrorAdvice(error: unknown): string {
  if (!isCoordinationError(error)) return describeError(error);
  const { advice } = error as { readonly advice?: string };
  return `${error.message.replace(/\.$/u, "")}.${advice === undefined ? "" : ` ${advice}`}`;
}

const NEXT =
  "The plan runs now and goes on when your turn ends. You will be told the result once, in this session, when it has ended; until then ask with coordination_status.";

const planParams = z.strictObject({ plan: z.record(z.string(), z.unknown()) });

/** Completes and submits the plan that a model wrote; answers with its id, or with its problems. */
async function submitPlan(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(planParams, params, { ...PLAN_BOUNDS, depthMax: PLAN_BOUNDS.depthMax + 1 });
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  return use(async (calling) => {
    const submitted = await calling.plans.submitPlan({
      mayRun: calling.mayRun,
      ...(calling.parentOf && { parentOf: calling.parentOf }),
      plan: completePlan(parsed.value.plan, calling),
      submittedBy: calling.session,
      ownerAgent: calling.agent,
    });
    return submitted.kind === "refused"
      ? createProblemsAnswer(submitted.problems)
      : createAcceptedAnswer(submitted, await formatSubmissionNote(calling, submitted));
  });
}

/** The result of submitting a plan that was not refused. */
type AcceptedPlan = Exclude<PlanSubmitted, { readonly kind: "refused" }>;

/** Says what happens next; of a plan that was submitted before, how it stands. */
async function formatSubmissionNote(
  { plans }: ToolCallScope,
  { kind, coordinationId }: AcceptedPlan,
): Promise<string> {
  if (kind === "accepted") return NEXT;
  const status = (await plans.reads.view(coordinationId))?.status ?? "running";
  return `This plan was submitted before and is not run twice. ${status === "running" ? NEXT : describeEnd(status)}`;
}

function describeEnd(status: string): string {
  return `It has ended as ${status}: ask with coordination_status what became of its steps. To run it again, submit it with a coordinationId that is new.`;
}

const DEFAULTS = {
  conflictPolicy: {},
  failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
} as const;

/** Completes what a model may leave out of a plan. Whatever it wrote as owner is replaced (H3). */
function completePlan(
  plan: Readonly<Record<string, unknown>>,
  { session, agent, planId }: ToolCallScope,
): object {
  const { conflictPolicy, failurePolicy, steps } = plan;
  return {
    ...plan,
    coordinationId: plan["coordinationId"] ?? planId,
    ownerSession: session,
    conflictPolicy: applyDefaults(DEFAULTS.conflictPolicy, conflictPolicy),
    failurePolicy: applyDefaults(DEFAULTS.failurePolicy, failurePolicy),
    steps: Array.isArray(steps) ? steps.map((step: unknown) => applyDefaults({ agent }, step, {})) : steps,
  };
}

/** Adds the defaults to an object; returns `absent` for no value, and any other value for validation to name. */
function applyDefaults(defaults: object, value: unknown, absent: unknown = defaults): unknown {
  if (value === undefined) return absent;
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { ...defaults, ...value }
    : value;
}

const PROBLEMS_MAX = 20;

function createAcceptedAnswer({ coordinationId, steps }: AcceptedPlan, note: string): ToolAnswer {
  return { status: "accepted", coordinationId, steps, note };
}

function createProblemsAnswer(all: readonly PlanProblem[]): ToolAnswer {
  const problems = all.slice(0, PROBLEMS_MAX);
  const left = all.length - problems.length;
  return {
    status: "refused",
    note: "Nothing was run. Correct these problems and call coordination_plan again with the whole plan.",
    problems,
    ...(left > 0 && { problemsLeftOut: left }),
  };
}

/** Answers with the status of one coordination, or without an id with the newest ones of the session. */
async function readStatus(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(statusParams, params ?? {}, ENVELOPE_BOUNDS);
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  const { coordinationId, outputsOf } = parsed.value;
  if (coordinationId) return use((calling) => readCoordinationStatus(calling, coordinationId, outputsOf));
  if (outputsOf) return createToolError("outputsOf needs the coordinationId");
  return use(readOwnStatus);
}

/** Answers with what the session may see of a coordination: steps, questions to it, and the outputs asked for. */
async function readCoordinationStatus(
  calling: ToolCallScope,
  id: CoordinationId,
  outputsOf?: StepId,
): Promise<ToolAnswer> {
  const view = await calling.plans.reads.view(id);
  const place = view && (await findSessionPlace(calling, view));
  // One sentence for what is not there and what is not the caller's: nothing can be learnt from it.
  if (!view || !place)
    return createToolError(`no coordination ${JSON.stringify(id)} belongs to this session`);
  const { reads } = calling.plans;
  const coordination = await readStatusReport(reads, view, (step) => maySeeStep(place, step));
  const questions = await calling.plans.listQuestionsTo(calling.session, id);
  const answer = {
    status: "ok",
    coordination,
    ...formatQuestions(questions),
  };
  if (!outputsOf) return answer;
  const step = view.steps.find(({ stepId }) => stepId === outputsOf);
  if (!step || !maySeeStep(place, step)) {
    return {
      ...answer,
      outputs: {
        kind: "none",
        reason: `no step ${JSON.stringify(outputsOf)} whose outputs this session may see`,
      },
    };
  }
  return { ...answer, outputs: await readOutputsReport(reads, view.coordinationId, step) };
}

/** So many questions are listed, of one coordination or of all of them together. */
const QUESTIONS_MAX = 10;

function formatQuestions({ questions, leftOut }: QuestionsToSession): object {
  const listed = questions.slice(0, QUESTIONS_MAX).map(formatQuestion);
  const questionsLeftOut = leftOut + questions.length - listed.length;
  return {
    ...(listed.length > 0 && { questions: listed }),
    ...(questionsLeftOut > 0 && { questionsLeftOut }),
  };
}

function formatQuestion({ questionId, deadlineAtMs, stepId, words, isWithheld }: QuestionToSession): object {
  return {
    questionId,
    answerBy: formatTimestamp(deadlineAtMs),
    ...(stepId && { stepId }),
    ...(isWithheld && { wordsWithheld: true }),
    ...(words && { question: words.question }),
    ...(words?.options && { options: words.options }),
  };
}

const NEWEST_MAX = 10;
/** So many of the newest coordinations are looked at. */
const LOOKED_MAX = 2_000;

/** Answers with the session's newest coordinations, the questions to it, and the step that it works on. */
async function readOwnStatus(calling: ToolCallScope): Promise<ToolAnswer> {
  const { plans, session } = calling;
  const coordinations = [];
  let looked = 0;
  for await (const { runId, summary } of listRuns(plans.reads)) {
    looked += 1;
    if (isOwnedBy(summary, session, plans.reads)) {
      const { status, steps, createdAtMs } = summary;
      coordinations.push({ coordinationId: runId, status, startedAt: formatTimestamp(createdAtMs), steps });
    }
    if (looked === LOOKED_MAX || coordinations.length === NEWEST_MAX) break;
  }
  const envelope = await plans.envelopeForChild(session);
  const running = new Set(
    coordinations.filter(({ status }) => status === "running").map(({ coordinationId }) => coordinationId),
  );
  if (envelope) running.add(envelope.coordinationId);
  return {
    status: "ok",
    coordinations,
    ...(await listQuestionsToSession(calling, running)),
    ...(envelope && { worksOn: { coordinationId: envelope.coordinationId, stepId: envelope.stepId } }),
  };
}

/** Lists the questions to the session in these coordinations, those first that expire first. */
async function listQuestionsToSession(
  { plans, session }: ToolCallScope,
  coordinationIds: ReadonlySet<CoordinationId>,
): Promise<object> {
  const questions: QuestionToSession[] = [];
  let leftOut = 0;
  let unreadable = 0;
  for (const id of coordinationIds) {
    const askedHere = await readUnlessDamaged(() => plans.listQuestionsTo(session, id));
    questions.push(...(askedHere?.questions ?? []));
    leftOut += askedHere?.leftOut ?? 0;
    if (!askedHere) unreadable += 1;
  }
  const expiring = questions.toSorted((a, b) => a.deadlineAtMs - b.deadlineAtMs);
  return {
    ...formatQuestions({ questions: expiring, leftOut }),
    ...(unreadable > 0 && { unreadable }),
  };
}
