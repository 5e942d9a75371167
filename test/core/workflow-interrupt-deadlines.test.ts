/** Questions whose time is over, where no timer has told of it, and the time that parents of waiting children work. */
import { describe, expect, test } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  codeOf,
  createWorkflowScene,
  valueOf,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const GATED = createWorkflow("w", {
  nodes: [createNode("gate", "core.approvalGate", { timeoutMs: 60_000 })],
});
const MINUTE_MS = 60_000;

async function expectTimeout(scene: WorkflowScene, runId: string): Promise<void> {
  expect(await scene.snapshot(runId)).toMatchObject({
    status: "failed",
    error: { code: "approval_timeout" },
  });
}

describe("an answer to a question whose time is over", () => {
  test("is refused where the timer did not fire, and the run ends by the timeout", async () => {
    const scene = createWorkflowScene({ definitions: [GATED] });
    const runId = await scene.run("w");
    scene.clock.jump(scene.clock.now() + 60 * MINUTE_MS);
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }))).toBe(
      "interrupt_already_resolved",
    );
    await expectTimeout(scene, runId);
    expect(scene.payloads(runId, "interrupt.resolved")).toMatchObject([
      { resumeValue: { action: "timeout", decision: "rejected" } },
    ]);
  });

  test.each([
    [59_999, "done"],
    [60_000, "interrupt_already_resolved"],
  ])("counts up to the last millisecond: after %d ms it is %s", async (afterMs, code) => {
    const scene = createWorkflowScene({ definitions: [GATED] });
    const runId = await scene.run("w");
    scene.clock.jump(scene.clock.now() + afterMs);
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }))).toBe(code);
  });

  test("is refused by a process that does not drive the run", async () => {
    const alive = new Set([1, 2]);
    const first = createWorkflowScene({ definitions: [GATED], pid: 1, alive });
    const runId = await first.run("w");
    const { ledger, clock } = first;
    const second = createWorkflowScene({ definitions: [GATED], ledger, clock, pid: 2, alive });
    clock.jump(clock.now() + 60_000);
    const answered = await second.answer(runId, "gate", { action: "accept" });
    expect(codeOf(answered)).toBe("interrupt_already_resolved");
    expect(second.payloads(runId, "interrupt.resolved")).toEqual([]);
    await clock.advance(1);
    await expectTimeout(first, runId);
  });

  test("counts at a fork, whose time begins with its first own event", async () => {
    const scene = createWorkflowScene({ definitions: [GATED] });
    const source = await scene.run("w");
    const fromSeq = scene.events(source).length;
    await scene.answer(source, "gate", { action: "accept" });
    scene.clock.jump(scene.clock.now() + 60 * MINUTE_MS);
    const { runId } = valueOf(await scene.host.fork(ALICE, { sourceRunId: source, mode: "branch", fromSeq }));
    await scene.settle();
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }))).toBe("done");
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("the time of a parent", () => {
  const CHILD = createWorkflow("child", { nodes: [createNode("gate", "core.approvalGate")] });
  const createParent = (config: Readonly<Record<string, unknown>>, others: readonly string[] = []) =>
    createWorkflow("parent", {
      nodes: [
        createNode("sub", "core.subWorkflow", { workflowId: "child", ...config }),
        ...others.map((id) => createNode(id, "core.delay", { delayMs: 20 * MINUTE_MS })),
      ],
    });

  async function openScene(parent: ReturnType<typeof createParent>) {
    const scene = createWorkflowScene({ definitions: [parent, CHILD] });
    const runId = await scene.run("parent");
    await scene.clock.advance(11 * MINUTE_MS);
    return { scene, runId };
  }

  test("does not run out while its child waits for people", async () => {
    const { scene, runId } = await openScene(createParent({}));
    const { childRunId = "" } = scene.payloads(runId, "node.dispatched")[0] ?? {};
    expect(await scene.status(childRunId)).toBe("waiting-approval");
    expect(await scene.status(runId)).toBe("waiting-approval");
    await scene.answer(childRunId, "gate", { action: "accept" });
    expect(await scene.status(runId)).toBe("completed");
  });

  test("runs out where another node of it works meanwhile", async () => {
    const { scene, runId } = await openScene(createParent({}, ["works"]));
    expect(await scene.snapshot(runId)).toMatchObject({ status: "failed", error: { code: "run_timeout" } });
  });
});
