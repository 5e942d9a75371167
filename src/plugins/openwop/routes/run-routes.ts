/** Owns: the routes of runs, except their events and interrupts. */
import { z } from "zod";
import { formatTimestamp, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { readTraceHeaders } from "../../../agents/coordination/workflow/trace-context.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import {
  hasRunEnded,
  type WorkflowStatus,
} from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { PARENT_HEADER, readParentHeader } from "../../../agents/coordination/workflow/parent-header.ts";
import type {
  HostAnswer,
  CreatedRun,
  CreateRun,
  HostRefusal,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createFailureRefusal, refuse, findErrorStatus, type HttpRefusal } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { ancestrySchema, createdSchema, runStatusSchema, snapshotSchema } from "../http/schemas.ts";

const record = z.record(z.string(), z.unknown());
const id = z.string().min(1).max(HTTP_BOUNDS.idCharsMax);
const reason = z.string().max(4_096).optional();

/** agent-ref.schema.json; what is not named here is not read. */
const agentPin = z.object({
  agentId: id,
  version: z.string().max(64).optional(),
  channel: z.string().max(64).optional(),
});

const createBody = z
  .strictObject({
    workflowId: id.optional(),
    /** In place of a workflow: the agent of a manifest whose run it is (RFC 0077). */
    agent: agentPin.optional(),
    agentId: id.optional(),
    inputs: record.optional(),
    /** Taken, and not read: the tenant is that of the token. */
    tenantId: id.optional(),
    scopeId: id.optional(),
    callbackUrl: z.string().max(4_096).optional(),
    configurable: record.optional(),
    tags: z.array(z.string().max(WORKFLOW_BOUNDS.tagCharsMax)).max(WORKFLOW_BOUNDS.tagsMax).optional(),
    metadata: record.optional(),
  })
  // The one thing that a run is of; `rootOf` says it in words.
  .meta({ oneOf: ["workflowId", "agent", "agentId"].map((key) => ({ required: [key] })) });
type CreateBody = z.output<typeof createBody>;

const bulkBody = z.strictObject({ runIds: z.array(id).min(1), reason });

export const runRoutes: readonly Route[] = [
  defineRoute({
    method: "POST",
    path: "/v1/runs",
    operationId: "createRun",
    auth: "bearer",
    summary: "Starts a run of a workflow.",
    status: 201,
    refusals: [403, 422],
    body: createBody,
    answer: createdSchema,
    handle: createRun,
  }),
  defineRoute({
    method: "GET",
    path: "/v1/runs/{runId}",
    operationId: "getRun",
    auth: "bearer",
    summary: "How a run is.",
    status: 200,
    answer: snapshotSchema,
    isLong: true,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.snapshot(ask.caller, ask.param("runId")), (snapshot) =>
        createJsonAnswer(200, snapshot),
      ),
  }),
  defineRoute({
    method: "POST",
    path: "/v1/runs/{runId}/cancel",
    operationId: "cancelRun",
    auth: "bearer",
    summary: "Cancels a run and its children.",
    status: 200,
    body: z.strictObject({ reason }),
    answer: runStatusSchema,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.cancel(ask.caller, ask.param("runId"), pickReason(ask.body)), (run) =>
        createJsonAnswer(200, run),
      ),
  }),
  defineRoute({
    method: "POST",
    path: "/v1/runs:bulk-cancel",
    operationId: "bulkCancelRuns",
    auth: "bearer",
    summary: "Cancels several runs, each by itself.",
    status: 200,
    body: bulkBody,
    answer: z.object({ results: z.array(record) }),
    handle: cancelRuns,
  }),
  defineRoute({
    method: "POST",
    path: "/v1/runs/{runId}:pause",
    operationId: "pauseRun",
    auth: "bearer",
    summary: "Pauses a run.",
    status: 202,
    body: z.strictObject({ reason, drainPolicy: z.enum(["immediate", "drain-current-node"]).optional() }),
    answer: z.object({ runId: z.string(), status: z.literal("paused"), pausedAt: z.string() }),
    handle: async (ask, { host, clock }) => {
      const { drainPolicy } = ask.body;
      const request = { ...pickReason(ask.body), ...(drainPolicy !== undefined && { drainPolicy }) };
      const runId = ask.param("runId");
      const paused = await host.pause(ask.caller, runId, request);
      if (paused.kind === "refused" && !(ask.isRepeated && isPausedAlready(paused))) return paused;
      return createJsonAnswer(202, { runId, status: "paused", pausedAt: formatTimestamp(clock.now()) });
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/runs/{runId}:resume",
    operationId: "resumeRun",
    auth: "bearer",
    summary: "Lets a paused run go on.",
    status: 202,
    body: z.strictObject({ reason }),
    answer: z.object({ runId: z.string(), status: z.literal("running"), resumedAt: z.string() }),
    handle: async (ask, { host, clock }) => {
      const runId = ask.param("runId");
      const resumed = await host.resume(ask.caller, runId);
      if (resumed.kind === "refused" && !(ask.isRepeated && isResumedAlready(resumed))) return resumed;
      return createJsonAnswer(202, { runId, status: "running", resumedAt: formatTimestamp(clock.now()) });
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/runs/{runId}/ancestry",
    operationId: "getRunAncestry",
    auth: "bearer",
    summary: "Which run started a run, and on which host.",
    status: 200,
    answer: ancestrySchema,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.ancestry(ask.caller, ask.param("runId")), (ancestry) =>
        createJsonAnswer(200, ancestry),
      ),
  }),
];

function pickReason(body: { readonly reason?: string | undefined }): { readonly reason?: string } {
  return body.reason === undefined ? {} : { reason: body.reason };
}

/** True of a pause that is refused because the run is paused, or will be when its running nodes have ended. */
function isPausedAlready({ code, details }: HostRefusal): boolean {
  if (code !== "run_not_pausable") return false;
  return details?.["runStatus"] === "paused" || details?.["pauseRequested"] !== undefined;
}

/** True of a resumption that is refused because the run goes on. A run that cannot be paused was never resumed. */
function isResumedAlready({ code, details }: HostRefusal): boolean {
  const status = details?.["runStatus"] as WorkflowStatus | undefined;
  if (details?.["canPause"] === false) return false;
  return code === "run_not_paused" && status !== undefined && !hasRunEnded(status);
}

async function createRun(
  ask: RouteRequest<CreateBody>,
  { host, pathPrefix }: RouteDependencies,
): Promise<RouteAnswer> {
  const request = readCreateRequest(ask);
  if ("kind" in request) return request;
  const created = await host.create(ask.caller, request);
  if (created.kind === "refused") return convertMissingWorkflow(created);
  const { runId, status } = created.value;
  const statusUrl = `${pathPrefix}/v1/runs/${encodeURIComponent(runId)}`;
  return createJsonAnswer(201, { runId, status, eventsUrl: `${statusUrl}/events`, statusUrl });
}

function readCreateRequest(ask: RouteRequest<CreateBody>): CreateRun | HttpRefusal {
  const { body } = ask;
  const refused = refuseUnsupportedOptions(ask);
  if (refused) return refused;
  const root = readWorkflowOrAgent(body);
  if ("kind" in root) return root;
  const { inputs = {} } = body;
  const parent = readParentHeader(ask.header(PARENT_HEADER));
  return {
    ...root,
    inputs,
    transport: "rest",
    ...pickRunOptions(body),
    ...(ask.subject !== undefined && { runId: ask.subject as CoordinationId }),
    ...readTraceHeaders({
      traceparent: ask.header("traceparent"),
      tracestate: ask.header("tracestate"),
    }),
    ...(parent && { parent }),
  };
}

/** Returns the workflow or the agent that the run is of; refuses none and several. */
function readWorkflowOrAgent({
  workflowId,
  agent,
  agentId,
}: CreateBody): Pick<CreateRun, "workflowId" | "agent"> | HttpRefusal {
  const named = [workflowId, agent, agentId].filter((each) => each !== undefined);
  if (named.length !== 1)
    return refuse("validation_error", "A run needs either a workflow (`workflowId`) or an agent (`agent`).");
  if (workflowId !== undefined) return { workflowId };
  const { version, channel, ...pin } = agent ?? { agentId: agentId ?? "" };
  return {
    workflowId: "",
    agent: {
      agentId: pin.agentId,
      source: "run-api",
      ...(version !== undefined && { version }),
      ...(channel !== undefined && { channel }),
    },
  };
}

function refuseUnsupportedOptions({ header, body }: RouteRequest<CreateBody>): HttpRefusal | undefined {
  if (header("x-force-engine-version") !== undefined)
    return refuse("force_engine_version_forbidden", "This host runs every run under its one engine version.");
  if (header("x-dedup")?.trim().toLowerCase() === "enforce")
    return refuse(
      "capability_required",
      "This host does not refuse a second run of a scope. Leave `X-Dedup` out, and send an `Idempotency-Key`.",
      { requiredCapability: "X-Dedup" },
    );
  if (body.callbackUrl !== undefined)
    return refuse("capability_required", "This host calls nobody back.", { requiredCapability: "webhooks" });
  const charsMax = WORKFLOW_BOUNDS.metadataCharsMax;
  if (body.metadata && JSON.stringify(body.metadata).length > charsMax)
    return refuse("validation_error", `\`metadata\` is longer than ${charsMax} characters.`);
  return undefined;
}

function pickRunOptions({ configurable, tags, metadata, scopeId }: CreateBody): Partial<CreateRun> {
  return {
    ...(configurable && { configurable }),
    ...(tags && { tags }),
    ...(metadata && { metadata }),
    ...(scopeId !== undefined && { scopeId }),
  };
}

/** Turns a missing workflow into a bad request, as creating a run demands; reading one answers 404. */
function convertMissingWorkflow(refusal: HostRefusal): HttpRefusal {
  return refusal.code === "workflow_not_found" ? { ...refusal, code: "validation_error" } : refusal;
}

async function cancelRuns(
  ask: RouteRequest<z.output<typeof bulkBody>>,
  { host, logger }: RouteDependencies,
): Promise<RouteAnswer> {
  const { runIds } = ask.body;
  const maxRunIds = HTTP_BOUNDS.bulkRunsMax;
  if (runIds.length > maxRunIds)
    return refuse("validation_error", `At most ${maxRunIds} runs are cancelled at once.`, { maxRunIds });
  const kind = ask.subject === undefined ? "change" : "keyed change";
  // Together, so that they share a commit.
  const cancellations = await Promise.all(
    runIds.map(async (runId): Promise<CancelledRun> => {
      const outcome = await host
        .cancel(ask.caller, runId, pickReason(ask.body))
        .catch((error: unknown) => createFailureRefusal(error, "bulkCancelRuns", logger, kind));
      return { runId, outcome };
    }),
  );
  const answer = createJsonAnswer(200, { results: cancellations.map(createCancellationEntry) });
  // A run that failed may be cancelled when the same request is made again.
  return cancellations.some(hasServerFailure) ? { ...answer, keep: "subject" } : answer;
}

/** The outcome of cancelling one of several runs. */
interface CancelledRun {
  readonly runId: string;
  readonly outcome: HostAnswer<CreatedRun> | HttpRefusal;
}

/** True where a run was not cancelled because the host failed, so that the same request may be made again. */
function hasServerFailure({ outcome }: CancelledRun): boolean {
  return outcome.kind === "refused" && findErrorStatus(outcome.code) >= 500;
}

function createCancellationEntry({ runId, outcome }: CancelledRun): unknown {
  if (outcome.kind === "refused") {
    const { code, message } = outcome;
    return { runId, ok: false, error: { code, message } };
  }
  const { status } = outcome.value;
  if (status !== "completed" && status !== "failed") return { runId, ok: true, status };
  return { runId, ok: false, status, error: { code: "run_terminal", message: `The run has ${status}.` } };
}
