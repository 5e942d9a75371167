/** Owns: replaying a record part by part: what is copied, what is derived again, and where what is handed out ends. */
import { describe, expect, it } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { copyRecorded } from "../../src/agents/coordination/workflow/replay-workflow.ts";
import {
  draftRunPause,
  draftRunResumption,
} from "../../src/agents/coordination/workflow/workflow-commands.ts";
import { FORK } from "../support/replay-play.ts";
import {
  chain,
  createEdge,
  createNode,
  sendNextWorker,
  TERMINATE,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import {
  answer,
  beginReplay,
  CHILD_ENDED,
  continueRecord,
  copyEvents,
  createChild,
  recordRun,
  replay,
  RETURNED,
  SAID,
  settle,
  tell,
  wait,
  type Act,
  type RecordedRun,
} from "./workflow-replay-scene.ts";

const LINE: SmallWorkflow = {
  nodes: [createNode("a"), createNode("b", "core.delay", { delayMs: 5_000 }), createNode("c", "core.fail")],
  edges: chain("a>b>c"),
};
const DELAY = createNode("d", "core.delay", { delayMs: 5_000 });
const MODEL = createNode("m", "core.ai.callPrompt", { prompt: "?" });
const TOOL = createNode("t", "core.ai.callPrompt", { mcp: { tool: "search" } });
const REMOTE = createNode("t", "core.a2a.invoke");
const GATED: SmallWorkflow = {
  nodes: [createNode("g", "core.approvalGate", { timeoutMs: 9_000 }), createNode("z")],
  edges: chain("g>z"),
};
const SUPERVISED: SmallWorkflow = {
  nodes: [
    createNode("s", "core.orchestrator.supervisor", { mockDispatchPlan: [sendNextWorker("w"), TERMINATE] }),
    createNode("d", "core.dispatch", { outputMapping: { v: "result" } }),
  ],
  edges: [createEdge("s>d"), createEdge("d>s")],
};

const pause: Act = ({ run }) => draftRunPause(run, { drainPolicy: "immediate" });
const drain: Act = ({ run }) => draftRunPause(run, { drainPolicy: "drain-current-node" });
const resume: Act = ({ run }, context) => draftRunResumption(run, context);
const ASKED = { askedEffectId: "m:1:ask" };
const WITH_ADDRESSES = { mcpUrl: "https://mcp.example", a2aUrl: "https://a2a.example" };

type Case = [title: string, record: () => RecordedRun, cuts: readonly number[], context?: typeof ASKED];

/** `cuts`: how many events are handed out where the page holds none, one, two of them and so on. */
const CASES: readonly Case[] = [
  ["nodes one after the other", () => recordRun(LINE, [[5, wait]]), [0, 0, 1, 2, 3, 4, 5, 6]],
  [
    "a model that is asked",
    () => recordRun({ nodes: [MODEL] }, [[2, settle(SAID)]]),
    [0, 0, 1, 1, 1, 4],
    ASKED,
  ],
  [
    "a tool that is called",
    () => recordRun({ nodes: [TOOL] }, [[2, settle(RETURNED)]], WITH_ADDRESSES),
    [0, 0, 1, 2, 2, 4],
  ],
  [
    "a tool that is tried again",
    () =>
      recordRun(
        { nodes: [TOOL], settings: { maxRetries: 1 } },
        [
          [2, settle({ kind: "failed", error: { code: "busy", message: "later" } })],
          [2, settle(RETURNED)],
        ],
        WITH_ADDRESSES,
      ),
    [0, 0, 1, 2, 2, 2, 5, 6, 6, 8],
  ],
  [
    "an agent elsewhere that asks back",
    () =>
      recordRun(
        { nodes: [REMOTE] },
        [
          [2, settle({ kind: "tool_answered", ok: true, text: "x", content: null, state: "input-required" })],
          [3, answer("t", { answers: { q1: "x" } })],
        ],
        WITH_ADDRESSES,
      ),
    [0, 0, 1, 2, 2, 2, 5, 6, 7],
  ],
  [
    "two who approve",
    () =>
      recordRun({ nodes: [createNode("g", "core.approvalGate", { requiredApprovals: 2 })] }, [
        [1, answer("g", { action: "accept" })],
      ]),
    [0, 0, 1, 1, 3],
  ],
  [
    "a gate that somebody opens",
    () => recordRun(GATED, [[1, answer("g", { action: "accept" })]]),
    [0, 0, 1, 1, 3, 3, 5, 6, 7, 8],
  ],
  ["a gate that nobody opens in time", () => recordRun(GATED, [[9, wait]]), [0, 0, 1, 1, 3, 3, 5, 6]],
  [
    "a run within the run",
    () =>
      recordRun(
        { nodes: [createNode("s", "core.subWorkflow", { workflowId: "w", outputMapping: { v: "result" } })] },
        [
          [1, createChild("c")],
          [2, CHILD_ENDED],
        ],
      ),
    [0, 0, 1, 2, 2, 4],
  ],
  [
    "a pause in the middle of a node",
    () =>
      recordRun({ nodes: [DELAY] }, [
        [1, pause],
        [2, resume],
        [7, wait],
      ]),
    [0, 0, 1, 2, 2, 4, 5],
  ],
  [
    "a pause when the nodes have ended",
    () =>
      recordRun({ nodes: [DELAY, createNode("e")], edges: chain("d>e") }, [
        [1, drain],
        [5, wait],
        [6, resume],
      ]),
    [0, 0, 1, 2, 3, 4, 5, 6, 7],
  ],
  [
    "too many nodes",
    () => recordRun({ nodes: [createNode("a"), DELAY, createNode("e")] }, [], { nodeExecutionsMax: 2 }),
    [0, 0, 1, 2, 3, 3, 3],
  ],
  [
    "a time that is over",
    () => recordRun({ nodes: [DELAY, MODEL] }, [[3, wait]], { runDurationMsMax: 2_000 }),
    [0, 0, 1, 2, 2, 2, 2],
    ASKED,
  ],
  [
    "a supervisor, its worker and its end",
    () =>
      recordRun(SUPERVISED, [
        [1, createChild("c")],
        [2, CHILD_ENDED],
      ]),
    [0, 0, 1, 1, 3, 4, 5, 5, 7, 7, 7, 7, 11, 12, 12, 14],
  ],
  [
    "a loop that is too long",
    () =>
      recordRun(
        SUPERVISED,
        [
          [1, createChild("c")],
          [2, CHILD_ENDED],
        ],
        { loopIterationsMax: 1 },
      ),
    [0, 0, 1, 1, 3, 4, 5, 5, 7, 7, 7, 7, 11, 12, 12, 12],
  ],
  [
    "two nodes that end at once, one by itself",
    () => recordRun({ nodes: [DELAY, TOOL] }, [[5, settle(RETURNED)]], WITH_ADDRESSES),
    [0, 0, 1, 2, 3, 3, 5, 6],
  ],
  [
    "a host that begins again",
    () =>
      recordRun({ nodes: [MODEL] }, [
        [1, tell({ type: "run.resuming", payload: { process: "p", fromStatus: "running" } })],
        [2, settle(SAID)],
      ]),
    [0, 0, 1, 2, 2, 2, 5],
    ASKED,
  ],
];

describe("a record of what follows from the workflow, and of what came from outside", () => {
  it.each<Case>(CASES)("is replayed as it was recorded: %s", (_, create, __, context) => {
    const record = create();
    const { run, events, then } = replay(record, context);
    expect(then).toEqual({ kind: "over" });
    expect(events).toEqual(copyEvents(record.events.slice(1)));
    expect([run.runId, run.nextSequence]).toEqual([FORK, record.events.length]);
  });

  it.each<Case>(CASES)(
    "is handed out where one thing is over, wherever its page ends: %s",
    (_, create, cuts, context) => {
      const record = create();
      const parts = record.events.map((__, index) =>
        replay(record, { ...context, count: index + 1, isAll: false }),
      );
      expect(parts.map(({ events }) => events.length)).toEqual(cuts);
      expect(parts.map(({ run }) => run.nextSequence - 1)).toEqual(cuts);
      expect(new Set(parts.map(({ then }) => then.kind))).toEqual(new Set(["more"]));
    },
  );

  it.each<Case>(CASES)("is taken to its end, wherever that is: %s", (_, create, __, context) => {
    const record = create();
    const parts = record.events.map((___, index) => replay(record, { ...context, count: index + 1 }));
    expect(parts.map(({ events }) => events.length)).toEqual(record.events.map((___, index) => index));
    expect(new Set(parts.map(({ then }) => then.kind))).toEqual(new Set(["over"]));
  });

  it.each<Case>(CASES)("is replayed whatever the host's limits are by now: %s", (_, create, __, context) => {
    const record = create();
    const { mcpUrl: _mcp, a2aUrl: _a2a, ...settings } = record.settings;
    const strict = { ...settings, nodeExecutionsMax: 1, loopIterationsMax: 1, runDurationMsMax: 1 };
    expect(replay({ ...record, settings: strict }, context).then).toEqual({ kind: "over" });
  });
});

describe("a value that the log could not hold", () => {
  const nest = (levels: number): unknown => {
    let value: unknown = "end";
    for (let level = 0; level < levels; level += 1) value = { value };
    return value;
  };
  const inputs = { port: { type: "variable", variableName: "deep" } };

  it("failed the run, and does in its replay", () => {
    const nodes = ["a", "b"].map((id) => createNode(id, "core.identity", {}, { inputs }));
    const record = recordRun({ nodes, variables: { deep: undefined } }, [], { inputs: { deep: nest(38) } });
    expect(record.events.slice(-2)).toMatchObject([
      { type: "node.completed", nodeId: "b" },
      { type: "run.failed", payload: { error: { code: "value_not_recordable" } } },
    ]);
    const { events, then } = replay(record);
    expect([events.length, then]).toEqual([record.events.length - 1, { kind: "over" }]);
  });
});

describe("a source that went on as a fork in the middle of a question", () => {
  const createFork = (): RecordedRun => {
    const record = recordRun(GATED);
    const question = record.events.find(({ type }) => type === "interrupt.requested");
    if (!question) throw new Error("nothing is asked");
    const resuming = { type: "run.resuming", payload: { process: "p", fromStatus: "running" } } as const;
    const { type, nodeId, payload } = question;
    return continueRecord(record, 3, [7, resuming], [7, { type, nodeId, payload } as WorkflowDraft]);
  };

  it("asks behind its first event, as it did", () => {
    const record = createFork();
    const { events, then } = replay(record, { derivesFrom: 3, livesFrom: 3 });
    expect([events, then]).toEqual([copyEvents(record.events.slice(1)), { kind: "over" }]);
  });

  it("hands out both events or none", () => {
    const { events, then } = replay(createFork(), { derivesFrom: 3, livesFrom: 3, count: 4, isAll: false });
    expect([events.length, then]).toEqual([2, { kind: "more" }]);
  });

  it("asks nothing where it did not go on as a fork there", () => {
    expect(replay(createFork(), { derivesFrom: 3 }).then).toMatchObject({
      kind: "diverged",
      divergence: { kind: "missing", point: "interrupt.requested of g follows from nothing" },
    });
  });

  it("derives nothing else where its own history begins with another event", () => {
    const record = continueRecord(recordRun(GATED), 4, [
      7,
      { type: "run.paused", payload: { drainPolicy: "immediate" } },
    ]);
    const failed = continueRecord(recordRun(GATED), 4, [
      7,
      { type: "run.completed", payload: { outputs: {} } },
    ]);
    expect(replay(record, { livesFrom: 4 }).then).toEqual({ kind: "over" });
    expect(replay(failed, { livesFrom: 4 }).then.kind).toBe("diverged");
  });
});

describe("what is copied of a record", () => {
  const setVariable = (name: string): WorkflowDraft => ({
    type: "variable.changed",
    payload: { name, next: 1 },
  });
  const SECONDS = [1, 1, 2, 2, 3];
  const record = (): RecordedRun => {
    const moments = SECONDS.map((seconds, index) => [seconds, setVariable(`v${index}`)] as const);
    return continueRecord(recordRun({ nodes: [MODEL] }), 1, ...moments);
  };
  const copy = (derivesFrom: number, isAll: boolean, count = SECONDS.length) => {
    const { events } = record();
    return copyRecorded(beginReplay(record()), derivesFrom, { events: events.slice(1, count + 1), isAll });
  };

  it.each([
    { title: "all of a page of a branch", derivesFrom: Infinity, isAll: false, count: 5 },
    { title: "all of the last page of a branch", derivesFrom: Infinity, isAll: true, count: 5 },
    { title: "all of the last page where it ends there", derivesFrom: 6, isAll: true, count: 5 },
    { title: "all of the last page where deriving begins behind it", derivesFrom: 9, isAll: true, count: 5 },
    { title: "the last page but for its last moment", derivesFrom: 5, isAll: true, count: 4 },
    { title: "a page up to the moment that is derived", derivesFrom: 3, isAll: false, count: 2 },
    { title: "a page up to the moment half of which is derived", derivesFrom: 4, isAll: false, count: 2 },
    {
      title: "a page but for its last moment, of which more may follow",
      derivesFrom: 6,
      isAll: false,
      count: 4,
    },
    { title: "a page but for its last moment, well before deriving", derivesFrom: 9, isAll: false, count: 4 },
  ])("is $title", ({ derivesFrom, isAll, count }) => {
    const part = copy(derivesFrom, isAll);
    expect(part?.events).toEqual(copyEvents(record().events.slice(1, count + 1)));
    expect(part?.then).toEqual({ kind: isAll && count === SECONDS.length ? "over" : "more" });
    expect([part?.run.runId, part?.run.nextSequence]).toEqual([FORK, count + 1]);
    expect([...(part?.run.variables.keys() ?? [])]).toHaveLength(count);
  });

  it.each<[string, number, boolean, number]>([
    ["where deriving begins in the first moment", 2, false, 5],
    ["where deriving begins with the first event", 1, false, 5],
    ["where deriving began before it", 0, false, 5],
    ["where deriving began before it, of the last page", 0, true, 5],
    ["of a page that is one moment", 9, false, 2],
    ["of an empty page", 9, false, 0],
    ["of an empty page of a branch", Infinity, true, 0],
  ])("is nothing %s", (_, derivesFrom, isAll, count) => {
    expect(copy(derivesFrom, isAll, count)).toBeUndefined();
  });
});
