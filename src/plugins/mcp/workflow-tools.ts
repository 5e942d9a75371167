/**
 * Owns: workflows as tools of the MCP server: their names and input schemas, and running one for a call.
 *
 * M1 A call that is cancelled cancels its run. A client that leaves, or does not wait, leaves its run going on.
 * M2 The same call of a principal made again, by its id, is the same run, and begins nothing.
 */
import { hash } from "node:crypto";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { WorkflowDefinition } from "../../agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  Caller,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import { nameRepeatableRun } from "../openwop/runs/name-run.ts";
import { WAIT_MS, waitForRun } from "../openwop/runs/run-access.ts";
import { createInputSchema, describeWorkflow } from "../openwop/runs/workflow-inputs.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createRefusalResult,
  type McpDependencies,
  type McpTool,
  type ToolCall,
  type ToolResult,
} from "./mcp-tool.ts";
import { createRunResult } from "./describe-run.ts";

/**
 * Lists one MCP tool for each workflow of the host that the caller may see, under names that none of `takenNames` has.
 */
export async function listWorkflowTools(
  dependencies: McpDependencies,
  caller: Caller,
  takenNames: readonly string[],
): Promise<McpTool[]> {
  const tools: McpTool[] = [];
  for (const { workflowId, name } of nameWorkflowTools(dependencies.host.workflowIds(), takenNames)) {
    const found = await dependencies.host.workflow(caller, workflowId);
    if (found.kind === "done") tools.push(createWorkflowTool(dependencies, found.value, name));
  }
  return tools;
}

/**
 * Returns the name of the tool of each workflow, sorted by workflow id: the id itself, or, where that cannot be a
 * tool's name or is taken, one with a suffix made of a hash.
 */
export function nameWorkflowTools(
  workflowIds: readonly string[],
  takenNames: readonly string[],
): readonly { readonly workflowId: string; readonly name: string }[] {
  const names = new Set(takenNames);
  return workflowIds.toSorted().map((workflowId) => {
    const name = nameWorkflowTool(workflowId, names);
    names.add(name);
    return { workflowId, name };
  });
}

const SUFFIX_CHARS = 8;

/** Returns a workflow's id as the name of its tool; with a suffix where it is taken, too long or no name. */
function nameWorkflowTool(workflowId: string, names: ReadonlySet<string>): string {
  const word = workflowId.replace(/[^a-zA-Z0-9_-]/gu, "_");
  if (word === workflowId && word.length <= MCP_BOUNDS.toolNameCharsMax && !names.has(word)) return word;
  const suffix = hash("sha256", workflowId).slice(0, SUFFIX_CHARS);
  return `${word.slice(0, MCP_BOUNDS.toolNameCharsMax - SUFFIX_CHARS - 1)}_${suffix}`;
}

function createWorkflowTool(
  dependencies: McpDependencies,
  definition: WorkflowDefinition,
  name: string,
): McpTool {
  const inputSchema = createInputSchema(definition);
  return {
    name,
    workflowId: definition.id,
    title: definition.name,
    description: `${describeWorkflow(definition)} (workflow ${definition.id}; answers with the run's outputs, or with what the run waits for)`,
    inputSchema,
    isReadOnly: false,
    call: async (call) => {
      const problems = (await dependencies.contract()).check(inputSchema, call.args);
      if (problems.length === 0) return await runWorkflow(dependencies, definition, call);
      const text = problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
      return { text, structured: { problems }, isError: true };
    },
  };
}

async function runWorkflow(
  dependencies: McpDependencies,
  { id: workflowId, nodes }: WorkflowDefinition,
  call: ToolCall,
): Promise<ToolResult> {
  const { caller, args, traceparent, tracestate, parent } = call;
  const runId =
    call.callId === undefined
      ? undefined
      : await nameRepeatableRun(dependencies.host, caller, [workflowId, call.callId, args], nameMcpRun);
  const created = await dependencies.host.create(caller, {
    workflowId,
    inputs: args,
    transport: "mcp",
    ...(runId !== undefined && { runId }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tracestate !== undefined && { tracestate }),
    ...(parent && { parent }),
  });
  if (created.kind === "refused") return createRefusalResult(created);
  return await waitForCalledRun(dependencies, created.value.runId, { call, total: nodes.length });
}

function nameMcpRun(parts: readonly unknown[]): CoordinationId {
  return `run-mcp-${hash("sha256", formatCanonicalJson(parts)).slice(0, 32)}` as CoordinationId;
}

/** The call whose run is waited for, and the number of the run's nodes. */
interface AwaitedCall {
  readonly call: ToolCall;
  readonly total: number;
}

/** Waits for the run of a call and tells how it is; cancels the run where the client cancels the call (M1). */
async function waitForCalledRun(
  dependencies: McpDependencies,
  runId: string,
  { call, total }: AwaitedCall,
): Promise<ToolResult> {
  const { host } = dependencies;
  const { caller, signal } = call;
  const waitedRun = await waitForRun(dependencies, runId, {
    caller,
    signal,
    waitMs: WAIT_MS,
    until: "asking",
    ...(call.tellProgress && {
      onChange: createProgressListener(dependencies, { ...call, tell: call.tellProgress }, total),
    }),
  });
  if (signal.aborted && !call.hasLeft() && !isClientTimeout(signal.reason)) {
    const reason = "cancelled by the MCP client";
    const cancelled = await host.cancel(caller, runId, { reason });
    if (cancelled.kind === "refused") return createRefusalResult(cancelled);
  }
  if (waitedRun.kind === "refused") return createRefusalResult(waitedRun);
  return await createRunResult(dependencies, caller, waitedRun.value);
}

/** The official library tells a server that its time is over in the way in which it tells that its user cancels. */
const TIMEOUT = /^(?:McpError: MCP error -32001\b|Request timed out)/u;

function isClientTimeout(reason: unknown): boolean {
  return typeof reason === "string" && TIMEOUT.test(reason);
}

/** The function that tells the client of a call's progress. */
interface ProgressTelling {
  readonly tell: NonNullable<ToolCall["tellProgress"]>;
}

/**
 * Returns a listener that tells how many nodes have ended. It tells no more often than a client can show, and never
 * backwards.
 */
function createProgressListener(
  { clock }: McpDependencies,
  { tell }: ProgressTelling,
  total: number,
): (snapshot: RunSnapshot) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let toldProgress = -1;
  return ({ nodeStates, status }) => {
    const states = Object.values((nodeStates ?? {}) as Readonly<Record<string, { readonly status: string }>>);
    const progress = states.filter((node) => ENDED.has(node.status)).length;
    const nowMs = clock.now();
    if (progress <= toldProgress || nowMs - toldAtMs < MCP_BOUNDS.progressMs) return;
    toldProgress = progress;
    toldAtMs = nowMs;
    tell({ progress, total, message: `${progress} of ${total} nodes have ended; the run is ${status}` });
  };
}

const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "skipped", "cancelled"]);
