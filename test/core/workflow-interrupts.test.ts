import { describe, expect, test } from "vitest";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  BOB,
  codeOf,
  MALLORY,
  valueOf,
  createWorkflowScene,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

type Config = Readonly<Record<string, unknown>>;

function openGate(config: Config = {}, typeId = "core.approvalGate"): WorkflowScene {
  const nodes = [createNode("gate", typeId, config), createNode("after")];
  const definitions = [createWorkflow("w", { nodes, edges: [createEdge("gate>after")] })];
  return createWorkflowScene({ definitions });
}

function outputsOf(scene: WorkflowScene, runId: string) {
  return scene.payloads(runId, "node.completed").find(({ nodeId }) => nodeId === "gate")?.outputs;
}

async function tokenOf(scene: WorkflowScene, runId: string): Promise<string> {
  const { interrupt } = await scene.snapshot(runId);
  return (interrupt as { readonly interruptToken?: string } | undefined)?.interruptToken ?? "";
}

describe("an approval", () => {
  test("is waited for at its node, and accepting lets the run go on", async () => {
    const scene = openGate({ title: "Ship it?" });
    const runId = await scene.run("w");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "waiting-approval",
      currentNodeId: "gate",
      interrupt: { kind: "approval", data: { title: "Ship it?", actions: ["accept", "reject"] } },
    });
    expect(await scene.answer(runId, "gate", { action: "accept" })).toMatchObject({
      value: { nodeId: "gate" },
    });
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "interrupt.resolved")[0]).toMatchObject({
      kind: "approval",
      action: "accept",
      resolvedBy: "alice",
    });
  });

  test.each([
    [{ action: "reject" }, "approval_rejected"],
    [{ decision: "rejected" }, "approval_rejected"],
  ])("that is answered with %o fails the run, retries or not", async (answer, code) => {
    const scene = openGate();
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", answer);
    expect(await scene.snapshot(runId)).toMatchObject({ status: "failed", error: { code } });
  });

  test.each([
    [{ action: "maybe" }, "validation_error"],
    [{ action: "refine" }, "validation_error"],
    [{ action: "refine", refineFeedback: "all of it" }, "validation_error"],
    [{ action: "edit-accept" }, "validation_error"],
    ["accept", "validation_error"],
    [null, "validation_error"],
    [[{ action: "accept" }], "validation_error"],
  ])("is not answered by %o", async (answer, code) => {
    const scene = openGate({ actions: ["accept", "reject", "refine", "edit-accept"] });
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", answer))).toBe(code);
    expect(await scene.status(runId)).toBe("waiting-approval");
  });

  test("does not take an action that the gate does not offer", async () => {
    const scene = openGate({ actions: ["accept"] });
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", { action: "reject" }))).toBe("validation_error");
  });

  test("hands on what is to be refined, and what was edited", async () => {
    const scene = openGate({ actions: ["accept", "refine", "edit-accept"] });
    const refined = await scene.run("w");
    const refineFeedback = { scope: "whole", text: "shorter" };
    await scene.answer(refined, "gate", { action: "refine", refineFeedback });
    expect(outputsOf(scene, refined)).toMatchObject({ action: "refine", approved: false, refineFeedback });
    expect(scene.payloads(refined, "interrupt.resolved")[0]).toMatchObject({
      action: "refine",
      refineFeedback,
    });
    const edited = await scene.run("w");
    await scene.answer(edited, "gate", { action: "edit-accept", editedArtifactData: { a: 1 } });
    expect(outputsOf(scene, edited)).toMatchObject({ approved: true, editedArtifactData: { a: 1 } });
    expect(scene.payloads(edited, "interrupt.resolved")[0]).toMatchObject({ editedArtifactData: { a: 1 } });
  });

  test("that nobody gives in time counts as rejected, whatever onTimeout says", async () => {
    const scene = openGate({ timeoutMs: 1_500, onTimeout: "approve" });
    const runId = await scene.run("w");
    await scene.clock.advance(1_499);
    expect(await scene.status(runId)).toBe("waiting-approval");
    await scene.clock.advance(1);
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "approval_timeout" },
    });
    const timeout = { action: "timeout", decision: "rejected", reason: "timeout" };
    expect(scene.payloads(runId, "interrupt.resolved")[0]?.resumeValue).toMatchObject(timeout);
    const { nodeId, interruptId } = scene.payloads(runId, "node.suspended")[0]!;
    expect(scene.payloads(runId, "approval.received")).toEqual([{ nodeId, interruptId, action: "timeout" }]);
  });

  test.each([
    { approversList: "bob" },
    { approversList: [1] },
    { requiredApprovals: "2" },
    { requiredApprovals: 0 },
    { rejectionPolicy: "veto" },
  ])("whose rules are %o is refused before a run begins", async (config) => {
    for (const scene of [openGate(config), openGate({ kind: "approval", data: config }, "core.interrupt")]) {
      const created = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
      expect(codeOf(created)).toBe("validation_error");
    }
  });

  test("is taken only from those on the list of approvers", async () => {
    const scene = openGate({ approversList: ["bob"] });
    const runId = await scene.run("w");
    expect(await tokenOf(scene, runId)).toBe("");
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }, ALICE))).toBe("forbidden");
    await scene.answer(runId, "gate", { action: "accept" }, BOB);
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("an approval that needs several", () => {
  const openQuorum = (more: Config = {}) =>
    openGate({ requiredApprovals: 3, rejectionPolicy: "majority", ...more });
  const vote = (scene: WorkflowScene, runId: string, voter: string, action = "accept") =>
    scene.answer(runId, "gate", { action }, { tenant: ALICE.tenant, principal: voter });

  test("waits until as many have approved, each counted once", async () => {
    const scene = openQuorum();
    const runId = await scene.run("w");
    for (const voter of ["a", "b", "b", "a"]) {
      await vote(scene, runId, voter);
      expect(await scene.status(runId)).toBe("waiting-approval");
    }
    await vote(scene, runId, "c");
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.types(runId).filter((type) => type === "approval.received")).toHaveLength(5);
    expect(scene.types(runId).filter((type) => type === "interrupt.resolved")).toHaveLength(1);
  });

  test("is rejected by a majority", async () => {
    const scene = openQuorum();
    const runId = await scene.run("w");
    await vote(scene, runId, "a", "reject");
    expect(await scene.status(runId)).toBe("waiting-approval");
    await vote(scene, runId, "b", "reject");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "approval_rejected" },
    });
  });

  test("is rejected by one where the policy is no majority", async () => {
    const scene = openQuorum({ rejectionPolicy: "single-veto" });
    const runId = await scene.run("w");
    await vote(scene, runId, "a");
    await vote(scene, runId, "b", "reject");
    expect(await scene.status(runId)).toBe("failed");
  });

  test("lets a voter change the own vote", async () => {
    const scene = openQuorum({ requiredApprovals: 2 });
    const runId = await scene.run("w");
    await vote(scene, runId, "a", "reject");
    await vote(scene, runId, "a");
    await vote(scene, runId, "b");
    expect(await scene.status(runId)).toBe("completed");
  });

  test.each(["refine", "edit-accept"])("offers no %s, and says what counts", async (action) => {
    const scene = openQuorum({ requiredApprovals: 2, actions: ["accept", "reject", action] });
    const runId = await scene.run("w");
    expect(scene.payloads(runId, "interrupt.requested")[0]?.data["actions"]).toEqual(["accept", "reject"]);
    expect(await vote(scene, runId, "a", action)).toMatchObject({
      code: "validation_error",
      message: expect.stringContaining("exactly one of accept, reject") as string,
    });
    expect(scene.types(runId)).not.toContain("approval.received");
    await vote(scene, runId, "b");
    await vote(scene, runId, "c");
    expect(await scene.status(runId)).toBe("completed");
  });

  test("counts those on the list only, where there is one", async () => {
    const scene = openQuorum({ requiredApprovals: 2, approversList: ["alice", "bob"] });
    const runId = await scene.run("w");
    await vote(scene, runId, "alice");
    expect(codeOf(await vote(scene, runId, "carol"))).toBe("forbidden");
    expect(await scene.status(runId)).toBe("waiting-approval");
    await scene.answer(runId, "gate", { action: "accept" }, BOB);
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("a clarification", () => {
  const ask = {
    questions: [
      { id: "q1", question: "Colour?" },
      { id: "q2", question: "Size?" },
    ],
  };

  test.each([
    [{ answers: { q1: "blue", q2: "big" } }],
    [
      {
        answers: [
          { id: "q1", answer: "blue" },
          { id: "q2", answer: "big" },
        ],
      },
    ],
  ])("is answered by %o", async (answer) => {
    const scene = openGate(ask, "core.clarificationGate");
    const runId = await scene.run("w");
    expect(await scene.status(runId)).toBe("waiting-input");
    await scene.answer(runId, "gate", answer);
    expect(await scene.status(runId)).toBe("completed");
    expect(outputsOf(scene, runId)).toEqual({ answers: { q1: "blue", q2: "big" } });
  });

  test.each([[{ answers: { q1: "blue" } }], [{ answers: "blue" }], [{}], ["blue"], [{ answers: null }]])(
    "is not answered by %o",
    async (answer) => {
      const scene = openGate(ask, "core.clarificationGate");
      const runId = await scene.run("w");
      expect(codeOf(await scene.answer(runId, "gate", answer))).toBe("validation_error");
    },
  );

  test("that nobody gives in time fails the run", async () => {
    const scene = openGate({ ...ask, timeoutMs: 100 }, "core.clarificationGate");
    const runId = await scene.run("w");
    await scene.clock.advance(100);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "clarification_timeout" } });
  });
});

describe("an external event", () => {
  const await_ = { kind: "external-event", data: { eventType: "paid", correlation: { orderId: "o-1" } } };

  test("is taken flat or wrapped, where it is about the same thing", async () => {
    for (const event of [{ orderId: "o-1", paid: true }, { eventPayload: { orderId: "o-1", paid: true } }]) {
      const scene = openGate(await_, "core.interrupt");
      const runId = await scene.run("w");
      expect(await scene.status(runId)).toBe("waiting-external");
      expect(codeOf(await scene.answer(runId, "gate", { orderId: "o-2" }))).toBe("validation_error");
      expect(await scene.status(runId)).toBe("waiting-external");
      await scene.host.resolveToken(await tokenOf(scene, runId), event);
      await scene.settle();
      expect(outputsOf(scene, runId)).toEqual({ orderId: "o-1", paid: true });
    }
  });

  test("is about what it names beside its payload", async () => {
    const scene = openGate(await_, "core.interrupt");
    const runId = await scene.run("w");
    const event = { orderId: "o-1", eventPayload: { paid: true } };
    expect(codeOf(await scene.answer(runId, "gate", event))).toBe("done");
    expect(outputsOf(scene, runId)).toEqual({ paid: true });
  });

  test.each([
    { orderId: "o-2", eventPayload: { paid: true } },
    { orderId: "o-1", eventPayload: { orderId: "o-2" } },
    { orderId: "o-2", eventPayload: { orderId: "o-1" } },
    { eventPayload: { paid: true } },
    { orderId: "o-1", eventPayload: { orderId: null } },
  ])("that names another thing in either place is refused: %j", async (event) => {
    const scene = openGate(await_, "core.interrupt");
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", event))).toBe("validation_error");
    expect(await scene.status(runId)).toBe("waiting-external");
  });

  test("that does not come in time fails the run", async () => {
    const scene = openGate({ ...await_, timeoutMs: 10 }, "core.interrupt");
    const runId = await scene.run("w");
    await scene.clock.advance(10);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "interrupt_timeout" } });
  });
});

describe("an interrupt of any kind", () => {
  test("holds an answer against the schema that it brought", async () => {
    const resumeSchema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
    const scene = openGate({ kind: "custom", resumeSchema }, "core.interrupt");
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", { n: "1" }))).toBe("validation_error");
    expect(codeOf(await scene.answer(runId, "gate", 1))).toBe("validation_error");
    await scene.answer(runId, "gate", { n: 1 });
    expect(outputsOf(scene, runId)).toEqual({ n: 1 });
  });

  test("of kind approval is rejected as one", async () => {
    const scene = openGate({ kind: "approval" }, "core.interrupt");
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", { action: "reject" });
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "approval_rejected" } });
  });

  test("is not there for another tenant, at another node, or of another run", async () => {
    const scene = openGate();
    const runId = await scene.run("w");
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }, MALLORY))).toBe("not_found");
    expect(codeOf(await scene.answer(runId, "after", { action: "accept" }))).toBe("interrupt_not_found");
    expect(codeOf(await scene.answer(runId, "nowhere", { action: "accept" }))).toBe("interrupt_not_found");
    expect(codeOf(await scene.answer("run-none", "gate", { action: "accept" }))).toBe("not_found");
  });
});

describe("an interrupt token", () => {
  test("shows what is asked, and answers it without a caller", async () => {
    const scene = openGate({ title: "Ship it?" });
    const token = await tokenOf(scene, await scene.run("w"));
    const seen = valueOf(await scene.host.inspectToken(token));
    expect(seen).toMatchObject({ nodeId: "gate", kind: "approval", data: { title: "Ship it?" } });
    expect(seen).not.toHaveProperty("interruptToken");
    expect(codeOf(await scene.host.resolveToken(token, { action: "accept" }))).toBe("done");
  });

  test("opens nothing any more when it was used, its run was cancelled, or its time is over", async () => {
    const scene = openGate();
    const used = await tokenOf(scene, await scene.run("w"));
    await scene.host.resolveToken(used, { action: "accept" });
    const cancelledRun = await scene.run("w");
    const cancelled = await tokenOf(scene, cancelledRun);
    await scene.host.cancel(ALICE, cancelledRun, {});
    for (const token of [used, cancelled]) {
      expect(codeOf(await scene.host.resolveToken(token, { action: "accept" }))).toBe(
        "interrupt_already_resolved",
      );
      expect(codeOf(await scene.host.inspectToken(token))).toBe("interrupt_already_resolved");
    }
    const late = await tokenOf(scene, await scene.run("w"));
    await scene.clock.advance(30 * 60_000);
    expect(codeOf(await scene.host.inspectToken(late))).toBe("done");
    await scene.clock.advance(1);
    expect(codeOf(await scene.host.resolveToken(late, { action: "accept" }))).toBe("interrupt_expired");
    expect(codeOf(await scene.host.inspectToken(late))).toBe("interrupt_expired");
  });

  test("does not outlive the interrupt's own time", async () => {
    const scene = openGate({ timeoutMs: 1_000 });
    const runId = await scene.run("w");
    const { interrupt } = await scene.snapshot(runId);
    expect(interrupt).toMatchObject({ expiresAt: new Date(scene.clock.now() + 1_000).toISOString() });
  });

  test("that is forged or broken is none", async () => {
    const scene = openGate();
    const token = await tokenOf(scene, await scene.run("w"));
    const [body = "", signature = ""] = token.split(".");
    for (const forged of ["", "x", `${body}.`, `${body}.AAAA`, `x${body}.${signature}`, `${token}.x`])
      expect(codeOf(await scene.host.resolveToken(forged, { action: "accept" }))).toBe("interrupt_not_found");
  });

  test("of an earlier turn of a loop does not answer a later one", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createNode("gate", "core.approvalGate"), createNode("revise")],
          edges: [createEdge("gate>revise", { triggerRule: "any_failed" }), createEdge("revise>gate")],
        }),
      ],
    });
    const runId = await scene.run("w");
    const token = await tokenOf(scene, runId);
    await scene.answer(runId, "gate", { action: "reject" });
    expect(codeOf(await scene.host.resolveToken(token, { action: "accept" }))).toBe(
      "interrupt_already_resolved",
    );
    expect(await scene.status(runId)).toBe("waiting-approval");
  });

  test("is not given out for a gate that wants to know who answers", async () => {
    const scene = openGate(
      { kind: "approval", data: { profile: "openwop-interrupt-auth-required" } },
      "core.interrupt",
    );
    expect(await tokenOf(scene, await scene.run("w"))).toBe("");
  });
});
