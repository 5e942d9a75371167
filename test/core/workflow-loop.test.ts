import { describe, expect, test } from "vitest";
import {
  edge,
  nextWorker,
  node,
  supervised,
  TERMINATE,
  worker,
  workflow,
} from "../support/workflow-definitions.ts";
import { workflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const HARVEST = { outputMapping: { got: "result" } };
const failing = workflow("failing", {
  nodes: [node("boom", "core.fail", { code: "broken", message: "as asked" })],
  variables: { result: "never to be harvested" },
});

function phases(scene: WorkflowScene, runId: string): string[] {
  return scene
    .payloads(runId, "core.workflowChain.event")
    .map(({ phase, workerId }) => `${workerId} ${phase}`);
}

describe("the loop of supervisor and dispatch", () => {
  test("a worker goes through the four chained phases, each caused by the one before it", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a"), TERMINATE], { dispatch: HARVEST }),
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const events = scene.events(runId);
    const chained = events.filter(({ type }) => type === "core.workflowChain.event");
    const [decided] = events.filter(({ type }) => type === "runOrchestrator.decided");
    expect(phases(scene, runId)).toEqual([
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
      "worker-a output.harvested",
    ]);
    expect(chained.map(({ causationId }) => causationId)).toEqual([
      decided?.eventId,
      ...chained.slice(0, 3).map(({ eventId }) => eventId),
    ]);
    expect(scene.payloads(runId, "core.workflowChain.event").at(-1)?.harvestedKeys).toEqual(["got"]);
    expect((await scene.snapshot(runId))["variables"]).toEqual({ got: "worker-a did it" });
  });

  test("the log of a run with one worker is exactly this", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a"), TERMINATE], { dispatch: HARVEST }),
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    expect(scene.types(runId)).toEqual([
      "run.started",
      "node.started",
      "runOrchestrator.decided",
      "node.completed",
      "node.started",
      "core.workflowChain.event",
      "node.dispatched",
      "core.workflowChain.event",
      "core.workflowChain.event",
      "variable.changed",
      "core.workflowChain.event",
      "node.completed",
      "node.started",
      "node.completed",
      "runOrchestrator.decided",
      "run.completed",
    ]);
  });

  test("the child's id is absent while there is no child, and there from dispatch.succeeded on", async () => {
    const scene = workflowScene({
      definitions: [supervised("loop", [nextWorker("worker-a"), TERMINATE]), worker("worker-a")],
    });
    const runId = await scene.run("loop");
    const [began, ...later] = scene.payloads(runId, "core.workflowChain.event");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect(began).not.toHaveProperty("childRunId");
    expect(later.map(({ childRunId }) => childRunId)).toEqual([
      dispatched?.childRunId,
      dispatched?.childRunId,
    ]);
  });

  test("without a mapping nothing is harvested, and no event says so", async () => {
    const scene = workflowScene({
      definitions: [supervised("loop", [nextWorker("worker-a"), TERMINATE]), worker("worker-a")],
    });
    const runId = await scene.run("loop");
    expect(phases(scene, runId)).toEqual([
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
    ]);
  });

  test("a failed child hands nothing over and returns to the supervisor, which goes on", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("failing"), nextWorker("worker-a"), TERMINATE], { dispatch: HARVEST }),
        failing,
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    expect(phases(scene, runId)).toEqual([
      "failing dispatch.began",
      "failing dispatch.succeeded",
      "failing child.failed",
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
      "worker-a output.harvested",
    ]);
    const failed = scene
      .payloads(runId, "core.workflowChain.event")
      .find(({ phase }) => phase === "child.failed");
    expect(failed?.error).toEqual({ code: "broken", message: "as asked" });
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "variable.changed")).toHaveLength(1);
  });

  test("a cancelled child hands nothing over and returns to the supervisor", async () => {
    const slow = workflow("slow", {
      nodes: [node("wait", "core.delay", { delayMs: 60_000 })],
      variables: { result: "never to be harvested" },
    });
    const scene = workflowScene({
      definitions: [supervised("loop", [nextWorker("slow"), TERMINATE], { dispatch: HARVEST }), slow],
    });
    const runId = await scene.run("loop");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect(phases(scene, runId).at(-1)).toBe("slow dispatch.succeeded");
    await scene.host.cancel({ tenant: "acme", principal: "alice" }, dispatched?.childRunId ?? "", {});
    await scene.settle();
    expect(phases(scene, runId).at(-1)).toBe("slow child.cancelled");
    expect(scene.types(runId)).not.toContain("variable.changed");
    expect(await scene.status(runId)).toBe("completed");
  });

  test("a worker that cannot be created is dispatch.failed, without a child", async () => {
    const scene = workflowScene({ definitions: [supervised("loop", [nextWorker("nobody"), TERMINATE])] });
    const runId = await scene.run("loop");
    expect(phases(scene, runId)).toEqual(["nobody dispatch.began", "nobody dispatch.failed"]);
    const [began, failed] = scene.events(runId).filter(({ type }) => type === "core.workflowChain.event");
    expect(failed?.causationId).toBe(began?.eventId);
    expect(failed?.payload).toMatchObject({ error: { code: "unknown_child_workflow" } });
    expect(failed?.payload).not.toHaveProperty("childRunId");
    expect(scene.types(runId)).not.toContain("node.dispatched");
    expect(await scene.status(runId)).toBe("completed");
  });

  test("workers of one decision follow one another, and a later one sees what an earlier one left", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a", "worker-b"), TERMINATE], {
          dispatch: { outputMapping: { got: "result" }, inputMapping: { given: "got" } },
        }),
        worker("worker-a"),
        worker("worker-b", {}),
      ],
    });
    const runId = await scene.run("loop");
    const [first, second] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(first?.childRunId ?? ""))["inputs"]).toEqual({});
    expect((await scene.snapshot(second?.childRunId ?? ""))["inputs"]).toEqual({ given: "worker-a did it" });
  });

  test("a worker's own mapping takes the place of the common one, for inputs and outputs", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a", "worker-b"), TERMINATE], {
          dispatch: {
            inputMapping: { common: "seed" },
            outputMapping: { common: "result" },
            perWorkerInputMappings: { "worker-b": { own: "seed" } },
            perWorkerOutputMappings: { "worker-b": { own: "result" } },
          },
          variables: { seed: "s" },
        }),
        worker("worker-a"),
        worker("worker-b"),
      ],
    });
    const runId = await scene.run("loop");
    const [first, second] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(first?.childRunId ?? ""))["inputs"]).toEqual({ common: "s" });
    expect((await scene.snapshot(second?.childRunId ?? ""))["inputs"]).toEqual({ own: "s" });
    expect((await scene.snapshot(runId))["variables"]).toEqual({
      seed: "s",
      common: "worker-a did it",
      own: "worker-b did it",
    });
  });

  test("what the parent has not set is absent in the child, never null", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a"), TERMINATE], {
          dispatch: { inputMapping: { a: "unset", b: "undeclared" } },
          variables: { unset: undefined },
        }),
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(dispatched?.childRunId ?? ""))["inputs"]).toEqual({});
  });

  test("the same worker named twice is two runs", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a", "worker-a"), nextWorker("worker-a"), TERMINATE]),
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const children = scene.payloads(runId, "node.dispatched").map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(3);
  });

  test("the child knows its parent, the node over there, and its scope of memory", async () => {
    const scene = workflowScene({
      definitions: [supervised("loop", [nextWorker("worker-a"), TERMINATE]), worker("worker-a")],
    });
    const runId = await scene.run("loop", { scopeId: "project" });
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    const childRunId = dispatched?.childRunId ?? "";
    expect(await scene.snapshot(childRunId)).toMatchObject({ parentRunId: runId, parentNodeId: "dispatch" });
    expect(scene.payloads(childRunId, "run.started")[0]).toMatchObject({ memoryScope: "project", depth: 1 });
    const asked = await scene.host.ancestry({ tenant: "acme", principal: "alice" }, childRunId);
    expect(asked).toMatchObject({ value: { parent: { runId, hostId: "host-a", cause: "core.dispatch" } } });
  });
});

describe("the supervisor", () => {
  test("numbers its decisions from 1 with one agent for the whole run", async () => {
    const scene = workflowScene({
      definitions: [
        supervised("loop", [nextWorker("worker-a"), nextWorker("worker-a"), TERMINATE], {
          supervisor: { agentId: "planner" },
        }),
        worker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const decided = scene.payloads(runId, "runOrchestrator.decided");
    expect(decided.map(({ iteration, agentId }) => [iteration, agentId])).toEqual([
      [1, "planner"],
      [2, "planner"],
      [3, "planner"],
    ]);
    expect((await scene.snapshot(runId))["runOrchestrator"]).toEqual({ agentId: "planner" });
  });

  test("without a script is one worker and the end; an exhausted script is the end", async () => {
    const bare = workflow("bare", {
      nodes: [node("s", "core.orchestrator.supervisor"), node("d", "core.dispatch")],
      edges: [edge("s>d"), edge("d>s")],
    });
    const scene = workflowScene({
      definitions: [bare, supervised("short", [nextWorker("conformance-noop")]), worker("conformance-noop")],
    });
    for (const id of ["bare", "short"]) {
      const runId = await scene.run(id);
      const kinds = scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind);
      expect(kinds).toEqual(["next-worker", "terminate"]);
    }
  });

  test("nothing but the end follows terminate, and other work is told that it ends", async () => {
    const scene = workflowScene({
      definitions: [
        workflow("beside", {
          nodes: [
            node("wait", "core.delay", { delayMs: 60_000 }),
            node("s", "core.orchestrator.supervisor", { mockDispatchPlan: [TERMINATE] }),
            node("d", "core.dispatch"),
          ],
          edges: [edge("s>d"), edge("d>s")],
        }),
      ],
    });
    const runId = await scene.run("beside");
    const types = scene.types(runId);
    expect(types.slice(types.indexOf("runOrchestrator.decided"))).toEqual([
      "runOrchestrator.decided",
      "node.cancelled",
      "run.completed",
    ]);
  });

  test("ask-user is one question, whose answer the dispatch passes on", async () => {
    const scene = workflowScene({
      definitions: [supervised("ask", [{ kind: "ask-user", prompt: "Which colour?" }, TERMINATE])],
    });
    const runId = await scene.run("ask");
    expect(await scene.snapshot(runId)).toMatchObject({ status: "waiting-input", currentNodeId: "dispatch" });
    await scene.answer(runId, "dispatch", { answers: { q1: "blue" } });
    expect(await scene.status(runId)).toBe("completed");
    const outputs = scene
      .payloads(runId, "node.completed")
      .find(({ nodeId }) => nodeId === "dispatch")?.outputs;
    expect(outputs).toEqual({ answers: { q1: "blue" } });
  });

  test("a dispatch without any decision fails, and so does a fan-out that was refused", async () => {
    const scene = workflowScene({
      definitions: [
        workflow("alone", { nodes: [node("d", "core.dispatch")] }),
        supervised("wide", [nextWorker("a", "b")], { dispatch: { fanOutPolicy: "reject" } }),
      ],
    });
    for (const [id, code] of [
      ["alone", "no_pending_decision"],
      ["wide", "fan_out_unsupported"],
    ] as const) {
      const snapshot = await scene.snapshot(await scene.run(id));
      expect(snapshot).toMatchObject({ status: "failed", error: { code } });
    }
  });

  test("a live model is asked once a turn, and its decision is recorded before anything follows", async () => {
    const asked: string[] = [];
    const answers = [
      '```json\n{"kind":"next-worker","nextWorkerIds":["worker-a"]}\n```',
      '{"kind":"terminate"}',
    ];
    const scene = workflowScene({
      definitions: [
        workflow("live", {
          nodes: [
            node("s", "core.orchestrator.supervisor", { systemPrompt: "Plan.", workers: ["worker-a"] }),
            node("d", "core.dispatch"),
          ],
          edges: [edge("s>d"), edge("d>s")],
        }),
        worker("worker-a"),
      ],
      chat: {
        complete: ({ system = "" }) => {
          asked.push(system);
          const text = answers[asked.length - 1] ?? "";
          return Promise.resolve({
            kind: "answered",
            text,
            finishReason: "stop",
            model: "m",
            provider: "p",
            usage: {},
          });
        },
      },
    });
    const runId = await scene.run("live");
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain("Workers: worker-a");
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind)).toEqual([
      "next-worker",
      "terminate",
    ]);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("a model that refuses or answers with something else ends the run, without its text", async () => {
    for (const [answer, code] of [
      [{ text: "SECRET", refusal: "SECRET" }, "envelope_refused_by_provider"],
      [{ text: "SECRET, I would say worker-a" }, "decision_malformed"],
    ] as const) {
      const scene = workflowScene({
        definitions: [
          supervised("live", [], { supervisor: { prompt: "Plan.", mockDispatchPlan: undefined } }),
        ],
        chat: {
          complete: () =>
            Promise.resolve({
              kind: "answered",
              finishReason: "stop",
              model: "m",
              provider: "p",
              usage: {},
              ...answer,
            }),
        },
      });
      const snapshot = await scene.snapshot(await scene.run("live"));
      expect(snapshot).toMatchObject({ status: "failed", error: { code } });
      expect(JSON.stringify(snapshot)).not.toContain("SECRET");
    }
  });
});
