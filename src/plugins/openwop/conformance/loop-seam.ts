/**
 * Owns: the seam by which the conformance suite looks at a stateful loop (RFC 0061). It runs a workflow of this host, a supervisor
 * with a script and the nodes that it lets work, and tells what is in the run's log.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type {
  HostAnswer,
  Caller,
  HostEvent,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse, type HttpRefusal } from "../http/error-map.ts";
import {
  createJsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import { waitForEvents } from "../routes/wait-for-events.ts";
import { createSeamRoute } from "./seam.ts";

const turn = z.int().min(1).max(WORKFLOW_BOUNDS.loopIterationsMax);
const loopBody = z.object({
  turns: turn,
  maxLoopIterations: turn.optional(),
  workspaceWriteAtTurn: turn.optional(),
  suspendAtTurn: turn.optional(),
  resume: z.boolean().optional(),
});
/** The request of a test to run a loop. */
type LoopRequest = z.output<typeof loopBody>;

export const loopSeam: Route = createSeamRoute({
  method: "POST",
  path: "/agentloop/run",
  operationId: "seamLoop",
  summary: "Runs a supervisor's loop and tells of its turns.",
  body: loopBody,
  handle: runLoop,
});

const BOSS = "boss";
const OPEN_MS = 20_000;

async function runLoop(
  ask: RouteRequest<LoopRequest>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const { host } = dependencies;
  const { caller, body } = ask;
  const { seams } = host;
  if (!seams) return refuse("not_found", "This host has no such seam.");
  const path = `agentloop/${randomUUID()}.md`;
  const begun = await beginLoopRun(host, caller, { body, path });
  if (begun.kind === "refused") return begun;
  const { runId } = begun.value;
  const log = await collectLoopEvents(ask, dependencies, runId);
  if ("kind" in log) return log;
  const { maxLoopIterations, ...rest } = body;
  const visible =
    rest.workspaceWriteAtTurn === undefined ? undefined : await seams.turnWorkspaces(caller, runId);
  if (visible?.kind === "refused") return visible;
  await host.workspace(caller).remove(path, {});
  const wasVisible = (iteration: number): boolean | undefined =>
    visible?.value.find((each) => each.iteration === iteration)?.paths.includes(path);
  const writeTurn = rest.workspaceWriteAtTurn ?? 0;
  return createJsonAnswer(200, {
    runId,
    decisions: listPayloadsOfType(log, "runOrchestrator.decided"),
    ...(visible && {
      workspaceVisible: { atWriteTurn: wasVisible(writeTurn), atNextTurn: wasVisible(writeTurn + 1) },
    }),
    ...(maxLoopIterations !== undefined && findBreachedBound(log)),
    ...findResumedIteration(log),
  });
}

async function beginLoopRun(
  host: WorkflowHost,
  caller: Caller,
  { body, path }: { readonly body: LoopRequest; readonly path: string },
): Promise<HostAnswer<{ readonly runId: string }>> {
  const registered = await host.register(caller, createLoopDefinition(body));
  if (registered.kind === "refused") return registered;
  const { maxLoopIterations } = body;
  return host.create(caller, {
    workflowId: registered.value.workflowId,
    inputs: { path },
    transport: "rest",
    ...(maxLoopIterations !== undefined && { configurable: { maxLoopIterations } }),
  });
}

/**
 * Returns the whole log once the run has ended, or a refusal, as where it does not go on in time; resumes or cancels
 * the run where it waits for people.
 */
async function collectLoopEvents(
  ask: RouteRequest<LoopRequest>,
  { host, clock }: RouteDependencies,
  runId: string,
): Promise<readonly HostEvent[] | HttpRefusal> {
  const { caller, signal } = ask;
  const events: HostEvent[] = [];
  for (;;) {
    const place = { from: events.length, limit: HTTP_BOUNDS.answerEventsMax, waitMs: OPEN_MS };
    const page = await waitForEvents(host, clock, { caller, runId, signal, ...place });
    if (page.kind === "refused") return page;
    events.push(...page.value.events);
    if (page.value.isComplete) return events;
    if (page.value.events.length === 0) return refuse("unavailable", "The loop did not end in time.");
    const isAsked = page.value.events.some(({ type }) => type === "interrupt.requested");
    if (!isAsked) continue;
    const settled = ask.body.resume
      ? await host.resolve(caller, runId, { nodeId: BOSS }, { action: "accept" })
      : await host.cancel(caller, runId, { reason: "nobody resumes the loop" });
    if (settled.kind === "refused") return settled;
  }
}

function listPayloadsOfType(log: readonly HostEvent[], type: HostEvent["type"]): readonly unknown[] {
  return log.flatMap((event) => (event.type === type ? [event.payload] : []));
}

function findBreachedBound(log: readonly HostEvent[]): { readonly bound?: unknown } {
  const [breached] = listPayloadsOfType(log, "cap.breached");
  return breached === undefined ? {} : { bound: breached };
}

/**
 * Returns the field with the turn whose decision came first after people had answered; an empty object where none did.
 */
function findResumedIteration(log: readonly HostEvent[]): { readonly resumedIteration?: number } {
  const answered = log.findIndex(({ type }) => type === "interrupt.resolved");
  if (answered === -1) return {};
  for (const event of log.slice(answered))
    if (event.type === "runOrchestrator.decided")
      return { resumedIteration: (event.payload as { readonly iteration: number }).iteration };
  return {};
}

/**
 * Returns a workflow whose supervisor decides once a turn: a worker works, the last turn ends the loop, and the turn
 * to suspend at has no confidence, so that it waits for people.
 */
function createLoopDefinition({ turns, workspaceWriteAtTurn, suspendAtTurn }: LoopRequest): unknown {
  const plan = Array.from({ length: turns }, (_, index) => {
    const doubt = index + 1 === suspendAtTurn ? { confidence: 0 } : {};
    if (index + 1 === turns) return { kind: "terminate", reason: "the loop is over", ...doubt };
    const worker = index + 1 === workspaceWriteAtTurn ? "write" : "idle";
    return { kind: "next-worker", nextWorkerIds: [worker], ...doubt };
  });
  const createEdge = (worker: string): unknown => ({
    id: `to-${worker}`,
    sourceNodeId: BOSS,
    targetNodeId: worker,
    condition: { type: "equals", left: "decision.nextWorkerIds.0", right: worker },
  });
  const back = (worker: string): unknown => ({
    id: `from-${worker}`,
    sourceNodeId: worker,
    targetNodeId: BOSS,
  });
  const path = { type: "variable", variableName: "path" };
  return {
    id: `agentloop-${turns}-${workspaceWriteAtTurn ?? 0}-${suspendAtTurn ?? 0}`,
    name: "agentloop",
    version: "1",
    triggers: [],
    metadata: {},
    variables: [],
    settings: {},
    nodes: [
      { id: BOSS, typeId: "core.orchestrator.supervisor", config: { mockDispatchPlan: plan } },
      {
        id: "write",
        typeId: "openclaw.workspace.write",
        inputs: { path },
        config: { content: "written by the loop" },
      },
      { id: "idle", typeId: "core.noop" },
    ],
    edges: [createEdge("write"), createEdge("idle"), back("write"), back("idle")],
  };
}
