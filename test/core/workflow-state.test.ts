/** Owns: what a run, and a fork of one, is at a moment: ended, at work, still taking events from its source, and whose ids it has. */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createRunEvent } from "../../src/agents/coordination/workflow/advance-run.ts";
import {
  beginWorkflow,
  evolveWorkflow,
} from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import {
  computeEventId,
  findLogIdentity,
  isAtFork,
  isAtWork,
  isEndedPhase,
  isMaterialising,
  createReviewKey,
  type NodeRun,
  type WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createFirstEvent, NOW, RUN } from "./workflow-view-scene.ts";

const SOURCE = "source-1" as CoordinationId;
const ERROR = { code: "broken", message: "it broke" } as const;

/** A fork that takes its first three events from its source. */
const ORIGIN: RunOrigin = {
  mode: "replay",
  sourceRunId: SOURCE,
  fromSeq: 0,
  until: 3,
  identity: SOURCE,
  ids: [{ before: 3, runId: SOURCE }],
};

/** Returns a run whose log is its start and the drafts. */
function playRun(drafts: readonly WorkflowDraft[], origin?: RunOrigin): WorkflowRun {
  const first = beginWorkflow(createFirstEvent(), origin);
  return drafts.reduce((run, draft) => evolveWorkflow(run, createRunEvent(run, draft, NOW)), first);
}

const STARTED: WorkflowDraft = {
  type: "node.started",
  payload: { nodeId: "a", typeId: "core.noop", attempt: 0 },
};
const COMPLETED: WorkflowDraft = { type: "node.completed", payload: { nodeId: "a" } };
const CANCELLED: WorkflowDraft = { type: "run.cancelled", payload: {} };
const PAUSED: WorkflowDraft = { type: "run.paused", payload: { drainPolicy: "immediate" } };

describe("the phase of a run", () => {
  it.each<[string, boolean, WorkflowDraft[]]>([
    ["that is open", false, []],
    ["that is paused", false, [PAUSED]],
    ["that completed", true, [{ type: "run.completed", payload: { outputs: {} } }]],
    ["that failed", true, [{ type: "run.failed", payload: { error: ERROR } }]],
    ["that was cancelled", true, [CANCELLED]],
  ])("%s is an end: %s", (_title, expected, drafts) => {
    expect(isEndedPhase(playRun(drafts).phase)).toBe(expected);
  });
});

describe("a node", () => {
  const SUSPENDED: WorkflowDraft = {
    type: "node.suspended",
    nodeId: "a",
    payload: { nodeId: "a", interruptId: "a-1", kind: "approval", key: "key" },
  };

  it.each<[NodeRun["status"], boolean, WorkflowDraft[]]>([
    ["running", true, [STARTED]],
    ["suspended", true, [STARTED, SUSPENDED]],
    ["completed", false, [STARTED, COMPLETED]],
    ["failed", false, [STARTED, { type: "node.failed", payload: { nodeId: "a", error: ERROR } }]],
    ["skipped", false, [{ type: "node.skipped", payload: { nodeId: "a" } }]],
    ["cancelled", false, [STARTED, { type: "node.cancelled", payload: { nodeId: "a" } }]],
  ])("that is %s is at work: %s", (status, expected, drafts) => {
    const node = playRun(drafts).nodes.get("a");
    if (!node) throw new Error("the node is not there");
    expect(node.status).toBe(status);
    expect(isAtWork(node)).toBe(expected);
  });
});

describe("the identity of a run", () => {
  it("is its id where its log is not forked", () => {
    expect(findLogIdentity(playRun([]))).toBe(RUN);
  });

  it("is the one of the source where the run replays it", () => {
    expect(findLogIdentity(playRun([], ORIGIN))).toBe(SOURCE);
  });
});

describe("the id of an event", () => {
  it("is of the run where its log is not forked", () => {
    expect(computeEventId(playRun([]), 2)).toBe("run-1:2");
  });

  it("is of the source for what a fork took from there, and of the fork from then on", () => {
    const run = playRun([], ORIGIN);
    expect([2, 3].map((sequence) => computeEventId(run, sequence))).toEqual(["source-1:2", "run-1:3"]);
  });
});

describe("a fork", () => {
  it.each<[string, "takes" | "is at the fork" | "goes on", WorkflowDraft[]]>([
    ["has taken one of three events", "takes", []],
    ["has taken two of three events", "takes", [STARTED]],
    ["is paused and has not taken all", "takes", [PAUSED]],
    ["has taken all and has no event of its own", "is at the fork", [STARTED, COMPLETED]],
    ["is paused and has taken all", "is at the fork", [STARTED, PAUSED]],
    ["has events of its own", "goes on", [STARTED, COMPLETED, STARTED]],
    ["ended before it took all", "goes on", [CANCELLED]],
    ["ended with the last event that it took", "goes on", [STARTED, CANCELLED]],
  ])("that %s: %s", (_title, expected, drafts) => {
    const run = playRun(drafts, ORIGIN);
    expect({ takes: isMaterialising(run), waits: isAtFork(run) }).toEqual({
      takes: expected === "takes",
      waits: expected === "is at the fork",
    });
  });

  it("is none of a run that has no source", () => {
    const run = playRun([STARTED, COMPLETED]);
    expect(isMaterialising(run)).toBe(false);
    expect(isAtFork(run)).toBe(false);
  });
});

describe("the key of the review of a worker", () => {
  it("is another one for each worker of each node", () => {
    const keys = [
      createReviewKey("node", "worker"),
      createReviewKey("node", "other"),
      createReviewKey("more", "worker"),
      createReviewKey("nodework", "er"),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(createReviewKey("node", "worker")).toBe(keys[0]);
  });
});
