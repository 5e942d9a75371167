/** Owns: what hosts ask about plans: submitting one, cancelling, trying again, a child's report. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command } from "../../contracts/commands.ts";
import { createPrunedRunError } from "../../contracts/errors.ts";
import type { ForkedFrom } from "../../contracts/fact-fields.ts";
import {
  addMs,
  coordinationIdSchema,
  type AgentId,
  type CoordinationId,
  type SessionKey,
} from "../../contracts/ids.ts";
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import { isRecord } from "../../std/is-record.ts";
import { createTurnsByName, type TurnsByName } from "../../std/turns-by-name.ts";
import { chooseRules, withRules, type PolicyRules } from "../environment/policy-rules.ts";
import type { CoordinationPlan } from "../../contracts/plan.ts";
import type { Coordination } from "../../ledger/state.ts";
import { isOwnedBy } from "../../contracts/coordination-summary.ts";
import { checkNewPlan } from "../../plan/check-new-plan.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { StepGraph } from "../../plan/step-graph.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { isSameValue } from "../../replay/same-value.ts";
import { forkPlan, type ForkDependencies } from "./fork-plan.ts";
import { findDoubt } from "../held-results/gate-of.ts";
import { createQuestionPolicy } from "../questions/question-policy.ts";
import { draftAdmission } from "./admit-plan-steps.ts";
import { explainUnenforceable, createAdmittedPrivilege } from "../privileges/admitted-privilege.ts";
import { findBoundsOfSession } from "../privileges/bounds-of-session.ts";
import { cutBudget } from "../../dispatch/plan-rules.ts";
import { borrowBudget, findPlanPlace, type PlanPlace } from "./plan-place.ts";
import { giveBudgetBackIfUnopened } from "./give-budget-back.ts";
import { limitByOperatorBudget } from "./operator-budget.ts";
import type {
  CoordinationRequest,
  PlanRequests,
  PlanSubmission,
  PlanSubmitted,
  RequestAnswer,
} from "./plan-requests.ts";
import { takeLowerConfidence, askPluginsAboutPlan } from "./plugin-decision.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import { takeProgress } from "./take-progress.ts";
import { checkWorktrees } from "./check-worktrees.ts";
import { takeReport } from "./take-report.ts";

interface SubmitDependencies extends RuntimeDependencies {
  /** Opening plans: those of a step's agent one after another. */
  readonly openings: TurnsByName;
}

/** Creates the requests about plans: to submit, fork, cancel and retry, and the reports of their children. */
export function createPlanRequests(
  base: Omit<SubmitDependencies, "openings"> & ForkDependencies,
): PlanRequests {
  const dependencies = { ...base, openings: createTurnsByName() };
  return {
    submitPlan: (submission) => submitPlan(dependencies, submission),
    forkPlan: (request) =>
      forkPlan(dependencies, request, {
        preview: (submission) => previewPlan(dependencies, submission),
        submit: (submission) => submitPlan(dependencies, submission),
      }),
    cancel: ({ stepId, by, ...request }) =>
      submitPlanRequest(dependencies, request, { type: "cancelCoordination", by, ...(stepId && { stepId }) }),
    retry: ({ stepId, by, ...request }) =>
      submitPlanRequest(dependencies, request, { type: "retryStep", by, ...(stepId && { stepId }) }),
    report: (childSessionKey, report) => takeReport(dependencies, childSessionKey, report),
    progress: (childSessionKey, progress) => takeProgress(dependencies, childSessionKey, progress),
  };
}

/** Checks a plan and opens its coordination; the same plan under the same id is answered as a replay. */
async function submitPlan(base: SubmitDependencies, submission: PlanSubmission): Promise<PlanSubmitted> {
  const checked = await checkSubmission(base, submission, askPluginsAboutPlan);
  if (checked.kind !== "checked") return checked;
  const { dependencies, graph, confidence, policy } = checked;
  const around = await findStepOfChild(dependencies, graph.ownerSession);
  // The agent of a step has one plan at a time. Those of all children of spawns share the operator's budget.
  const shared = around?.state.created.budget && around.state.coordinationId;
  const turn = shared ?? (around ? graph.ownerSession : graph.coordinationId);
  return base.openings.run(turn, async () => {
    // The operator's budget is held against what the log says.
    if (shared) await dependencies.usage.flush();
    return openPlan(dependencies, { submission, graph, confidence, policy });
  });
}

/**
 * Returns what would become of a plan without recording anything. No plugin is asked. @throws CoordinationError
 * `RUN_PRUNED` for the id of a run that was pruned
 */
async function previewPlan(base: RuntimeDependencies, submission: PlanSubmission): Promise<PlanSubmitted> {
  const checked = await checkSubmission(base, submission, () => Promise.resolve({ kind: "allowed" }));
  if (checked.kind !== "checked") return checked;
  const { dependencies, graph } = checked;
  const { coordinationId, steps } = graph;
  const existing = await dependencies.runs.state(coordinationId);
  if (existing.kind !== "unopened") return refuseTakenId(coordinationId);
  if (await dependencies.store.pruned.find(coordinationId)) throw createPrunedRunError(coordinationId);
  const place = await findPlaceWithinBudget(dependencies, graph);
  return place.kind === "nowhere"
    ? { kind: "refused", problems: [place.problem] }
    : { kind: "accepted", coordinationId, steps: steps.length };
}

interface CheckedPlan extends Pick<PlanOpening, "graph" | "confidence" | "policy"> {
  readonly kind: "checked";
  /** With the rules that hold for the plan. */
  readonly dependencies: RuntimeDependencies;
}

/**
 * Checks a submission against the plan, its submitter, the configuration and the plugins that are asked. Returns the answer where it
 * is refused, or was submitted before.
 */
async function checkSubmission(
  base: RuntimeDependencies,
  submission: PlanSubmission,
  askPlugins: typeof askPluginsAboutPlan,
): Promise<CheckedPlan | PlanSubmitted> {
  const earlier = await findEarlierSubmission(base, submission);
  if (earlier) return earlier;
  const rules = await findRulesForPlan(base, submission);
  const dependencies = withRules(base, rules);
  const isFork = submission.forkedFrom !== undefined;
  const checked = checkNewPlan(submission.plan, { timeoutMs: dependencies.settings.stepTimeoutMs, isFork });
  if (checked.kind === "refused") return checked;
  const { plan, graph } = checked;
  const problems = [...checkOwner(submission, plan), ...checkVerifiers(dependencies, plan)];
  if (problems.length > 0) return { kind: "refused", problems };
  const unplaced = await checkWorktrees(dependencies, plan);
  if (unplaced.length > 0) return { kind: "refused", problems: unplaced };
  const decided = await askPlugins(dependencies, submission, graph);
  if (decided.kind === "denied") return { kind: "refused", problems: [decided.problem] };
  const unenforceable = await findUnenforceable(dependencies, submission, checked);
  if (unenforceable.length > 0) return { kind: "refused", problems: unenforceable };
  const confidence = takeLowerConfidence(graph.confidence, decided.confidence);
  return { kind: "checked", dependencies, graph, confidence, policy: rules?.policy };
}

/** Opens the coordination of a checked plan, with budget of the plan around it where it is inside of one. */
async function openPlan(
  dependencies: RuntimeDependencies,
  checked: Omit<PlanOpening, "plan" | "place">,
): Promise<PlanSubmitted> {
  const { submission, graph } = checked;
  const plan = createPlanContent(dependencies, submission);
  const { coordinationId, objective } = graph;
  const { forkedFrom } = submission;
  const existing = await dependencies.runs.state(coordinationId);
  if (existing.kind !== "unopened") return answerForUsedId(existing, coordinationId, { plan, forkedFrom });
  const aim: ContentInput = { ref: dependencies.refOf(objective), text: objective, keepWhileRunning: true };
  dependencies.plans.remember(plan.ref.sha256, graph);
  const admission = await draftAdmission(dependencies, { graph, from: 0, forkedFrom });
  const keep = await listKeptContents(dependencies, graph, forkedFrom);
  const place = await borrowBudget(dependencies, graph, await findPlaceWithinBudget(dependencies, graph));
  if (place.kind === "nowhere") return { kind: "refused", problems: [place.problem] };
  try {
    const open = draftOpeningOfPlan(dependencies, { ...checked, plan, place });
    const submitted = await dependencies.runs.submit(coordinationId, [open, admission], [plan, aim], {
      keep,
    });
    if (submitted.kind === "refused")
      return answerForUsedId(submitted.state, coordinationId, { plan, forkedFrom });
    if (place.kind === "inside") dependencies.giveBack(place.parent.coordinationId, place.parent.stepId);
    return { kind: "accepted", coordinationId, steps: graph.steps.length };
  } finally {
    if (place.kind === "inside") await giveBudgetBackIfUnopened(dependencies, place.parent, coordinationId);
  }
}

async function findPlaceWithinBudget(
  dependencies: RuntimeDependencies,
  graph: StepGraph,
): Promise<PlanPlace> {
  return limitByOperatorBudget(dependencies, await findPlanPlace(dependencies, graph));
}

/** Finds the rules for a plan of the session that it names; a plan that names none is refused later. */
async function findRulesForPlan(
  dependencies: Pick<RuntimeDependencies, "policies" | "runs" | "store">,
  { plan, ownerAgent: agent }: Pick<PlanSubmission, "plan" | "ownerAgent">,
): Promise<PolicyRules | undefined> {
  const ownerSession = isRecord(plan) ? plan["ownerSession"] : undefined;
  if (!dependencies.policies || typeof ownerSession !== "string") return undefined;
  const session = ownerSession as SessionKey;
  return chooseRules(dependencies.policies, await findStepOfChild(dependencies, session), { agent, session });
}

/** Finds the same submission in the ledger: it is not checked again by what was configured or released since. */
async function findEarlierSubmission(
  dependencies: RuntimeDependencies,
  submission: PlanSubmission,
): Promise<PlanSubmitted | undefined> {
  const { plan, submittedBy, forkedFrom } = submission;
  const id = coordinationIdSchema.safeParse(isRecord(plan) ? plan["coordinationId"] : undefined);
  const state = id.success ? await dependencies.runs.state(id.data) : undefined;
  if (!state || state.kind === "unopened") return undefined;
  if (submittedBy !== undefined && submittedBy !== state.created.ownerSession) return undefined;
  return findReplay(state, { plan: createPlanContent(dependencies, submission), forkedFrom });
}

/**
 * Lists the hashes of the results that a fork keeps from its source. They are kept from the first append on, which may
 * not admit all steps yet.
 */
async function listKeptContents(
  { forks }: RuntimeDependencies,
  { steps }: StepGraph,
  forkedFrom: ForkedFrom | undefined,
): Promise<string[]> {
  if (!forkedFrom) return [];
  const carried = await forks.readCarriedResults(forkedFrom);
  return [...new Set(steps.flatMap(({ stepId }) => carried.get(stepId)?.output?.sha256 ?? []))];
}

/** Finds steps whose agents' calls cannot be seen, although what they may do is narrowed here or above. */
async function findUnenforceable(
  dependencies: RuntimeDependencies,
  { parentOf = () => undefined }: PlanSubmission,
  { plan, graph: { ownerSession, steps } }: { readonly plan: CoordinationPlan; readonly graph: StepGraph },
): Promise<PlanProblem[]> {
  const unseen = steps.filter(({ agent }) => dependencies.runnerOf(agent) === "acp_stdio");
  if (unseen.length === 0) return [];
  const { bounds } = await findBoundsOfSession(dependencies, ownerSession, parentOf);
  return unseen
    .flatMap(({ stepId, agent: agentId, privilege: askedPrivilege }): PlanProblem[] => {
      const isHeld =
        bounds.length > 0 ||
        createAdmittedPrivilege(dependencies.privileges, { agentId, askedPrivilege }) !== undefined;
      const message = explainUnenforceable({ agentId, runner: dependencies.runnerOf(agentId) }, isHeld);
      const index = plan.steps.findIndex((step) => step.stepId === stepId);
      return message === undefined
        ? []
        : [createProblem(`steps[${index}].agent`, "PRIVILEGE_UNENFORCEABLE", message)];
    })
    .slice(0, BOUNDS.planProblemsMax);
}

function createPlanContent({ refOf }: RuntimeDependencies, { plan }: PlanSubmission): ContentInput {
  const text = JSON.stringify(plan);
  return { ref: refOf(text), text, keepWhileRunning: true };
}

/** Checks that a session submits a plan of its own, with agents that it may spawn (H3). */
function checkOwner({ submittedBy, mayRun }: PlanSubmission, plan: CoordinationPlan): PlanProblem[] {
  if (submittedBy === undefined || plan.ownerSession === submittedBy) return checkAgents(plan, mayRun);
  return [createProblem("ownerSession", "OWNER_MISMATCH", "a session can only submit plans of its own")];
}

/**
 * Checks that each check of a step is either the operator's, used with `true`, or stated in the plan under another
 * key. One that nobody defines would hold its step until people let it through.
 */
function checkVerifiers({ gates }: RuntimeDependencies, { steps }: CoordinationPlan): PlanProblem[] {
  return steps
    .flatMap(({ verify }, index) =>
      Object.entries(verify?.checks ?? {}).flatMap(([key, check]): PlanProblem[] => {
        const path = `steps[${index}].verify.checks.${key}`;
        const isDefined = Object.hasOwn(gates.verifiers, key);
        if ((check === true) === isDefined) return [];
        const message = isDefined
          ? `the operator defines a check ${JSON.stringify(key)}; use it with true, or choose another key`
          : `the operator defines no check ${JSON.stringify(key)}; state the check here, or let the operator define it (gates.verifiers)`;
        return [{ path, code: isDefined ? "CHECK_INVALID" : "CHECK_UNKNOWN", message }];
      }),
    )
    .slice(0, BOUNDS.planProblemsMax);
}

/** Checks that a plan gives its submitter no agents that it could not spawn (H3). */
function checkAgents({ steps }: CoordinationPlan, mayRun: PlanSubmission["mayRun"]): PlanProblem[] {
  if (!mayRun) return [];
  const formatForbiddenAgent = (agent: AgentId): string =>
    `this agent may not use ${JSON.stringify(agent)}; use one that it may spawn, or let the operator allow it (subagents.allowAgents)`;
  return steps
    .flatMap(({ agent }, index): PlanProblem[] =>
      mayRun(agent)
        ? []
        : [
            {
              path: `steps[${index}].agent`,
              code: "AGENT_NOT_ALLOWED",
              message: formatForbiddenAgent(agent),
            },
          ],
    )
    .slice(0, BOUNDS.planProblemsMax);
}

interface SubmittedText {
  readonly plan: ContentInput;
  readonly forkedFrom: ForkedFrom | undefined;
}

/**
 * Returns the answer to a plan whose id is used: a replay where it is the same plan with the same fork source, else a
 * refusal.
 */
function answerForUsedId(state: Coordination, id: CoordinationId, submitted: SubmittedText): PlanSubmitted {
  return findReplay(state, submitted) ?? refuseTakenId(id);
}

/**
 * Returns the answer to a repeated submission: the same plan and the same fork source under the same id; `undefined`
 * for any other.
 */
function findReplay(state: Coordination, { plan, forkedFrom }: SubmittedText): PlanSubmitted | undefined {
  if (state.kind === "unopened" || state.created.plan?.content.sha256 !== plan.ref.sha256) return undefined;
  if (!isSameValue(state.created.forkedFrom, forkedFrom)) return undefined;
  return { kind: "replay", coordinationId: state.coordinationId, steps: state.created.plan.steps };
}

function refuseTakenId(id: CoordinationId): PlanSubmitted {
  const sentence = `there is another coordination ${JSON.stringify(id)}; choose another id`;
  return { kind: "refused", problems: [createProblem("coordinationId", "COORDINATION_TAKEN", sentence)] };
}

function createProblem(path: string, code: PlanProblem["code"], message: string): PlanProblem {
  return { path, code, message };
}

/** A checked plan with everything that its coordination is opened with. */
interface PlanOpening {
  readonly submission: PlanSubmission;
  readonly graph: StepGraph;
  readonly plan: ContentInput;
  readonly place: Exclude<PlanPlace, { kind: "nowhere" }>;
  /** The planner's confidence in the plan as a whole. */
  readonly confidence: number | undefined;
  /** The pack that holds for it alone. */
  readonly policy: PolicyRef | undefined;
}

function draftOpeningOfPlan(dependencies: RuntimeDependencies, draft: PlanOpening): Command {
  const { submission, graph, plan, place, confidence } = draft;
  const { settings, clock, refOf } = dependencies;
  const now = clock.now();
  const { coordinationId, ownerSession, objective, deadlineMs, failurePolicy } = graph;
  const budget = place.kind === "inside" ? cutBudget(graph.budget, place.left) : graph.budget;
  const decision = findDoubt(dependencies.gates, confidence);
  const { successCriteria } = graph;
  const origin = refOf(`${coordinationId}:${now}`).sha256;
  return {
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
      ...(decision && { decision }),
      ...(successCriteria && { successCriteria: [...successCriteria] }),
    },
    questions: createQuestionPolicy(dependencies),
    ...createOriginFields(draft),
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
  };
}

/** Where the plan comes from, and the pack that holds for it alone. */
function createOriginFields({ submission: { forkedFrom }, place, policy }: PlanOpening) {
  return {
    ...(place.kind === "inside" && { parent: place.parent }),
    ...(forkedFrom && { forkedFrom }),
    ...(policy && { policy }),
  };
}

/** Submits a command that a session asks for, unless the coordination is another session's. */
async function submitPlanRequest(
  dependencies: RuntimeDependencies,
  { coordinationId, askedBy }: Omit<CoordinationRequest, "by" | "stepId">,
  command: Command,
): Promise<RequestAnswer> {
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind === "unopened")
    return { kind: "refused", code: "NOT_FOUND", reason: `there is no coordination ${coordinationId}` };
  if (askedBy !== undefined && !isOwnedBy(state.created, askedBy, dependencies.settings))
    return { kind: "refused", code: "NOT_OWNER", reason: "the coordination belongs to another session" };
  const submitted = await dependencies.runs.submit(coordinationId, [command]);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  return { kind: submitted.kind, coordinationId };
}
