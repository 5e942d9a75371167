/** Owns: what hosts ask about plans: submitting one, cancelling, trying again, a child's report. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type AgentId, type SessionKey } from "../contracts/ids.ts";
import type { CoordinationPlan } from "../contracts/plan.ts";
import { sessionOf, type Coordination } from "../ledger/state.ts";
import { childName, nestedName } from "../ledger/summary.ts";
import { plannedStepsOf } from "../plan/admission-of.ts";
import { checkPlan } from "../plan/check-plan.ts";
import type { PlanProblem } from "../plan/plan-problem.ts";
import type { StepGraph } from "../plan/step-graph.ts";
import type { ContentInput } from "../ports/content-store.ts";
import { nestedPlan } from "./nested-plans.ts";
import type {
  CoordinationRequest,
  PlanRequests,
  PlanSubmission,
  PlanSubmitted,
  RequestAnswer,
} from "./plan-requests.ts";
import type { RuntimeParts } from "./runtime-parts.ts";
import { takeReport } from "./take-report.ts";

export function createPlanRequests(parts: RuntimeParts): PlanRequests {
  return {
    submitPlan: (submission) => submitPlan(parts, submission),
    cancel: ({ stepId, by, ...request }) =>
      ask(parts, request, { type: "cancelCoordination", by, ...(stepId && { stepId }) }),
    retry: ({ stepId, by, ...request }) =>
      ask(parts, request, { type: "retryStep", by, ...(stepId && { stepId }) }),
    report: (childSessionKey, report) => takeReport(parts, childSessionKey, report),
  };
}

async function submitPlan(parts: RuntimeParts, submission: PlanSubmission): Promise<PlanSubmitted> {
  const checked = checkPlan(submission.plan, { timeoutMs: parts.settings.stepTimeoutMs });
  if (checked.kind === "refused") return checked;
  const { graph } = checked;
  const parent = await parentOf(parts, graph.ownerSession);
  const problems = [...unauthorized(submission, graph), ...(await misplaced(parts, parent, graph))];
  if (problems.length > 0) return { kind: "refused", problems };
  const text = JSON.stringify(submission.plan);
  const plan: ContentInput = { ref: parts.refOf(text), text, keepWhileRunning: true };
  const { coordinationId, objective } = graph;
  const aim: ContentInput = { ref: parts.refOf(objective), text: objective, keepWhileRunning: true };
  parts.plans.remember(plan.ref.sha256, graph);
  const commands = opening(parts, { submission, graph, plan, parent });
  const submitted = await parts.runs.submit(coordinationId, commands, [plan, aim]);
  if (submitted.kind === "refused") return taken(submitted.state, { graph, plan });
  if (parent) parts.giveBack(parent.coordinationId, parent.stepId);
  return { kind: "accepted", coordinationId, steps: graph.steps.length };
}

/** H3: what the submitter may not do. */
function unauthorized(submission: PlanSubmission, { ownerSession }: StepGraph): PlanProblem[] {
  const { submittedBy } = submission;
  if (submittedBy === undefined || ownerSession === submittedBy) return forbiddenAgents(submission);
  return [problem("ownerSession", "OWNER_MISMATCH", "a session can only submit plans of its own")];
}

/** Where a plan of a child cannot be: too deep, or beside another one. */
async function misplaced(
  parts: RuntimeParts,
  parent: Parent | undefined,
  graph: StepGraph,
): Promise<PlanProblem[]> {
  if (!parent) return [];
  if ((await nestingOf(parts, parent)) >= BOUNDS.planNestingMax) {
    const sentence = `plans nest at most ${BOUNDS.planNestingMax} deep; do the work in this session`;
    return [problem("ownerSession", "NESTED_TOO_DEEP", sentence)];
  }
  if (!(await hasNested(parts, parent, graph))) return [];
  const sentence = "this session has submitted a plan that still runs; wait for its result, or cancel it";
  return [problem("coordinationId", "NESTED_OPEN", sentence)];
}

/** H3: a plan gives its submitter no agents that it could not spawn. */
function forbiddenAgents({ plan, mayRun }: PlanSubmission): PlanProblem[] {
  const { steps } = plan as Pick<CoordinationPlan, "steps">;
  const message = (agent: AgentId): string =>
    `this agent may not use ${JSON.stringify(agent)}; use one that it may spawn, or let the operator allow it (subagents.allowAgents)`;
  return steps
    .flatMap(({ agent }, index): PlanProblem[] =>
      !mayRun || mayRun(agent)
        ? []
        : [{ path: `steps[${index}].agent`, code: "AGENT_NOT_ALLOWED", message: message(agent) }],
    )
    .slice(0, BOUNDS.planProblemsMax);
}

/** The same plan under the same id is the same submission. */
function taken(
  state: Coordination,
  { graph, plan }: { readonly graph: StepGraph; readonly plan: ContentInput },
): PlanSubmitted {
  const { coordinationId } = graph;
  const known = state.kind === "unopened" ? undefined : state.created.plan?.content.sha256;
  if (known === plan.ref.sha256) return { kind: "replay", coordinationId, steps: graph.steps.length };
  const sentence = `there is another coordination ${JSON.stringify(coordinationId)}; choose another id`;
  return { kind: "refused", problems: [problem("coordinationId", "COORDINATION_TAKEN", sentence)] };
}

function problem(path: string, code: PlanProblem["code"], message: string): PlanProblem {
  return { path, code, message };
}

interface Opening {
  readonly submission: PlanSubmission;
  readonly graph: StepGraph;
  readonly plan: ContentInput;
  readonly parent: Parent | undefined;
}

function opening(parts: RuntimeParts, { submission, graph, plan, parent }: Opening): Command[] {
  const { settings, clock, refOf, runnerOf } = parts;
  const now = clock.now();
  const { coordinationId, ownerSession, objective, deadlineMs, budget, failurePolicy } = graph;
  const origin = refOf(`${coordinationId}:${now}`).sha256;
  const steps = plannedStepsOf(
    graph,
    { ownerSession, runnerOf, refOf },
    { from: 0, to: BOUNDS.stepsPerAppendMax },
  );
  return [
    {
      type: "openCoordination",
      origin: "plan",
      ownerSession,
      ownerAgent: submission.ownerAgent,
      objective: refOf(objective),
      trace: { traceId: submission.traceId ?? origin.slice(0, 32) },
      failurePolicy,
      settleMs: settings.settleMs,
      acknowledgeMs: settings.acknowledgeMs,
      plan: {
        content: plan.ref,
        steps: graph.steps.length,
        seed: origin.slice(32, 48),
        escalateMs: settings.escalateMs,
        ...(deadlineMs !== undefined && { deadlineAtMs: addMs(now, deadlineMs) }),
        ...(budget && { budget }),
      },
      ...(parent && { parent }),
    },
    { type: "admitPlanSteps", steps },
  ];
}

type Parent = NonNullable<FactPayloads["coordination.created"]["parent"]>;

/** How many plans lie around what the child of this step submits. */
async function nestingOf({ runs }: RuntimeParts, innermost: Parent): Promise<number> {
  let depth = 0;
  for (let parent: Parent | undefined = innermost; parent && depth < BOUNDS.planNestingMax;) {
    const state = await runs.state(parent.coordinationId);
    if (state.kind === "unopened" || !state.plan) return depth;
    depth += 1;
    parent = state.created.parent;
  }
  return depth;
}

/** A child waits for one plan at a time; the same plan again is the same submission. */
async function hasNested(
  parts: RuntimeParts,
  { coordinationId: runId, stepId }: Parent,
  { ownerSession: session, coordinationId }: StepGraph,
): Promise<boolean> {
  const nested = await nestedPlan(parts, { runId, stepId, session });
  if (nested?.kind !== "open") return false;
  const found = await parts.store.find(nestedName(runId, stepId));
  return found?.runId !== coordinationId;
}

/** The step that the submitting session works on: its child waits for this plan. */
async function parentOf(
  { store, runs }: RuntimeParts,
  ownerSession: SessionKey,
): Promise<Parent | undefined> {
  const found = await store.find(childName(ownerSession));
  if (!found?.stepId) return undefined;
  const state = await runs.state(found.runId);
  const phase = state.kind === "open" ? state.steps.get(found.stepId)?.phase : undefined;
  const isCurrent = phase && sessionOf(phase) === ownerSession;
  return isCurrent ? { coordinationId: found.runId, stepId: found.stepId } : undefined;
}

async function ask(
  parts: RuntimeParts,
  { coordinationId, askedBy }: Omit<CoordinationRequest, "by" | "stepId">,
  command: Command,
): Promise<RequestAnswer> {
  const state = await parts.runs.state(coordinationId);
  if (state.kind === "unopened")
    return { kind: "refused", code: "NOT_FOUND", reason: `there is no coordination ${coordinationId}` };
  if (askedBy !== undefined && state.created.ownerSession !== askedBy)
    return { kind: "refused", code: "NOT_OWNER", reason: "the coordination belongs to another session" };
  const submitted = await parts.runs.submit(coordinationId, [command]);
  parts.watch(submitted.state);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  return { kind: submitted.kind, coordinationId };
}
