/** Owns: how far a run goes in one call, what is under way and due after it, and what the log holds of drafts that it cannot. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  advanceRun,
  createRunEvent,
  applyDrafts,
  appendNextStep,
} from "../../src/agents/coordination/workflow/advance-run.ts";
import type { MemoryNote } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { chain, createNode } from "../support/workflow-definitions.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import {
  actingType,
  assign,
  createAdvance,
  createContext,
  createEffect,
  createPlayed,
  createStepping,
} from "./workflow-advance-scene.ts";
import {
  createAsking,
  createNodeRun,
  createOrigin,
  createRun,
  LATER,
  NOW,
  RUN,
  withNodes,
} from "./workflow-view-scene.ts";

const CANCELLED: WorkflowDraft = { type: "run.cancelled", payload: { reason: "enough" } };
const DEADLINE = NOW + SETTINGS.runDurationMsMax + 1;
const LINE = { nodes: [createNode("a"), createNode("b")], edges: chain("a>b") };
const ONE = { nodes: [createNode("a")] };
const STEPPING = { nodes: [createNode("a", "test.step")] };
/** No name is empty: a log with this draft could not be read again. */
const UNFIT = assign("");
const UNFIT_MESSAGE = /^variable\.changed cannot be recorded: ./;
const NOTE: MemoryNote = { scope: "w", id: "note-1", content: "é", tags: [] };

const createRunning = () => createRun({ nextSequence: 7, ...withNodes(createNodeRun("a", "running")) });

describe("a run that is advanced", () => {
  it("goes on to its end where it needs nobody", () => {
    const progress = advanceRun(createRun(), createContext(LINE));
    expect(progress.events.map(({ type, nodeId }) => [type, nodeId])).toEqual([
      ["node.started", "a"],
      ["node.completed", "a"],
      ["node.started", "b"],
      ["node.completed", "b"],
      ["run.completed", undefined],
    ]);
    expect(progress.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    expect(progress.run.phase).toEqual({ kind: "completed", atMs: NOW, outputs: {} });
    expect(progress.memory).toEqual([]);
    expect(progress.effects).toEqual([]);
    expect(progress).not.toHaveProperty("wakeAtMs");
  });

  it("takes the drafts first, and then does what follows from them", () => {
    const context = createContext({ nodes: [createNode("a", "core.delay", { delayMs: 60_000 })] });
    const completion: WorkflowDraft = { type: "node.completed", nodeId: "a", payload: { nodeId: "a" } };
    const { events } = advanceRun(createRunning(), context, [completion]);
    expect(events.map(({ type, sequence }) => [type, sequence])).toEqual([
      ["node.completed", 7],
      ["run.completed", 8],
    ]);
  });

  it("takes nothing behind its end", () => {
    const { events, run } = advanceRun(createRun(), createContext(LINE), [CANCELLED, assign("v")]);
    expect(events).toMatchObject([{ type: "run.cancelled" }]);
    expect(run.phase.kind).toBe("cancelled");
  });

  it("is left alone while it still takes events from its source", () => {
    const run = createRun({ origin: createOrigin(3) });
    const progress = advanceRun(run, createContext(LINE), [assign("v")]);
    expect(progress).toEqual({ run, events: [], memory: [], effects: [] });
  });

  it("does nothing while it is paused, and has nothing under way", () => {
    const run = createRun({
      phase: { kind: "paused", atMs: NOW },
      ...withNodes(createNodeRun("a", "running")),
    });
    const context = createContext(STEPPING, createPlayed({ "test.step": actingType }));
    expect(advanceRun(run, context)).toEqual({ run, events: [], memory: [], effects: [] });
    expect(appendNextStep(createAdvance(run, createContext(ONE)))).toBe(false);
  });

  it("does nothing once it has ended", () => {
    const ended = createRun({ phase: { kind: "cancelled", atMs: NOW } });
    const advance = createAdvance(ended, createContext(LINE));
    expect(appendNextStep(advance)).toBe(false);
    expect(advance.events).toEqual([]);
  });

  it("stops at 200 events, and is to be looked at again at once", () => {
    const ids = Array.from({ length: 120 }, (_, index) => `n${index}`);
    const context = createContext({ nodes: ids.map((id) => createNode(id)), edges: chain(ids.join(">")) });
    const first = advanceRun(createRun(), context);
    expect(first.events).toHaveLength(200);
    expect(first.wakeAtMs).toBe(NOW);
    const second = advanceRun(first.run, context);
    expect(second.events).toHaveLength(41);
    expect(second.events.at(-1)?.type).toBe("run.completed");
  });
});

describe("what is outstanding", () => {
  const ACTING = createPlayed({ "test.step": actingType });

  it("are the effects of the nodes at work, and the end of the run's time", () => {
    const completed = createNodeRun("a", "completed", { endedSequence: 2 });
    const running = createNodeRun("b", "running");
    const context = createContext(
      { nodes: [createNode("a", "test.step"), createNode("b", "test.step")] },
      ACTING,
    );
    const { events, effects, wakeAtMs } = advanceRun(createRun(withNodes(completed, running)), context);
    expect(events).toEqual([]);
    expect(effects).toEqual([createEffect({ nodeRun: running })]);
    expect(wakeAtMs).toBe(DEADLINE);
  });

  it("is the earliest of several times, and no effect of a node that waits", () => {
    const context = createContext({
      nodes: [
        createNode("a", "core.delay", { delayMs: 7_000 }),
        createNode("b", "core.delay", { delayMs: 5_000 }),
      ],
    });
    const { effects, wakeAtMs } = advanceRun(createRun(), context);
    expect(effects).toEqual([]);
    expect(wakeAtMs).toBe(NOW + 5_000);
  });

  it("is no time where only people can move the run", () => {
    const run = createRun({ waitingSinceMs: NOW, ...withNodes(createAsking("a")) });
    const progress = advanceRun(run, createContext({ nodes: [createNode("a", "core.approvalGate")] }));
    expect(progress.events).toEqual([]);
    expect(progress).not.toHaveProperty("wakeAtMs");
  });

  it("is nothing of a node that the workflow does not have", () => {
    const ghost = createNodeRun("ghost", "running");
    const run = createRun(withNodes(createNodeRun("a", "completed", { endedSequence: 2 }), ghost));
    const { events, effects, wakeAtMs } = advanceRun(run, createContext(ONE));
    expect(events).toEqual([]);
    expect(effects).toEqual([]);
    expect(wakeAtMs).toBe(DEADLINE);
  });
});

describe("drafts that are only recorded", () => {
  it("become the next events of the run, and nothing follows from them", () => {
    const { run, events } = applyDrafts(createRun(), createContext(LINE, SETTINGS, LATER), [
      assign("v"),
      assign("w"),
    ]);
    expect(events).toEqual([
      {
        eventId: createEventId(RUN, 1),
        runId: RUN,
        sequence: 1,
        timestamp: "2023-11-14T22:14:20.000Z",
        ...assign("v"),
      },
      expect.objectContaining({ sequence: 2, ...assign("w") }),
    ]);
    expect(run.variables.toObject()).toEqual({ v: 1, w: 1 });
    expect(run.nextSequence).toBe(3);
  });

  it("have the ids of the run in which they happen", () => {
    expect(createRunEvent(createRun({ nextSequence: 4 }), CANCELLED, NOW)).toEqual({
      eventId: createEventId(RUN, 4),
      runId: RUN,
      sequence: 4,
      timestamp: "2023-11-14T22:13:20.000Z",
      ...CANCELLED,
    });
  });
});

describe("a draft that the log cannot hold", () => {
  const recordUnfit = (draft: WorkflowDraft, run = createRunning()) =>
    applyDrafts(run, createContext(ONE), [assign("v"), draft]).events;

  it("is replaced by the failure of its node, with everything that was to be appended with it", () => {
    expect(recordUnfit(UNFIT)).toMatchObject([
      {
        type: "node.failed",
        nodeId: "a",
        payload: {
          error: { code: "value_not_recordable", message: expect.stringMatching(UNFIT_MESSAGE) as string },
        },
      },
    ]);
  });

  it.each([
    ["names no node", { type: "variable.changed", payload: { name: "" } }],
    ["is of a node that was not started", { ...UNFIT, nodeId: "b" }],
  ] as const)("ends the run and stops its nodes where it %s", (_case, draft) => {
    const message = expect.stringMatching(UNFIT_MESSAGE) as string;
    expect(recordUnfit(draft)).toMatchObject([
      { type: "node.cancelled", nodeId: "a", payload: { nodeId: "a", reason: message } },
      { type: "run.failed", payload: { error: { code: "value_not_recordable", message } } },
    ]);
  });

  it("ends the run where its node has ended already", () => {
    const run = createRun(withNodes(createNodeRun("a", "completed", { endedSequence: 2 })));
    expect(recordUnfit(UNFIT, run)).toMatchObject([{ type: "run.failed" }]);
  });

  it("keeps nothing in memory", () => {
    const settings = createStepping({ kind: "record", drafts: [UNFIT], memory: [NOTE] });
    const advance = createAdvance(createRunning(), createContext(STEPPING, settings));
    expect(appendNextStep(advance)).toBe(true);
    expect(advance.events).toMatchObject([{ type: "node.failed" }]);
    expect(advance.memory).toEqual([]);
  });
});

describe("a step that is compared with a record", () => {
  function compareStep(draft: WorkflowDraft, ...answers: readonly boolean[]) {
    const compared: (readonly WorkflowDraft[])[] = [];
    const compare = (drafts: readonly WorkflowDraft[]) => answers[compared.push(drafts) - 1] === true;
    const settings = createStepping({ kind: "record", drafts: [draft], memory: [NOTE] });
    const run = createRunning();
    const advance = createAdvance(run, createContext(STEPPING, settings), { compare });
    expect(appendNextStep(advance)).toBe(true);
    expect(advance.run).toBe(run);
    expect(advance.events).toEqual([]);
    return { compared, memory: advance.memory };
  }

  it("appends nothing, and is the record where the drafts are", () => {
    const { compared, memory } = compareStep(assign("v"), true);
    expect(compared).toEqual([[assign("v")]]);
    expect(memory).toHaveLength(1);
  });

  it("keeps nothing in memory where the record differs", () => {
    const { compared, memory } = compareStep(assign("v"), false);
    expect(compared).toEqual([[assign("v")]]);
    expect(memory).toEqual([]);
  });

  it("may be the record also by the failure in place of what the log could not hold", () => {
    const { compared } = compareStep(UNFIT, false, true);
    expect(compared).toMatchObject([[UNFIT], [{ type: "node.failed", nodeId: "a" }]]);
  });

  it("is compared with nothing where there is nothing to append", () => {
    const compared: (readonly WorkflowDraft[])[] = [];
    const compare = (drafts: readonly WorkflowDraft[]) => compared.push(drafts) > 0;
    const context = createContext(STEPPING, createStepping({ kind: "wait" }));
    expect(appendNextStep(createAdvance(createRunning(), context, { compare }))).toBe(false);
    expect(compared).toEqual([]);
  });
});
