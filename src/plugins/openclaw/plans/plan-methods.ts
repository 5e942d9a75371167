/**
 * Owns: which gateway methods there are, and what all of them answer but those about questions (`question-methods.ts`):
 * besides those about plans, the folder's own, it ends claims and makes links to the page. An operator decides: a
 * plan's `ownerSession` is taken as it is written, and every coordination may be seen, cancelled and tried again.
 *
 * H2 a method never throws into the host: every refusal and failure is `{code, message}` with a sentence.
 */
import { z } from "zod";
import { fencingTokenSchema } from "../../../agents/coordination/contracts/arbitration.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { anyFieldsSchema } from "../../../agents/coordination/contracts/plan.ts";
import {
  agentIdSchema,
  coordinationIdSchema,
  formatTimestamp,
  stepIdSchema,
  type AgentId,
  type CoordinationId,
  type StepId,
} from "../../../agents/coordination/contracts/ids.ts";
import {
  ENVELOPE_BOUNDS,
  PLAN_BOUNDS,
  type ValueBounds,
} from "../../../agents/coordination/contracts/validation.ts";
import {
  parseReplayPolicy,
  POLICY_BOUNDS,
} from "../../../agents/coordination/contracts/config/replay-policy.ts";
import type {
  ForkRequest,
  PlanSubmitted,
  RequestAnswer,
} from "../../../agents/coordination/runtime/plans/plan-requests.ts";
import { readOutputsReport, readStatusReport, statusParams } from "./coordination-status.ts";
import {
  createOkAnswer,
  actOnParams,
  createRefusedAnswer,
  type MethodAnswer,
} from "../host/method-answer.ts";
import type { MethodName } from "../declarations/method-declarations.ts";
import type { PlanAccess, UsePlans } from "../runtime-access/plan-access.ts";
import { readSessionAgent } from "../host/session-entry.ts";
import { answerByOperator, handleQuestions, type MethodCaller } from "../questions/question-methods.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

export type PlanMethods = (
  method: MethodName,
  params: unknown,
  caller?: MethodCaller,
) => Promise<MethodAnswer>;

/** Answers a call of one gateway method. */
type PlanMethod = (use: UsePlans, params: unknown, caller: MethodCaller) => Promise<MethodAnswer>;

const METHODS: Readonly<Record<MethodName, PlanMethod>> = {
  "coordination.plan.validate": handlePlanValidation,
  "coordination.plan.run": handlePlanRun,
  "coordination.plan.fork": handlePlanFork,
  "coordination.plan.cancel": (use, params) => handleStepRequest(use, params, cancel),
  "coordination.cancel": (use, params) => handleStepRequest(use, params, cancel),
  "coordination.claims.release": releaseClaim,
  "coordination.retry": (use, params) =>
    handleStepRequest(use, params, (plans, stepRequest) => plans.retry(stepRequest)),
  "coordination.status": handleStatus,
  "coordination.questions": handleQuestions,
  "coordination.answer": answerByOperator,
  "coordination.page.link": mintPageLink,
};

/**
 * Creates the function that answers every gateway method of this plugin; an error that is thrown becomes a refused
 * answer.
 */
export function createPlanMethods(use: UsePlans): PlanMethods {
  return async (method, params, caller = {}) => {
    try {
      return await METHODS[method](use, params ?? {}, caller);
    } catch (error) {
      if (isCoordinationError(error)) return createRefusedAnswer(error.code, error.message);
      return createRefusedAnswer("INVARIANT_VIOLATED", describeError(error));
    }
  };
}

const PLAN_PARAMS_BOUNDS: ValueBounds = { ...PLAN_BOUNDS, depthMax: PLAN_BOUNDS.depthMax + 1 };
const validateParams = z.strictObject({ plan: z.unknown() });

function handlePlanValidation(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams({ schema: validateParams, params, bounds: PLAN_PARAMS_BOUNDS }, async ({ plan }) => {
    const { checkPlanInput: checkPlan } = await import("./checked-plan.ts");
    return use((_, { config }) => Promise.resolve(createOkAnswer(checkPlan(plan, config.stepTimeoutMs))));
  });
}

const runParams = z.strictObject({ plan: anyFieldsSchema, ownerAgent: agentIdSchema.optional() });

function handlePlanRun(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams(
    { schema: runParams, params, bounds: PLAN_PARAMS_BOUNDS },
    async ({ plan, ownerAgent }) => {
      const owner = plan["ownerSession"];
      const agent = ownerAgent ?? (readSessionAgent(typeof owner === "string" ? owner : "") as AgentId);
      const submitted = await use((plans) => plans.submitPlan({ plan, ownerAgent: agent }));
      if (submitted.kind === "refused") return createPlanRefusal(submitted);
      const { kind, coordinationId, steps } = submitted;
      return createOkAnswer({ coordinationId, steps, replay: kind === "replay" });
    },
  );
}

type PlanRefused = Extract<PlanSubmitted, { kind: "refused" }>;

function createPlanRefusal({ problems }: PlanRefused): MethodAnswer {
  const [first] = problems;
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : "";
  const firstProblem = first ? `${first.path}: ${first.message}${more}` : "the plan is not valid";
  return createRefusedAnswer("PLAN_REFUSED", firstProblem, { problems });
}

const forkParams = z.strictObject({
  coordinationId: coordinationIdSchema,
  from: z.int().min(0).optional(),
  forkId: coordinationIdSchema.optional(),
  policy: anyFieldsSchema.optional(),
  preview: z.boolean().optional(),
});

const FORK_PARAMS_BOUNDS: ValueBounds = {
  charsMax: POLICY_BOUNDS.charsMax + 1_000,
  depthMax: POLICY_BOUNDS.depthMax + 1,
};

function handlePlanFork(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams({ schema: forkParams, params, bounds: FORK_PARAMS_BOUNDS }, async (forkRequest) => {
    const { coordinationId: source, from, forkId, policy, preview: isPreview } = forkRequest;
    const request: ForkRequest = {
      source,
      ...(from !== undefined && { from }),
      ...(forkId && { coordinationId: forkId }),
      ...(policy && { policy: parseReplayPolicy(policy) }),
      ...(isPreview && { isPreview }),
    };
    const forked = await use((plans) => plans.forkPlan(request));
    if (forked.kind === "refused") return createPlanRefusal(forked);
    const { kind, coordinationId, from: forkedFrom, carried, anew } = forked;
    return createOkAnswer({
      coordinationId,
      forkedFrom,
      steps: carried.length + anew.length,
      carried,
      anew,
      replay: kind === "replay",
      preview: kind === "preview",
    });
  });
}

const requestParams = z.strictObject({
  coordinationId: coordinationIdSchema,
  stepId: stepIdSchema.optional(),
});

interface StepRequest {
  readonly coordinationId: CoordinationId;
  readonly stepId?: StepId;
  readonly by: "operator";
}

const cancel = (plans: PlanAccess, stepRequest: StepRequest): Promise<RequestAnswer> =>
  plans.cancel(stepRequest);

/** Performs what an operator asks of a coordination or one of its steps, such as to cancel it. */
function handleStepRequest(
  use: UsePlans,
  params: unknown,
  act: (plans: PlanAccess, stepRequest: StepRequest) => Promise<RequestAnswer>,
): Promise<MethodAnswer> {
  return actOnParams(
    { schema: requestParams, params, bounds: ENVELOPE_BOUNDS },
    async ({ coordinationId, stepId }) => {
      const stepRequest: StepRequest = { coordinationId, ...(stepId && { stepId }), by: "operator" };
      const answered = await use((plans) => act(plans, stepRequest));
      if (answered.kind !== "refused")
        return createOkAnswer({
          coordinationId: answered.coordinationId,
          replay: answered.kind === "replay",
        });
      const { code, reason } = answered;
      const isUnknown = code === "NOT_FOUND" || code === "NOT_OPENED";
      return createRefusedAnswer(isUnknown ? "COORDINATION_NOT_FOUND" : "REQUEST_REFUSED", reason, {
        refusal: code,
      });
    },
  );
}

const NEWEST_MAX = 10;

/** Answers with the status of one coordination, or without an id with the newest ones and the lanes. */
function handleStatus(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams(
    { schema: statusParams, params, bounds: ENVELOPE_BOUNDS },
    ({ coordinationId, outputsOf }) => {
      if (coordinationId)
        return use(({ reads }) => answerCoordinationStatus(reads, coordinationId, outputsOf));
      if (outputsOf)
        return Promise.resolve(createRefusedAnswer("INPUT_INVALID", "outputsOf needs the coordinationId"));
      return use(async ({ reads, laneMetrics }) => {
        const entries = await reads.list({ limit: NEWEST_MAX });
        const coordinations = entries.map(({ runId, summary }) => {
          const { status, ownerSession, createdAtMs, steps } = summary;
          return {
            coordinationId: runId,
            status,
            ownerSession,
            startedAt: formatTimestamp(createdAtMs),
            steps,
          };
        });
        return createOkAnswer({ coordinations, lanes: laneMetrics() });
      });
    },
  );
}

async function answerCoordinationStatus(
  reads: PlanAccess["reads"],
  id: CoordinationId,
  outputsOf?: StepId,
): Promise<MethodAnswer> {
  const view = await reads.view(id);
  if (!view)
    return createRefusedAnswer("COORDINATION_NOT_FOUND", `no coordination has the id ${JSON.stringify(id)}`);
  const status = {
    coordination: { ...(await readStatusReport(reads, view)), ownerSession: view.ownerSession },
  };
  if (!outputsOf) return createOkAnswer(status);
  const step = view.steps.find(({ stepId }) => stepId === outputsOf);
  const none = { kind: "none", reason: `there is no step ${JSON.stringify(outputsOf)}` };
  return createOkAnswer({ ...status, outputs: step ? await readOutputsReport(reads, id, step) : none });
}

const releaseParams = z.strictObject({ token: fencingTokenSchema });

/**
 * Ends the claim with this token, whichever step has it. The step keeps working: its next write of the resource is
 * ruled on anew.
 */
function releaseClaim(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams({ schema: releaseParams, params, bounds: ENVELOPE_BOUNDS }, ({ token }) =>
    use(async (_, runtime) => {
      const { reads, arbiter } = await runtime.coordinator();
      const [claim] = await reads.claims({ after: token - 1, limit: 1 });
      const released = claim?.token === token ? await arbiter.release(token) : undefined;
      if (!claim || !released) {
        const message = `there is no claim ${token}; it has ended already, or there never was one`;
        return createRefusedAnswer("REQUEST_REFUSED", message, { refusal: "NO_SUCH_CLAIM" });
      }
      const { stepId, resource } = claim;
      return createOkAnswer({ token, coordinationId: released.runId, stepId, resource });
    }),
  );
}

const linkParams = z.strictObject({});

/** Answers with a link that signs in once to the operator's page. Its rights follow from the caller's scopes. */
function mintPageLink(use: UsePlans, params: unknown, { scopes = [] }: MethodCaller): Promise<MethodAnswer> {
  return actOnParams({ schema: linkParams, params, bounds: ENVELOPE_BOUNDS }, () =>
    use(async (_, { page }) => {
      if (page) return createOkAnswer(await page.mintAddress(scopes));
      return createRefusedAnswer("REQUEST_REFUSED", "the page is switched off", { refusal: "PAGE_OFF" });
    }),
  );
}
