/** Owns: that an answer to a question answers no other one that the same node asks later. */
import { describe, expect, test } from "vitest";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  BOB,
  codeOf,
  createWorkflowScene,
  MALLORY,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

/** Opens a run that asks again, as `gate~2`, once its first question is answered with a rejection. */
async function askOnce(): Promise<{ readonly scene: WorkflowScene; readonly runId: string }> {
  const resumeSchema = { type: "object", required: ["n"] };
  const nodes = [
    createNode("gate", "core.interrupt", { kind: "approval", resumeSchema }),
    createNode("revise"),
  ];
  const edges = [createEdge("gate>revise", { triggerRule: "any_failed" }), createEdge("revise>gate")];
  const scene = createWorkflowScene({ definitions: [createWorkflow("w", { nodes, edges })] });
  return { scene, runId: await scene.run("w") };
}

async function askTwice(): ReturnType<typeof askOnce> {
  const { scene, runId } = await askOnce();
  await scene.answer(runId, "gate", { action: "reject", n: 1 });
  expect(await scene.snapshot(runId)).toMatchObject({ interrupt: { interruptId: "gate~2" } });
  return { scene, runId };
}

describe("an answer that names its question", () => {
  test.each([
    ["fits the next one", { action: "accept", n: 1 }],
    ["does not fit the next one", { action: "accept" }],
  ])("is refused where that one is settled, also where it %s", async (_, value) => {
    const { scene, runId } = await askTwice();
    const question = { nodeId: "gate", interruptId: "gate~1" };
    const refused = await scene.host.resolve(ALICE, runId, question, value);
    expect(codeOf(refused)).toBe("interrupt_already_resolved");
    expect(refused).not.toHaveProperty("resolved");
    expect(await scene.status(runId)).toBe("waiting-approval");
  });

  test("is told that it counted where it settled that one, also when the node asks again", async () => {
    const { scene, runId } = await askTwice();
    const question = { nodeId: "gate", interruptId: "gate~1" };
    const value = { action: "reject", n: 1 };
    const again = await scene.host.resolve(ALICE, runId, question, value);
    expect(codeOf(again)).toBe("interrupt_already_resolved");
    const resolved = { runId, nodeId: "gate", interruptId: "gate~1", status: "waiting-approval" };
    expect(again).toMatchObject({ resolved });
    expect(await scene.host.resolve(BOB, runId, question, value)).not.toHaveProperty("resolved");
    expect(scene.payloads(runId, "interrupt.resolved")).toHaveLength(1);
  });

  test("can be shown its question while that one is open, without a token, and to its tenant only", async () => {
    const { scene, runId } = await askTwice();
    const read = (interruptId: string, nodeId = "gate", caller = ALICE) =>
      scene.host.question(caller, runId, { nodeId, interruptId });
    const shown = await read("gate~2");
    expect(shown).toMatchObject({ kind: "done", value: { runId, nodeId: "gate", interruptId: "gate~2" } });
    expect(shown).not.toHaveProperty("value.interruptToken");
    expect(await scene.host.question(ALICE, runId, { nodeId: "gate" })).toEqual(shown);
    expect(codeOf(await read("gate~1"))).toBe("interrupt_already_resolved");
    expect(codeOf(await read("gate~2", "revise"))).toBe("interrupt_not_found");
    expect(codeOf(await read("gate~2", "gate", MALLORY))).toBe("not_found");
  });

  test("counts where that one is open", async () => {
    const { scene, runId } = await askTwice();
    const question = { nodeId: "gate", interruptId: "gate~2" };
    expect(codeOf(await scene.host.resolve(ALICE, runId, question, { action: "accept", n: 1 }))).toBe("done");
  });
});

describe("an answer that names no question", () => {
  test("is refused where another one settled the question that was open when it came", async () => {
    const { scene, runId } = await askOnce();
    const [first, second] = await Promise.all([
      scene.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "reject", n: 1 }),
      scene.host.resolve(BOB, runId, { nodeId: "gate" }, { action: "accept", n: 1 }),
    ]);
    expect([codeOf(first), codeOf(second)]).toEqual(["done", "interrupt_already_resolved"]);
    expect(await scene.snapshot(runId)).toMatchObject({ interrupt: { interruptId: "gate~2" } });
  });
});
