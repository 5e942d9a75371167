import { describe, expect, test } from "vitest";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createNode, createWorker, createWorkflow } from "../support/workflow-definitions.ts";
import { SAID, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const asking = createWorkflow("asking", {
  nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" })],
});

describe("an effect that fails without an answer", () => {
  test("is tried again a second later, and not over and over", async () => {
    let calls = 0;
    const scene = createWorkflowScene({
      definitions: [asking],
      chat: {
        complete: () => {
          calls += 1;
          return calls < 3 ? Promise.reject(new Error("broken")) : Promise.resolve(SAID);
        },
      },
    });
    const runId = await scene.run("asking");
    expect(calls).toBe(1);
    await scene.clock.advance(999);
    expect(calls).toBe(1);
    await scene.clock.advance(1_001);
    expect(calls).toBe(3);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("is not done a second time when its run is asked for again", async () => {
    let calls = 0;
    const scene = createWorkflowScene({
      definitions: [asking],
      chat: {
        complete: () => {
          calls += 1;
          return new Promise(() => undefined);
        },
      },
    });
    const runId = (await scene.run("asking")) as never;
    await scene.run("asking", { runId });
    expect(calls).toBe(1);
  });

  test("does not hold up another run", async () => {
    const scene = createWorkflowScene({
      definitions: [asking, createWorker("plain")],
      chat: { complete: () => Promise.reject(new Error("broken")) },
    });
    await scene.run("asking");
    expect(await scene.status(await scene.run("plain"))).toBe("completed");
  });
});

describe("a call that is made again after its process died", () => {
  const inputs = { message: { type: "variable", variableName: "word" } };
  /** A call with a variable that another node changes while the call is under way. */
  const createCalling = (typeId: string, config: Readonly<Record<string, unknown>>) =>
    createWorkflow("calling", {
      nodes: [
        createNode("call", typeId, config, { inputs }),
        createNode("child", "core.subWorkflow", { workflowId: "worker", outputMapping: { word: "result" } }),
      ],
      variables: { word: "before" },
    });

  test.each([
    ["a tool", "core.ai.callPrompt", { mcp: { tool: "echo", url: "http://127.0.0.1:1" } }],
    ["another agent", "core.a2a.invoke", { url: "http://127.0.0.1:1" }],
  ])(
    "asks %s the same as the log says, whatever its variables are by then",
    async (_callee, typeId, config) => {
      const calls: unknown[] = [];
      const world = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
      const start = (pid: number): WorkflowScene =>
        createWorkflowScene({
          ...world,
          pid,
          definitions: [createCalling(typeId, config), createWorker("worker")],
          tools: {
            callMcp: ({ args, callId }) => {
              calls.push([callId, args["message"]]);
              return new Promise(() => undefined);
            },
            sendA2a: ({ message, messageId }) => {
              calls.push([messageId, message]);
              return new Promise(() => undefined);
            },
          },
        });
      const first = start(1);
      const runId = await first.run("calling");
      first.die();
      const second = start(2);
      await second.host.start();
      await second.settle();
      expect((await second.snapshot(runId))["variables"]).toEqual({ word: "worker did it" });
      expect(calls).toEqual(Array(2).fill([`${runId}:call:1:call`, "before"]));
    },
  );
});
