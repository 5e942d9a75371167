/**
 * Owns: the seams through which the conformance suite sees agents of manifests at work. Each starts a run like every other, of
 * an agent that a mock model plays where no live one is asked for, and answers with what is in its log.
 */
import { z } from "zod";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import { agentSourceSchema } from "../../../agents/coordination/contracts/workflows/agent-events.ts";
import type {
  AgentRun,
  HostAnswer,
  Caller,
  HostEvent,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { CONFORMANCE_AGENT, STRICT_AGENT } from "./conformance-agents.ts";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  createJsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { createSeamRoute, record } from "./seam.ts";

const name = z.string().min(1).max(HTTP_BOUNDS.idCharsMax);
const share = z.number().min(0).max(1);

const liveBody = z.object({
  source: agentSourceSchema.default("run-api"),
  agentId: name.optional(),
  returnSchemaRef: name.optional(),
  forceInvalidResult: z.boolean().default(false),
  attemptTool: name.optional(),
  task: record.default({}),
  live: z.boolean().default(false),
});

const dispatchBody = z.object({
  task: z.unknown().optional(),
  validateHandoff: z.boolean().default(true),
  availableTools: z.array(name).max(HTTP_BOUNDS.bulkRunsMax).optional(),
  confidenceThreshold: share.optional(),
  simulateConfidence: share.default(0.9),
  live: z.boolean().default(false),
});

const hookBody = z.object({
  principal: name,
  toolName: name,
  requiredScopes: z.array(name).max(20).default([]),
  args: record.default({}),
  simulateRateLimitExhausted: z.boolean().default(false),
  simulateToolError: z.boolean().default(false),
});

export const agentSeams: readonly Route[] = [
  createSeamRoute({
    method: "POST",
    path: "/agents/live-invoke",
    operationId: "seamLiveInvoke",
    summary: "Runs an agent to its end.",
    body: liveBody,
    handle: invokeLiveAgent,
  }),
  createSeamRoute({
    method: "POST",
    path: "/agents/{agentId}/dispatch",
    operationId: "seamAgentDispatch",
    summary: "Dispatches an agent.",
    body: dispatchBody,
    handle: dispatchAgent,
  }),
  createSeamRoute({
    method: "POST",
    path: "/toolhooks/invoke",
    operationId: "seamToolHooks",
    summary: "Calls a tool for a principal.",
    body: hookBody,
    handle: invokeToolHook,
  }),
];

const WAIT_MS = 60_000;

/** The request of a test to run an agent. */
interface AgentTestRequest {
  readonly caller: Caller;
  readonly agentId: string;
  readonly source: z.output<typeof agentSourceSchema>;
  readonly task: Readonly<Record<string, unknown>>;
  readonly configurable: Readonly<Record<string, unknown>>;
}

/** A run of an agent, with its first events. */
interface ListedAgentRun extends AgentRun {
  readonly events: readonly HostEvent[];
}

/**
 * Runs an agent until it ends or a minute is over, and returns the run with its first events, as many as one answer
 * may have; a refusal where the host refuses.
 */
async function runAgentToEnd(
  { host, clock }: RouteDependencies,
  { caller, task, ...asking }: AgentTestRequest,
): Promise<HostAnswer<ListedAgentRun>> {
  const waiting = new AbortController();
  const cancel = clock.wakeAt(addMs(clock.now(), WAIT_MS), () => {
    waiting.abort();
  });
  try {
    const run = await host.runAgent(caller, { ...asking, inputs: task }, waiting.signal);
    if (run.kind === "refused") return run;
    const range = { from: 0, limit: HTTP_BOUNDS.answerEventsMax };
    const page = await host.events(caller, run.value.runId, range);
    return page.kind === "refused"
      ? page
      : { kind: "done", value: { ...run.value, events: page.value.events } };
  } finally {
    cancel();
  }
}

function findLastPayload(
  events: readonly HostEvent[],
  type: string,
): Readonly<Record<string, unknown>> | undefined {
  return events.findLast((event) => event.type === type)?.payload;
}

async function invokeLiveAgent(
  ask: RouteRequest<z.output<typeof liveBody>>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const { source, returnSchemaRef, forceInvalidResult, attemptTool, task, live } = ask.body;
  const agentId = ask.body.agentId ?? (returnSchemaRef === undefined ? CONFORMANCE_AGENT : STRICT_AGENT);
  const script = [
    ...(attemptTool === undefined ? [] : [{ call: { name: attemptTool } }]),
    ...(forceInvalidResult ? [{ say: JSON.stringify({ isOfTheSchema: false }) }] : []),
  ];
  const configurable = live ? {} : { ai: { provider: "mock", script } };
  const seen = await runAgentToEnd(dependencies, { caller: ask.caller, agentId, source, task, configurable });
  if (seen.kind === "refused") return seen.code === "workflow_not_found" ? refuseUnknownAgent(agentId) : seen;
  const { runId, events } = seen.value;
  const { invocationId } = findLastPayload(events, "agent.invocation.started") ?? {};
  const { outcome } = findLastPayload(events, "agent.invocation.completed") ?? {};
  return createJsonAnswer(200, { runId, invocationId, outcome });
}

function refuseUnknownAgent(agentId: string): RouteAnswer {
  return refuse("not_found", `There is no agent ${agentId.slice(0, 100)}.`);
}

/** The suite's own words for a task or a result that breaks its schema. */
const CODES: Readonly<Record<string, string>> = {
  handoff_task_schema_violation: "task_schema_violation",
  handoff_return_schema_violation: "return_schema_violation",
};

async function dispatchAgent(
  ask: RouteRequest<DispatchBody>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const { body, caller } = ask;
  const agentId = ask.param("agentId");
  const agent = dependencies.host.agents().find((each) => each.agentId === agentId);
  if (!agent) return refuseUnknownAgent(agentId);
  const { confidenceThreshold, validateHandoff, simulateConfidence: confidence } = body;
  const configurable = {
    ...(!body.live && { ai: { provider: "mock", confidence, validateHandoff } }),
    ...(confidenceThreshold !== undefined && { escalationThreshold: confidenceThreshold }),
  };
  const task = wrapTask(body.task);
  const seen = await runAgentToEnd(dependencies, { caller, agentId, source: "run-api", task, configurable });
  return seen.kind === "refused"
    ? seen
    : createJsonAnswer(200, describeDispatch(seen.value, { agent, body }));
}

type DispatchBody = z.output<typeof dispatchBody>;

/** Returns a task as an object: a text or a number is its member `task`. */
function wrapTask(task: unknown): Readonly<Record<string, unknown>> {
  return typeof task === "object" && task !== null ? { ...task } : { task: task ?? "" };
}

/** An agent that a test dispatches, and the body of its request. */
interface AgentDispatch {
  readonly agent: ReturnType<RouteDependencies["host"]["agents"]>[number];
  readonly body: DispatchBody;
}

function describeDispatch(
  { events, snapshot, runId }: ListedAgentRun,
  { agent, body }: AgentDispatch,
): unknown {
  const { agentId, persona, modelClass, toolAllowlist } = agent;
  const bound = findLastPayload(events, "coordination.agent_bound");
  const { outcome, confidence } = findLastPayload(events, "agent.invocation.completed") ?? {};
  const surface = body.availableTools?.filter((tool) => toolAllowlist.includes(tool));
  return {
    agentId,
    persona,
    modelClass,
    runId,
    live: body.live,
    status: outcome === "completed" || outcome === "escalated" ? outcome : "failed",
    toolSurface: surface ?? listToolIds(bound?.["tools"]),
    confidence,
    threshold: bound?.["threshold"],
    events: events.filter(({ type }) => type.startsWith("agent.")).map(flattenAgentEvent),
    ...readRunOutcome(snapshot),
  };
}

function listToolIds(tools: unknown): unknown[] {
  return Array.isArray(tools) ? tools.map((tool: { readonly id?: unknown }) => tool.id) : [];
}

/** Returns an event with its payload's members and its agent at the top, where the suite reads them. */
function flattenAgentEvent({ type, payload }: HostEvent): Readonly<Record<string, unknown>> {
  const { agentId, fromAgentId, ...rest } = payload as Readonly<Record<string, unknown>>;
  return { ...rest, type, agentId: agentId ?? fromAgentId };
}

/** Returns the result and the error of a run, with the suite's own codes. */
function readRunOutcome(snapshot: AgentRun["snapshot"]): Readonly<Record<string, unknown>> {
  const { error, outputs } = snapshot as {
    readonly error?: { readonly code: string; readonly message: string };
    readonly outputs?: { readonly result?: unknown };
  };
  return {
    ...(outputs && { result: outputs.result }),
    ...(error && { error: { code: CODES[error.code] ?? error.code, message: error.message } }),
  };
}

/**
 * Runs a played agent that calls the tool through the hooks, for a principal without scopes, who lacks whatever a tool
 * asks for, and answers with the events of the call.
 */
async function invokeToolHook(
  ask: RouteRequest<z.output<typeof hookBody>>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const { principal, toolName, requiredScopes, args, ...simulated } = ask.body;
  const tool = {
    name: toolName,
    requiredScopes,
    isExhausted: simulated.simulateRateLimitExhausted,
    fails: simulated.simulateToolError,
  };
  const seen = await runAgentToEnd(dependencies, {
    caller: { tenant: ask.caller.tenant, principal, scopes: [] },
    agentId: CONFORMANCE_AGENT,
    source: "run-api",
    task: {},
    configurable: { ai: { provider: "mock", tools: [tool], script: [{ call: { name: toolName, args } }] } },
  });
  if (seen.kind === "refused") return seen;
  const { events } = seen.value;
  return createJsonAnswer(200, {
    toolCalled: findLastPayload(events, "agent.toolCalled") ?? {},
    toolReturned: findLastPayload(events, "agent.toolReturned") ?? {},
  });
}
