/** Owns: when and how a run ends: all is done, a node failed, or its time is over. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { WorkflowDraft, WorkflowPayloads } from "../../contracts/workflows/workflow-events.ts";
import type { NodeGraph } from "../state/node-graph.ts";
import type { WorkflowSettings } from "./node-type.ts";
import { handlesFailure } from "../state/edges.ts";
import { closing } from "../state/invocation.ts";
import { isAtWork, type NodeRun, type WorkflowRun } from "../state/workflow-state.ts";
import type { Values } from "../state/values.ts";

interface Ending {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly now: EpochMs;
}

/** A failure that nobody takes, or a supervisor's `terminate`: the run ends though other nodes could go on. */
export function earlyEnd(ending: Ending): WorkflowDraft[] {
  const { run, graph } = ending;
  for (const node of run.nodes.values())
    if (node.status === "failed" && !taken(graph, node)) return failed(ending, node);
  const last = run.orchestrator.last;
  return last?.decision.kind === "terminate"
    ? [...stopped(run, "the supervisor ended the run"), completed(ending)]
    : [];
}

function taken(graph: NodeGraph, { nodeId }: NodeRun): boolean {
  const node = graph.nodes.get(nodeId);
  return node !== undefined && handlesFailure(node);
}

/** Nothing is at work and nothing can be started. */
export function endRun(ending: Ending): WorkflowDraft[] {
  return [completed(ending)];
}

function failed(ending: Ending, { nodeId, error }: NodeRun): WorkflowDraft[] {
  const known = error ?? { code: "node_failed", message: `node ${nodeId} failed` };
  return [
    ...stopped(ending.run, `node ${nodeId} failed`),
    {
      type: "run.failed",
      payload: { error: known, failedNodeId: nodeId, durationMs: durationOf(ending) },
    },
  ];
}

/** What is still at work is told that it ends. */
export function stopped(run: WorkflowRun, reason: string): WorkflowDraft[] {
  return [...run.nodes.values()]
    .filter(isAtWork)
    .flatMap(({ nodeId, invocation }): WorkflowDraft[] => [
      ...closing(nodeId, invocation),
      { type: "node.cancelled", nodeId, payload: { nodeId, reason } },
    ]);
}

function completed(ending: Ending): WorkflowDraft {
  return {
    type: "run.completed",
    payload: { outputs: { ...outputsOf(ending) }, durationMs: durationOf(ending) },
  };
}

function durationOf({ run, now }: Ending): number {
  return Math.max(0, now - run.startedAtMs);
}

/** Of the primary node, else of the one at the end, else of all at the ends by their ids. */
function outputsOf({ run, graph }: Ending): Values {
  const done = [...graph.nodes.values()].flatMap(({ node, outgoing }) => {
    const own = run.nodes.get(node.id);
    const isEnd = outgoing.every(({ closesLoop }) => closesLoop);
    return own?.status === "completed" ? [{ node, own, isEnd }] : [];
  });
  const primary = done.find(({ node }) => node.outputRole === "primary");
  if (primary) return primary.own.outputs ?? {};
  const ends = done.filter(({ isEnd }) => isEnd);
  const [only] = ends;
  if (only && ends.length === 1) return only.own.outputs ?? {};
  return Object.fromEntries(ends.map(({ node, own }) => [node.id, own.outputs ?? {}]));
}

interface TimeLimit {
  readonly limitMs: number;
}

/** The strictest of what the caller, the workflow and the host say. Waiting for people does not count. */
function timeLimit({ run, graph, settings }: Ending): TimeLimit | undefined {
  const asked = run.started.configurable?.["runTimeoutMs"];
  const limits = [
    settings.runDurationMsMax,
    ...(typeof asked === "number" ? [asked] : []),
    ...(graph.timeoutMs ? [graph.timeoutMs] : []),
  ];
  return { limitMs: Math.min(...limits) };
}

/** When the run's time is over, unless somebody is waited for. */
export function runDeadlineMs(ending: Ending): EpochMs | undefined {
  const { run } = ending;
  const limit = timeLimit(ending);
  if (!limit || run.waitingSinceMs !== undefined) return undefined;
  return addMs(run.startedAtMs, limit.limitMs + run.waitedMs + 1);
}

export function isOverTime(ending: Ending): boolean {
  const deadline = runDeadlineMs(ending);
  return deadline !== undefined && ending.now >= deadline;
}

export function overTime(ending: Ending): WorkflowDraft[] {
  const { run, now } = ending;
  const limit = timeLimit(ending)?.limitMs ?? 0;
  const observed = now - run.startedAtMs - run.waitedMs;
  const error: WorkflowPayloads["run.failed"]["error"] = {
    code: "run_timeout",
    message: `the run has worked for ${observed} ms, and its limit is ${limit} ms`,
  };
  return [
    { type: "cap.breached", payload: { kind: "run-duration", limit, observed } },
    ...stopped(run, "the run's time is over"),
    { type: "run.failed", payload: { error, durationMs: durationOf(ending) } },
  ];
}
