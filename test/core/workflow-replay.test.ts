import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { advanceRun } from "../../src/agents/coordination/workflow/advance-run.ts";
import {
  chain,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import {
  PLAY_SETTINGS,
  playOut,
  supervisedWorkflows,
  createWorkflows,
} from "../support/workflow-arbitraries.ts";
import { FORK, originOf, readBack, replayIn } from "../support/replay-play.ts";

const picks = fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 30 });
const made = fc.oneof(
  createWorkflows({ loops: false }),
  createWorkflows({ loops: true }),
  supervisedWorkflows,
);

describe("a replay of any run", () => {
  it("is that run again, from every event on and in pages of any size", () => {
    fc.assert(
      fc.property(made, picks, fc.integer({ min: 1, max: 40 }), fc.nat(), (definition, chosen, page, at) => {
        const { graph, events, run } = playOut(definition, chosen);
        const recorded = readBack(events);
        for (const fromSeq of [0, at % (recorded.length + 1)]) {
          const replay = replayIn(recorded, { graph, settings: PLAY_SETTINGS, fromSeq, page });
          expect(replay.then).toEqual({ kind: "over" });
          expect(replay.events).toEqual(recorded.map((event) => ({ ...event, runId: FORK })));
          expect(replay.run.phase).toEqual(run.phase);
        }
      }),
      { numRuns: 400 },
    );
  });
});

const LINE = createWorkflow("line", {
  nodes: [
    createNode("a"),
    createNode("b", "core.identity"),
    createNode("c", "core.delay", { delayMs: 5 }),
    createNode("d", "core.fail"),
  ],
  edges: chain("a>b>c>d"),
});
const MODEL = createWorkflow("model", {
  nodes: [createNode("a"), createNode("m", "core.ai.callPrompt", { prompt: "?" })],
  edges: chain("a>m"),
});

function recordOf(definition: typeof LINE) {
  const { graph, events } = playOut(definition, [0]);
  return { graph, recorded: readBack(events) };
}

/** In the places of a log, whatever they were before. */
function numberEvents(events: readonly WorkflowEvent[]): WorkflowEvent[] {
  return events.map((event, sequence) => ({ ...event, sequence }));
}

describe("a record that does not follow from its workflow", () => {
  const { graph, recorded } = recordOf(LINE);
  const findEventIndex = (type: string, nodeId: string): number =>
    recorded.findIndex((event) => event.type === type && event.nodeId === nodeId);
  const started = findEventIndex("node.started", "b");
  const completed = findEventIndex("node.completed", "b");
  const changePayload = (index: number, payload: object): WorkflowEvent[] =>
    recorded.map((event, place) =>
      place === index ? ({ ...event, payload: { ...event.payload, ...payload } } as WorkflowEvent) : event,
    );
  const replay = (events: readonly WorkflowEvent[]) => replayIn(events, { graph, settings: PLAY_SETTINGS });

  it.each<[string, readonly WorkflowEvent[], object]>([
    ["another output", changePayload(completed, { outputs: { x: 1 } }), { kind: "output", at: completed }],
    [
      "another time that a node took",
      changePayload(completed, { durationMs: 9 }),
      { kind: "output", at: completed },
    ],
    ["an event less", numberEvents(recorded.toSpliced(started, 2)), { kind: "type-mismatch", at: started }],
    [
      "an event more",
      numberEvents(recorded.toSpliced(started, 0, ...recorded.slice(started, started + 1))),
      { kind: "missing", at: started + 1 },
    ],
    [
      "two events in another order",
      numberEvents([
        ...recorded.slice(0, started),
        recorded[completed]!,
        recorded[started]!,
        ...recorded.slice(completed + 1),
      ]),
      { kind: "missing", at: started },
    ],
    [
      "an event of another node",
      recorded.map((event, index): WorkflowEvent => (index === started ? { ...event, nodeId: "c" } : event)),
      { kind: "type-mismatch", at: started },
    ],
    [
      "an event that comes too early",
      recorded.map((event) => ({ ...event, timestamp: recorded[0]!.timestamp })),
      { kind: "missing", at: findEventIndex("node.completed", "c") },
    ],
  ])("with %s is told by what differs and where, and nothing of it is taken", (_, events, expected) => {
    const { then, run } = replay(events);
    if (then.kind !== "diverged") throw new Error(then.kind);
    const { kind, event } = then.divergence;
    expect({ kind, at: event.sequence }).toEqual(expected);
    expect(run.nextSequence).toBe(event.sequence);
  });

  it("is not told by the values in it", () => {
    const { then } = replay(changePayload(completed, { outputs: { secret: "what-nobody-may-read" } }));
    if (then.kind !== "diverged") throw new Error(then.kind);
    expect(then.divergence.point).toBe("node.completed of b: payload.outputs.secret");
  });

  it("is told by an event with another cause", () => {
    const plan = [sendNextWorker("a"), TERMINATE];
    const loop = recordOf(createSupervised("made-up", plan));
    const began = loop.recorded.findIndex(
      ({ payload }) => "phase" in payload && payload.phase === "dispatch.began",
    );
    const events = loop.recorded.map((event, index): WorkflowEvent =>
      index === began ? { ...event, causationId: recorded[0]!.eventId } : event,
    );
    const { then } = replayIn(events, { graph: loop.graph, settings: PLAY_SETTINGS });
    expect(then).toMatchObject({
      kind: "diverged",
      divergence: {
        kind: "output",
        event: { sequence: began },
        point: "core.workflowChain.event of dispatch: its cause",
      },
    });
  });

  it("is taken as it is before the place that it is derived from", () => {
    const events = changePayload(completed, { outputs: { x: 1 } });
    const { then, run } = replayIn(events, { graph, settings: PLAY_SETTINGS, fromSeq: completed + 1 });
    expect([then.kind, run.nextSequence]).toEqual(["over", recorded.length]);
  });
});

describe("what came of asking a model", () => {
  it("is taken as it was recorded when the model was asked again, and it is asked once", () => {
    const { graph, recorded } = recordOf(MODEL);
    const { then, requests } = replayIn(recorded, { graph, settings: PLAY_SETTINGS, page: 2 });
    expect([then.kind, requests]).toEqual(["over", ["m:1:ask"]]);
  });

  it("is taken as it was recorded before the place that is derived from: nobody is asked", () => {
    const { graph, recorded } = recordOf(MODEL);
    const fromSeq = recorded.length;
    const { then, requests } = replayIn(recorded, { graph, settings: PLAY_SETTINGS, fromSeq });
    expect([then.kind, requests]).toEqual(["over", []]);
  });
});

describe("a fork that still takes events", () => {
  it("plans nothing", () => {
    const { graph, recorded } = recordOf(LINE);
    const origin = originOf(recorded, { mode: "branch", fromSeq: 4, until: 4 });
    const run = foldWorkflow(
      recorded.slice(0, 3).map((event) => ({ ...event, runId: FORK })),
      origin,
    );
    if (!run) throw new Error("there is no run");
    const planned = advanceRun(run, { graph, settings: PLAY_SETTINGS, now: run.changedAtMs });
    expect(planned).toEqual({ run, events: [], memory: [], effects: [] });
  });
});
