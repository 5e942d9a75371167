import { describe, expect, test } from "vitest";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { createLiveModel, goOn, liveLoopOf, over } from "../support/stateful-scene.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

describe("the supervisor", () => {
  test("numbers its decisions from 1 with one agent for the whole run", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), sendNextWorker("worker-a"), TERMINATE], {
          supervisor: { agentId: "planner" },
        }),
        createWorker("worker-a"),
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

  test("that has a held decision carries out that one, and not that of another supervisor", async () => {
    const createDoubting = (id: string, worker: string) =>
      createNode(id, "core.orchestrator.supervisor", {
        mockDispatchPlan: [{ ...sendNextWorker(worker), confidence: 0.3 }],
      });
    const nodes = [createDoubting("one", "worker-a"), createDoubting("two", "worker-b")];
    const scene = createWorkflowScene({ definitions: [createWorkflow("two", { nodes })] });
    const runId = await scene.run("two");
    await scene.answer(runId, "one", { action: "accept" });
    await scene.answer(runId, "two", { action: "accept" });
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision)).toMatchObject([
      { nextWorkerIds: ["worker-a"] },
      { nextWorkerIds: ["worker-b"] },
    ]);
  });

  test("without a script is one worker and the end; an exhausted script is the end", async () => {
    const bare = createWorkflow("bare", {
      nodes: [createNode("s", "core.orchestrator.supervisor"), createNode("d", "core.dispatch")],
      edges: [createEdge("s>d"), createEdge("d>s")],
    });
    const scene = createWorkflowScene({
      definitions: [
        bare,
        createSupervised("short", [sendNextWorker("conformance-noop")]),
        createWorker("conformance-noop"),
      ],
    });
    for (const id of ["bare", "short"]) {
      const runId = await scene.run(id);
      const kinds = scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind);
      expect(kinds).toEqual(["next-worker", "terminate"]);
    }
  });

  test("nothing but the end follows terminate, and other work is told that it ends", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("beside", {
          nodes: [
            createNode("wait", "core.delay", { delayMs: 60_000 }),
            createNode("s", "core.orchestrator.supervisor", { mockDispatchPlan: [TERMINATE] }),
            createNode("d", "core.dispatch"),
          ],
          edges: [createEdge("s>d"), createEdge("d>s")],
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
    const scene = createWorkflowScene({
      definitions: [createSupervised("ask", [{ kind: "ask-user", prompt: "Which colour?" }, TERMINATE])],
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
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("alone", { nodes: [createNode("d", "core.dispatch")] }),
        createSupervised("wide", [sendNextWorker("a", "b")], { dispatch: { fanOutPolicy: "reject" } }),
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
    const requests: string[] = [];
    const answers = [
      '```json\n{"kind":"next-worker","nextWorkerIds":["worker-a"]}\n```',
      '{"kind":"terminate"}',
    ];
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("live", {
          nodes: [
            createNode("s", "core.orchestrator.supervisor", { systemPrompt: "Plan.", workers: ["worker-a"] }),
            createNode("d", "core.dispatch"),
          ],
          edges: [createEdge("s>d"), createEdge("d>s")],
        }),
        createWorker("worker-a"),
      ],
      chat: {
        complete: ({ system = "" }) => {
          requests.push(system);
          const text = answers[requests.length - 1] ?? "";
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
    expect(requests).toHaveLength(2);
    expect(requests[0]).toContain("Workers: worker-a");
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind)).toEqual([
      "next-worker",
      "terminate",
    ]);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("is told how each worker of its newest decision ended, and of no others", async () => {
    const model = createLiveModel();
    const scene = createWorkflowScene({
      chat: model,
      definitions: [
        liveLoopOf("loop"),
        createWorker("one"),
        createWorkflow("two", { nodes: [createNode("work", "core.fail")] }),
        createWorker("three"),
      ],
    });
    const runId = await scene.run("loop");
    await model.say({ kind: "next-worker", nextWorkerIds: ["one", "two", "nowhere", "three"] });
    expect(model.told(1).workers).toEqual([
      { worker: "one", status: "completed" },
      { worker: "two", status: "failed" },
      { worker: "nowhere", status: "failed" },
      { worker: "three", status: "completed" },
    ]);
    await model.say(goOn("two"));
    expect(model.told(2).workers).toEqual([{ worker: "two", status: "failed" }]);
    await model.say(over);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("a model that refuses or answers with something else ends the run, without its text", async () => {
    for (const [answer, code] of [
      [{ text: "SECRET", refusal: "SECRET" }, "envelope_refused_by_provider"],
      [{ text: "SECRET, I would say worker-a" }, "decision_malformed"],
    ] as const) {
      const scene = createWorkflowScene({
        definitions: [
          createSupervised("live", [], { supervisor: { prompt: "Plan.", mockDispatchPlan: undefined } }),
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
