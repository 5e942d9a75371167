/** Owns: a workflow run for tests of what events mean for it, and the drafts of what happens to its nodes and to itself. */
import { Map as ImmutableMap } from "immutable";
import {
  addMs,
  createEventId,
  formatTimestamp,
  type CoordinationId,
  type EpochMs,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createRunEvent } from "../../src/agents/coordination/workflow/advance-run.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";

export const RUN = "run-1" as CoordinationId;
const SOURCE = "source-1" as CoordinationId;
export const NOW = 1_700_000_000_000 as EpochMs;
export const timeAt = (seconds: number): EpochMs => addMs(NOW, seconds * 1_000);

export const STARTED = {
  workflowId: "w",
  inputs: { goal: "é" },
  transport: "rest",
  owner: { tenant: "acme", principal: "alice" },
  definition: "0".repeat(64),
  configurable: { model: "small", floor: 0.5 },
  memoryScope: "w",
} as const;

export const FIRST: WorkflowEvent = {
  eventId: createEventId(RUN, 0),
  runId: RUN,
  sequence: 0,
  timestamp: formatTimestamp(NOW),
  type: "run.started",
  payload: STARTED,
};

/** The run that its first event makes, written down: a fault in the folding fails tests, and not the loading of this file. */
export const BEGUN: WorkflowRun = {
  runId: RUN,
  nextSequence: 1,
  changedAtMs: NOW,
  startedAtMs: NOW,
  startedEventId: FIRST.eventId,
  started: STARTED,
  phase: { kind: "open" },
  nodes: ImmutableMap(),
  variables: ImmutableMap(),
  chars: JSON.stringify(STARTED).length,
  executions: 0,
  orchestrator: { decided: 0, revisions: 0 },
  reviews: ImmutableMap(),
  waitedMs: 0,
};

/** A moment of the log, in seconds since the run began. */
export type Moment = readonly [seconds: number, draft: WorkflowDraft];

export const append = (run: WorkflowRun, draft: WorkflowDraft, seconds: number): WorkflowRun =>
  evolveWorkflow(run, createRunEvent(run, draft, timeAt(seconds)));
export const play = (run: WorkflowRun, ...moments: readonly Moment[]): WorkflowRun =>
  moments.reduce((before, [seconds, draft]) => append(before, draft, seconds), run);

/** Returns everything that a run is, its maps as plain objects. */
export const showRun = ({ nodes, variables, reviews, ...rest }: WorkflowRun) => ({
  ...rest,
  nodes: nodes.toObject(),
  variables: variables.toObject(),
  reviews: reviews.toObject(),
});

export const start = (nodeId: string): WorkflowDraft => ({
  type: "node.started",
  payload: { nodeId, typeId: "core.noop", attempt: 0 },
});
export const complete = (nodeId: string): WorkflowDraft => ({ type: "node.completed", payload: { nodeId } });
export const suspend = (nodeId: string): WorkflowDraft => ({
  type: "node.suspended",
  nodeId,
  payload: { nodeId, interruptId: `${nodeId}-1`, kind: "approval", key: "k" },
});
export const ask = (nodeId: string): WorkflowDraft => ({
  type: "interrupt.requested",
  nodeId,
  payload: { kind: "approval", key: "k", data: {} },
});
export const resolve = (nodeId: string): WorkflowDraft => ({
  type: "interrupt.resolved",
  nodeId,
  payload: { nodeId, interruptId: `${nodeId}-1`, kind: "approval", resumeValue: {} },
});

export const PAUSED: WorkflowDraft = { type: "run.paused", payload: { drainPolicy: "immediate" } };
export const RESUMED: WorkflowDraft = { type: "run.resumed", payload: {} };
export const CANCELLED: WorkflowDraft = { type: "run.cancelled", payload: {} };

export const createOrigin = (...befores: readonly number[]): RunOrigin => ({
  mode: "branch",
  sourceRunId: SOURCE,
  fromSeq: 1,
  until: 1,
  identity: RUN,
  ids: befores.map((before) => ({ before, runId: SOURCE })),
});
