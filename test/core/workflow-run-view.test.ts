/** Owns: how a run looks from outside: its status, its summary, and each member of its snapshot. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { ParentRun } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  listAwaitedChildRuns,
  findAskingNode,
  findWaitingNode,
  maskSensitiveVariables,
  createRunSnapshot,
  computeRunStatus,
  summarizeRun,
  type ChildRun,
} from "../../src/agents/coordination/workflow/state/run-view.ts";
import type {
  Handoff,
  NodeRun,
  NodeStatus,
  RunPhase,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  LATER,
  NOW,
  OWNER,
  RUN,
  createAsking,
  createGraph,
  createNodeRun,
  createOrigin,
  createRun,
  withDecision,
  withNodes,
} from "./workflow-view-scene.ts";

function takeSnapshot(run: WorkflowRun, graph = createGraph(), children: readonly ChildRun[] = []) {
  return createRunSnapshot(run, graph, children);
}

const PARENT: ParentRun = { runId: "parent-1", hostId: "host", cause: "core.subWorkflow", nodeId: "sub" };
const ENDED: readonly RunPhase[] = [
  { kind: "completed", atMs: LATER, outputs: { color: "blue" } },
  { kind: "failed", atMs: LATER, error: { code: "broken", message: "it broke" } },
  { kind: "cancelled", atMs: LATER },
];

describe("the status of a run", () => {
  it("is running while it is open and nobody is waited for", () => {
    expect(computeRunStatus(createRun())).toBe("running");
    expect(computeRunStatus(createRun(withNodes(createNodeRun("a", "running"))))).toBe("running");
  });

  it.each([{ kind: "paused", atMs: LATER } as const, ...ENDED])("is that of its phase: $kind", (phase) => {
    expect(computeRunStatus(createRun({ phase, ...withNodes(createAsking("a")) }))).toBe(phase.kind);
  });

  it.each([
    ["approval", "waiting-approval"],
    ["low-confidence", "waiting-approval"],
    ["clarification", "waiting-input"],
    ["custom", "waiting-input"],
    ["external-event", "waiting-external"],
  ] as const)("says whom a question of the kind %s waits for: %s", (kind, status) => {
    expect(computeRunStatus(createRun(withNodes(createAsking("a", { kind }))))).toBe(status);
  });

  it.each<[title: string, statuses: ChildRun["status"][], expected: ChildRun["status"]]>([
    ["a child that works", ["running"], "running"],
    ["a child that is paused", ["paused"], "running"],
    ["a child that waits", ["waiting-external"], "waiting-external"],
    [
      "two that wait, of which the first counts",
      ["running", "waiting-input", "waiting-approval"],
      "waiting-input",
    ],
  ])("follows from %s", (_title, statuses, expected) => {
    const children = statuses.map((status, index) => ({ runId: `child-${index}`, status }));
    expect(computeRunStatus(createRun(), children)).toBe(expected);
  });

  it("is that of its own question before that of its child", () => {
    const run = createRun(withNodes(createAsking("a", { kind: "approval" })));
    expect(computeRunStatus(run, [{ runId: "child", status: "waiting-input" }])).toBe("waiting-approval");
  });

  it("is running for a fork that still takes events, whatever its source waited for", () => {
    const origin = createOrigin(9);
    expect(computeRunStatus(createRun({ origin, ...withNodes(createAsking("a")) }))).toBe("running");
    expect(computeRunStatus(createRun({ origin, phase: { kind: "paused", atMs: LATER } }))).toBe("running");
  });

  it("is its own for a fork that has taken all its events", () => {
    const origin = createOrigin(9);
    const run = createRun({ origin, nextSequence: 9, ...withNodes(createAsking("a")) });
    expect(computeRunStatus(run)).toBe("waiting-approval");
  });
});

describe("the summary of a run", () => {
  it("names its owner, its workflow, its driver and when it began", () => {
    expect(summarizeRun(createRun(withNodes(createAsking("a"))), "process-1")).toStrictEqual({
      kind: "workflow",
      status: "waiting-approval",
      tenant: "acme",
      workflowId: "w",
      createdAtMs: NOW,
      driver: "process-1",
    });
  });

  it("says that it asks where other nodes of it work or it is paused, which its status does not tell", () => {
    const isAsking = (fields: Partial<WorkflowRun>): boolean =>
      summarizeRun(createRun(fields), "p").isAsking === true;
    const beside = withNodes(createAsking("a"), createNodeRun("b", "running"));
    expect(isAsking(beside)).toBe(true);
    expect(isAsking(withNodes(createAsking("a")))).toBe(false);
    expect(isAsking(withNodes(createNodeRun("b", "running")))).toBe(false);
    expect(isAsking({ ...beside, phase: { kind: "paused", atMs: LATER } })).toBe(true);
    expect(isAsking({ ...beside, phase: { kind: "cancelled", atMs: LATER } })).toBe(false);
    expect(isAsking({ ...beside, origin: createOrigin(9) })).toBe(false);
  });

  it("names the run that started it, and none for a fork, which nobody's run started", () => {
    expect(summarizeRun(createRun({}, { parent: PARENT }), "p").parent).toEqual(PARENT);
    const fork = createRun({ origin: createOrigin(1) }, { parent: PARENT });
    expect(summarizeRun(fork, "p")).not.toHaveProperty("parent");
  });
});

describe("the node that waits for somebody", () => {
  const running = createNodeRun("r", "running");
  const completed = createNodeRun("c", "completed");
  const askingLater = { ...createAsking("b"), startedSequence: 2 };

  it.each<[title: string, nodeRuns: NodeRun[], waiting: string | undefined, asking: string | undefined]>([
    ["none of no nodes", [], undefined, undefined],
    ["none where nothing is asked", [completed, running], undefined, undefined],
    ["the one that asks", [completed, createAsking("a")], "a", "a"],
    ["the one that asked first", [createAsking("b", { atMs: LATER }), createAsking("a")], "a", "a"],
    ["of two that asked at once the one that began first", [askingLater, createAsking("a")], "a", "a"],
    ["none where another works after it, though it asks", [createAsking("a"), running], undefined, "a"],
    ["none where another works before it, though it asks", [running, createAsking("a")], undefined, "a"],
  ])("is %s", (_title, nodeRuns, waiting, asking) => {
    const run = createRun(withNodes(...nodeRuns));
    expect(findWaitingNode(run)?.nodeId).toBe(waiting);
    expect(findAskingNode(run)?.nodeId).toBe(asking);
  });

  it("is the one that asked first, among as many as are kept in no order", () => {
    const nodeRuns = Array.from({ length: 20 }, (_, index) =>
      createAsking(`node${index}`, { atMs: index === 3 ? NOW : LATER }),
    );
    const run = createRun(withNodes(...nodeRuns));
    expect([findWaitingNode(run)?.nodeId, findAskingNode(run)?.nodeId]).toEqual(["node3", "node3"]);
  });
});

describe("the children that a run waits for", () => {
  const handoff: Handoff = {
    index: 0,
    phase: "running",
    chainEventId: createEventId(RUN, 3),
    workerId: "worker",
    childRunId: "child-1",
    revision: 0,
    unmet: [],
  };
  const { childRunId: _, ...nameless } = handoff;

  it.each<[title: string, status: NodeStatus, handoff: Handoff, children: string[]]>([
    ["a node that runs", "running", handoff, ["child-1"]],
    ["a node that asks meanwhile", "suspended", handoff, ["child-1"]],
    ["no node that has ended", "failed", handoff, []],
    ["no node whose child is not there yet", "running", { ...handoff, phase: "dispatching" }, []],
    ["no node whose child has ended", "running", { ...handoff, phase: "ended" }, []],
    ["no node whose child has no name", "running", nameless, []],
  ])("are those of %s", (_title, status, nodeHandoff, children) => {
    const run = createRun(withNodes(createNodeRun("a", status, { handoff: nodeHandoff })));
    expect(listAwaitedChildRuns(run)).toEqual(children);
  });

  it("are those of all nodes, of which some hand nothing over", () => {
    const second = { ...handoff, childRunId: "child-2" };
    const run = createRun(
      withNodes(
        createNodeRun("a", "running", { handoff }),
        createNodeRun("b", "running"),
        createNodeRun("c", "running", { handoff: second }),
      ),
    );
    expect(listAwaitedChildRuns(run)).toEqual(["child-1", "child-2"]);
  });

  it("are in the order in which their nodes began", () => {
    const nodeRuns = Array.from({ length: 20 }, (_, index) =>
      createNodeRun(`node${index}`, "running", {
        startedSequence: index,
        handoff: { ...handoff, childRunId: `child-${index}` },
      }),
    );
    const children = listAwaitedChildRuns(createRun(withNodes(...nodeRuns)));
    expect(children).toEqual(nodeRuns.map(({ handoff: begun }) => begun?.childRunId));
  });
});

describe("the snapshot of a run", () => {
  it("says of a run that has just begun whose it is, of which workflow, and since when", () => {
    expect(takeSnapshot(createRun())).toStrictEqual({
      runId: "run-1",
      workflowId: "w",
      status: "running",
      owner: OWNER,
      startedAt: "2023-11-14T22:13:20.000Z",
      inputs: {},
      variables: {},
      nodeStates: {},
      eventLogSchemaVersion: 1,
    });
  });

  it("has the state of each node, and its error where there is one", () => {
    const error = { code: "broken", message: "it broke" };
    const run = createRun(
      withNodes(
        createNodeRun("a", "failed", { executions: 3, attempt: 2, error }),
        createNodeRun("b", "running"),
      ),
    );
    expect(takeSnapshot(run)["nodeStates"]).toStrictEqual({
      a: { status: "failed", executions: 3, attempt: 2, error },
      b: { status: "running", executions: 1, attempt: 0 },
    });
  });

  it("names the node that waits while the run is open or paused", () => {
    const waiting = withNodes(createAsking("b"));
    expect(takeSnapshot(createRun(waiting))["currentNodeId"]).toBe("b");
    const paused = createRun({ ...waiting, phase: { kind: "paused", atMs: LATER } });
    expect(takeSnapshot(paused)["currentNodeId"]).toBe("b");
  });

  it.each(ENDED)("names no node that waits once the run has ended: $kind", (phase) => {
    const run = createRun({ phase, ...withNodes(createAsking("b")) });
    expect(takeSnapshot(run)).not.toHaveProperty("currentNodeId");
  });

  it.each<[phase: RunPhase, expected: Readonly<Record<string, unknown>>]>([
    [{ kind: "open" }, {}],
    [{ kind: "paused", atMs: LATER }, { pausedAt: "2023-11-14T22:14:20.000Z" }],
    ...ENDED.map((phase): [RunPhase, Readonly<Record<string, unknown>>] => [
      phase,
      {
        completedAt: "2023-11-14T22:14:20.000Z",
        endedAt: "2023-11-14T22:14:20.000Z",
        ...(phase.kind === "completed" && { outputs: { color: "blue" } }),
        ...(phase.kind === "failed" && { error: { code: "broken", message: "it broke" } }),
      },
    ]),
  ])("has the times, outputs and error of its phase: $kind", (phase, expected) => {
    const members = ["pausedAt", "completedAt", "endedAt", "outputs", "error"];
    const shown = Object.entries(takeSnapshot(createRun({ phase }))).filter(([key]) => members.includes(key));
    expect(Object.fromEntries(shown)).toStrictEqual(expected);
  });

  it("repeats what the caller said", () => {
    const caller = { tags: ["red"], metadata: { ticket: 7 }, configurable: { model: "m" } };
    expect(takeSnapshot(createRun({}, caller))).toMatchObject(caller);
  });

  it("names the children that it has, and whose state it takes over", () => {
    const children: ChildRun[] = [{ runId: "child-1", status: "waiting-input" }];
    const snapshot = takeSnapshot(createRun(), createGraph(), children);
    expect(snapshot).toMatchObject({ status: "waiting-input", childRuns: children });
  });

  it("says that a run which gave up did not reach its goal", () => {
    const run = createRun({
      phase: { kind: "completed", atMs: LATER, outputs: {} },
      ...withDecision({ kind: "terminate", successCriteria: [{ key: "tested", met: false }] }),
    });
    expect(takeSnapshot(run)["convergence"]).toEqual({
      goalSatisfied: false,
      unmet: ["tested"],
      notAccepted: [],
    });
  });
});

describe("the caller in a snapshot", () => {
  const { nodeId: _, ...nameless } = PARENT;

  it.each<[title: string, origin: RunOrigin | undefined, parent: ParentRun | undefined, expected: object]>([
    ["nobody", undefined, undefined, {}],
    ["a node of a run", undefined, PARENT, { parentRunId: "parent-1", parentNodeId: "sub" }],
    ["a run that names no node", undefined, nameless, { parentRunId: "parent-1" }],
    ["a fork", createOrigin(1), undefined, { sourceRunId: "source-1", fromSeq: 4, mode: "branch" }],
    ["a fork of a child", createOrigin(1), PARENT, { sourceRunId: "source-1", fromSeq: 4, mode: "branch" }],
  ])("is told for %s", (_title, origin, parent, expected) => {
    const run = createRun({ ...(origin && { origin }) }, { ...(parent && { parent }) });
    const members = ["parentRunId", "parentNodeId", "sourceRunId", "fromSeq", "mode"];
    const shown = Object.entries(takeSnapshot(run)).filter(([key]) => members.includes(key));
    expect(Object.fromEntries(shown)).toStrictEqual(expected);
  });
});

describe("a sensitive variable", () => {
  const definition = createWorkflow("w", { nodes: [createNode("a")], variables: { color: "blue" } });
  const secret = { name: "secret", type: "string", sensitive: true } as const;
  const variables = [...definition.variables, secret];
  const graph = { ...createGraph(), variables };

  it("is masked, and the values themselves stay", () => {
    const values = { color: "red", secret: "1234", other: 1 };
    expect(maskSensitiveVariables(values, graph)).toStrictEqual({
      color: "red",
      secret: "[masked]",
      other: 1,
    });
    expect(values.secret).toBe("1234");
  });

  it("is not there where it has no value", () => {
    expect(maskSensitiveVariables({ color: "red" }, graph)).toStrictEqual({ color: "red" });
  });

  it("is masked among the inputs and the variables of a snapshot", () => {
    const run = createRun({}, { inputs: { secret: "1234" } });
    expect(takeSnapshot(run, graph)).toMatchObject({
      inputs: { secret: "[masked]" },
      variables: { color: "blue", secret: "[masked]" },
    });
  });
});

describe("the agents of a run", () => {
  const withAgent = (agentId: string, more: Readonly<Record<string, unknown>> = {}) => ({
    agent: { agentId, ...more },
  });
  const graph = createGraph({
    nodes: [
      createNode("writer", "core.noop", {}, withAgent("agent-writer")),
      createNode("critic", "core.noop", {}, withAgent("agent-critic")),
      createNode("plain"),
    ],
  });
  const start = (nodeId: string, startedSequence: number) =>
    createNodeRun(nodeId, "completed", { startedSequence });

  it.each<[title: string, nodeRuns: NodeRun[], agentId: string]>([
    ["who is alone", [start("writer", 1)], "agent-writer"],
    ["whose node is named last", [start("writer", 1), start("critic", 4)], "agent-critic"],
    ["whose node is named first", [start("writer", 7), start("critic", 4)], "agent-writer"],
    ["before a node without an agent", [start("writer", 1), start("plain", 9)], "agent-writer"],
    ["beside a node that the workflow has no more", [start("writer", 1), start("x", 9)], "agent-writer"],
  ])("are shown as the one that was at work last, %s", (_title, nodeRuns, agentId) => {
    expect(takeSnapshot(createRun(withNodes(...nodeRuns)), graph)["agent"]).toStrictEqual({ agentId });
  });

  it("are not shown where none was at work", () => {
    const snapshot = takeSnapshot(createRun(withNodes(start("plain", 1))), graph);
    expect(snapshot).not.toHaveProperty("agent");
    expect(snapshot).not.toHaveProperty("runOrchestrator");
  });

  it("are shown with the members that the protocol knows, and no others", () => {
    const members = {
      agentId: "agent-writer",
      name: "Writer",
      modelClass: "large",
      memoryRef: "notes",
      version: "2",
      channel: "stable",
      sourceManifestId: "manifest-1",
    };
    const node = createNode("writer", "core.noop", {}, { agent: { ...members, apiKey: "1234" } });
    const snapshot = takeSnapshot(createRun(withNodes(start("writer", 1))), createGraph({ nodes: [node] }));
    expect(snapshot["agent"]).toStrictEqual(members);
  });

  it("include the supervisor of the whole run", () => {
    const orchestrator = { agentId: "agent-supervisor", decided: 1, revisions: 0 };
    expect(takeSnapshot(createRun({ orchestrator }), graph)["runOrchestrator"]).toStrictEqual({
      agentId: "agent-supervisor",
    });
  });
});
