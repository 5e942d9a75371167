import { describe, expect, test } from "vitest";
import { createNode, createWorker, createWorkflow } from "../support/workflow-definitions.ts";
import { SAID, createWorkflowScene } from "../support/workflow-scene.ts";

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
