/**
 * Owns: what the page asks for. Each goes to the gateway method that the command line asks, too: no rule is written here but that an
 * answer counts for what was shown.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { parseReplayPolicy } from "../../../agents/coordination/contracts/config/replay-policy.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { answerKindSchema } from "../../../agents/coordination/contracts/escalation.ts";
import { OWNER_STEP_ID, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { anyFieldsSchema } from "../../../agents/coordination/contracts/plan.ts";
import { formatResource } from "../../../agents/coordination/contracts/resource-names.ts";
import type { WorkflowEntry } from "../../../agents/coordination/ports/workflow-store.ts";
import { checkNewPlan } from "../../../agents/coordination/plan/check-new-plan.ts";
import { replayCoordination } from "../../../agents/coordination/runtime/replay-coordination.ts";
import type {
  ActionResult,
  ForkPreview,
  ForkResult,
  PlacedProblem,
  PlanCheck,
  PlanRun,
  WhatIfAnswer,
} from "../contract/actions.ts";
import { readQuestionDetail } from "./list-questions.ts";
import {
  createSuccessAnswer,
  createRefusalAnswer,
  createLastingRefusal,
  type JsonAnswer,
} from "./page-answer.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type {
  GatewayReply,
  GatewayRequest,
  PageDependencies,
  PageRequest,
  PageRoute,
} from "./page-dependencies.ts";
import { readPlanText } from "./read-plan-text.ts";
import { readQueryNumber } from "./read-query.ts";
import { createPlanShape } from "./run-detail.ts";
import { cancelWorkflowRun, forkWorkflowRun, previewWorkflowFork } from "./workflow-actions.ts";

const NO_GATEWAY =
  "This page is served without a gateway, which alone can do that: open the page of the gateway with `openclaw coordination page`.";

export const ACTION_ROUTES: readonly PageRoute[] = [
  { method: "POST", path: "questions/:id/answer", right: "approve", handle: handleAnswer },
  { method: "POST", path: "runs/:id/cancel", right: "write", handle: handleCancel },
  { method: "POST", path: "runs/:id/steps/:stepId/retry", right: "write", handle: handleRetry },
  { method: "POST", path: "claims/:token/release", right: "write", handle: handleClaimRelease },
  { method: "POST", path: "plans/check", right: "read", handle: handlePlanCheck },
  { method: "POST", path: "plans/run", right: "write", handle: handlePlanRun },
  { method: "GET", path: "runs/:id/fork-preview", right: "write", handle: handleForkPreview },
  { method: "POST", path: "runs/:id/fork", right: "write", handle: handleFork },
  { method: "POST", path: "runs/:id/what-if", right: "read", handle: handleWhatIf },
];

/**
 * Asks the gateway, and turns its answer into one of the page; a refusal where the page is served without a gateway.
 */
async function forwardToGateway(
  { ask: askGateway }: PageDependencies,
  { method, params }: { readonly method: GatewayRequest; readonly params: object },
  render: (payload: Readonly<Record<string, unknown>>) => object,
): Promise<JsonAnswer> {
  if (!askGateway) return createRefusalAnswer("needs_gateway", NO_GATEWAY);
  const reply = await askGateway(method, params);
  return reply.ok ? createSuccessAnswer(render({ ...reply.payload })) : createGatewayRefusal(reply);
}

function createGatewayRefusal({ error }: GatewayReply & { readonly ok: false }): JsonAnswer {
  const { code, message, details } = error;
  if (code === "COORDINATION_NOT_FOUND") return createRefusalAnswer("not_found", message);
  if (code === "INPUT_INVALID") return createRefusalAnswer("invalid", message);
  const refusal = createLastingRefusal(error);
  if (refusal) return refusal;
  if (code === "LEDGER_CLOSED" || code === "LEDGER_BUSY" || code === "LEDGER_UNAVAILABLE")
    return createRefusalAnswer("unavailable", message);
  if (code !== "PLAN_REFUSED")
    return createRefusalAnswer(code === "INVARIANT_VIOLATED" ? "failed" : "refused", message);
  const { status, body } = createRefusalAnswer("plan_refused", message);
  return { status, body: { ...body, ...details } };
}

/** @throws CoordinationError `INPUT_INVALID` */
function parseActionBody<S extends z.ZodType>({ body }: PageRequest, schema: S): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.join(".") || "the body";
  throw new CoordinationError("INPUT_INVALID", `${path}: ${issue?.message ?? "not what this takes"}`);
}

const answerBody = z.strictObject({
  revision: z.string().max(64),
  answer: answerKindSchema,
  text: z.string().min(1).max(BOUNDS.answerCharsMax).optional(),
});

async function handleAnswer(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  const { revision, answer, text } = parseActionBody(request, answerBody);
  const questionId = request.param("id");
  const shown = await readQuestionDetail(await dependencies.reader(), questionId, request.session.rights);
  if (!shown) return createRefusalAnswer("not_found", "There is no such question.");
  if (shown.status === "open" && shown.revision !== revision)
    return createRefusalAnswer(
      "question_changed",
      "The question has changed since it was shown: look at it again, and then answer.",
    );
  const params = { questionId, answer, ...(text !== undefined && { text }) };
  return forwardToGateway(
    dependencies,
    { method: "coordination.answer", params },
    ({ happened }): ActionResult => {
      return { happened: String(happened) };
    },
  );
}

const emptyBody = z.strictObject({});

async function handleCancel(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  parseActionBody(request, emptyBody);
  const coordinationId = request.param("id");
  const workflowRun = await findWorkflowRun(request, dependencies);
  if (workflowRun) return cancelWorkflowRun(workflowRun, dependencies);
  return forwardToGateway(
    dependencies,
    { method: "coordination.cancel", params: { coordinationId } },
    ({ replay }): ActionResult => {
      const words =
        replay === true ? "was being cancelled already" : "is being cancelled, with every running child";
      return { happened: `${coordinationId} ${words}.` };
    },
  );
}

/** Returns the workflow run that the request names; `undefined` for the id of a coordination, or of nothing. */
async function findWorkflowRun(
  request: PageRequest,
  { reader }: PageDependencies,
): Promise<WorkflowEntry | undefined> {
  const { workflows } = await reader();
  return workflows.entry(request.param("id") as CoordinationId);
}

async function handleRetry(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  parseActionBody(request, emptyBody);
  const params = { coordinationId: request.param("id"), stepId: request.param("stepId") };
  return forwardToGateway(
    dependencies,
    { method: "coordination.retry", params },
    ({ replay }): ActionResult => {
      const words = replay === true ? "was being tried again already" : "gets another attempt";
      return { happened: `Step ${params.stepId} ${words}.` };
    },
  );
}

async function handleClaimRelease(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  parseActionBody(request, emptyBody);
  const token = /^\d{1,15}$/.test(request.param("token")) ? Number(request.param("token")) : 0;
  if (token < 1)
    return createRefusalAnswer("invalid", "token: expected a whole number, as the list of claims has it.");
  return forwardToGateway(
    dependencies,
    { method: "coordination.claims.release", params: { token } },
    ({ stepId, resource }): ActionResult => {
      const holder = stepId === OWNER_STEP_ID ? "the owner's session" : `step ${String(stepId)}`;
      const claim = `Claim ${token} of ${holder} on ${formatResource(String(resource))}`;
      return {
        happened: `${claim} has ended; ${holder} keeps working, and its next write is ruled on anew.`,
      };
    },
  );
}

const planBody = z.strictObject({ text: z.string().max(PAGE_BOUNDS.bodyBytesMax) });

async function handlePlanCheck(request: PageRequest): Promise<JsonAnswer> {
  const plan = await readPlanText(parseActionBody(request, planBody).text);
  if (!plan.ok) return createSuccessAnswer(createRefusedCheck(plan.problems));
  const checked = checkNewPlan(plan.value);
  if (checked.kind === "refused")
    return createSuccessAnswer(createRefusedCheck(await plan.place(checked.problems)));
  const { coordinationId, objective } = checked.graph;
  const accepted: PlanCheck = {
    ok: true,
    id: coordinationId,
    objective,
    plan: createPlanShape(checked.graph),
  };
  return createSuccessAnswer(accepted);
}

function createRefusedCheck(problems: readonly PlacedProblem[]): PlanCheck {
  return { ok: false, problems };
}

async function handlePlanRun(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  const plan = await readPlanText(parseActionBody(request, planBody).text);
  if (!plan.ok) {
    const { status, body } = createRefusalAnswer(
      "plan_refused",
      plan.problems[0]?.message ?? "This is no plan.",
    );
    return { status, body: { ...body, problems: plan.problems } };
  }
  const params = { plan: plan.value };
  return forwardToGateway(
    dependencies,
    { method: "coordination.plan.run", params },
    ({ coordinationId, steps, replay }): PlanRun => {
      const id = String(coordinationId);
      const happened =
        replay === true
          ? `${id} was submitted before; it is not run twice.`
          : `${id} runs, with ${String(steps)} steps.`;
      return { id, happened };
    },
  );
}

const ANY_PLACE = { min: 0, max: Number.MAX_SAFE_INTEGER };

async function handleForkPreview(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  const from = readQueryNumber(request, "event", ANY_PLACE);
  const coordinationId = request.param("id");
  const workflowRun = await findWorkflowRun(request, dependencies);
  if (workflowRun) return previewWorkflowFork(await dependencies.reader(), workflowRun, from);
  const params = { coordinationId, preview: true, ...(from !== undefined && { from }) };
  return forwardToGateway(
    dependencies,
    { method: "coordination.plan.fork", params },
    (payload): ForkPreview => {
      const { forkedFrom, carried, anew } = payload as unknown as ForkPayload;
      return { source: coordinationId, event: forkedFrom.sequence, kept: carried, anew };
    },
  );
}

/** The answer of `coordination.plan.fork`. */
interface ForkPayload {
  readonly coordinationId: string;
  readonly forkedFrom: { readonly sequence: number };
  readonly carried: readonly string[];
  readonly anew: readonly string[];
}

const forkBody = z.strictObject({ event: z.int().min(0) });

async function handleFork(request: PageRequest, dependencies: PageDependencies): Promise<JsonAnswer> {
  const { event } = parseActionBody(request, forkBody);
  const workflowRun = await findWorkflowRun(request, dependencies);
  if (workflowRun) return forkWorkflowRun(workflowRun, event, dependencies);
  const params = { coordinationId: request.param("id"), from: event };
  return forwardToGateway(
    dependencies,
    { method: "coordination.plan.fork", params },
    (payload): ForkResult => {
      const { coordinationId, carried, anew } = payload as unknown as ForkPayload;
      const happened = `${coordinationId} runs: it keeps ${carried.length} results, and runs ${anew.length} steps anew.`;
      return { id: coordinationId, happened };
    },
  );
}

const whatIfBody = z.strictObject({ policy: anyFieldsSchema, from: z.int().min(0).optional() });

/** Decides a recorded log again under another policy; nothing is executed or written. */
async function handleWhatIf(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  const { policy, from } = parseActionBody(request, whatIfBody);
  const replayed: WhatIfAnswer = await replayCoordination(
    await reader(),
    request.param("id") as CoordinationId,
    {
      policy: parseReplayPolicy(policy),
      ...(from !== undefined && { from }),
    },
  );
  return createSuccessAnswer(replayed);
}
