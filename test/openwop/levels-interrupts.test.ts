/** Owns: what the protocol's suite asserts of interrupts, on workflows of this project. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { createNode, createNoop, createWorkflow } from "./levels-workflows.ts";
import {
  childOf,
  clientOf,
  filterByType,
  findOnly,
  openWorld,
  OTHER_TOKEN,
  TOKEN,
  type Client,
  type Snapshot,
  type World,
} from "./levels-world.ts";

const createGate = (config: object) =>
  createNode("gate", "core.approvalGate", { config: { title: "Dig?", ...config } });

const DEFINITIONS = [
  createWorkflow("approves", { nodes: [createGate({ actions: ["accept", "reject"] }), createNoop("after")] }),
  createWorkflow("refines", {
    nodes: [createGate({ actions: ["accept", "reject", "refine", "edit-accept"] })],
  }),
  createWorkflow("votes", { nodes: [createGate({ requiredApprovals: 3, rejectionPolicy: "majority" })] }),
  createWorkflow("known-person", { nodes: [createGate({ profile: "openwop-interrupt-auth-required" })] }),
  createWorkflow("hurries", { nodes: [createGate({ timeoutMs: 150 })] }),
  createWorkflow("asks", {
    nodes: [
      createNode("ask", "core.clarificationGate", {
        config: { questions: [{ id: "q1", question: "Which lamp?" }] },
      }),
    ],
  }),
  createWorkflow("awaits", {
    nodes: [
      createNode("order", "core.interrupt", {
        config: { kind: "external-event", data: { eventType: "delivered", correlation: { cart: "cart-7" } } },
      }),
    ],
  }),
  createWorkflow("calls-approves", {
    nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "approves" } })],
  }),
  createWorkflow("routes", {
    nodes: [createGate({}), createNoop("accepted"), createNoop("rejected")],
    edges: [
      ["gate", "accepted", { triggerRule: "all_success" }],
      ["gate", "rejected", { triggerRule: "any_failed" }],
    ],
  }),
];

const [ANN, BEN, CID] = ["token-of-ann", "token-of-ben", "token-of-cid"] as const;

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS, {
    tokens: [
      { tenant: "first", token: TOKEN },
      { tenant: "other", token: OTHER_TOKEN },
      ...[ANN, BEN, CID].map((token) => ({ tenant: "first", token })),
    ],
  });
});
afterAll(() => world.close());

async function startWaiting(workflowId: string, status = "waiting-approval"): Promise<Snapshot> {
  return world.client.until(await world.client.start(workflowId), status);
}

/** A client of somebody else in the same tenant. */
const voiceOf = (token: string): Client => clientOf(world.baseUrl, token);

const accept = { action: "accept" };
const tokenOf = ({ interrupt }: Snapshot): string => interrupt?.interruptToken ?? expect.fail("no token");

describe("an approval", () => {
  it("B-30 suspends the run at its node, and lets it complete when it is accepted", async () => {
    const { client } = world;
    const { runId, currentNodeId } = await startWaiting("approves");
    expect(currentNodeId).toBe("gate");
    const events = await client.events(runId);
    const [suspended, requested] = events.slice(-2);
    expect(suspended?.payload).toMatchObject({ nodeId: "gate", kind: "approval" });
    expect(findSchemaProblems("suspend-request", requested?.payload)).toEqual([]);
    const { status, body } = await client.resolve(runId, "gate", accept);
    expect(status).toBe(200);
    expect(body).toMatchObject({ runId, nodeId: "gate" });
    await client.until(runId, "completed");
    expect(findOnly(await client.events(runId), "interrupt.resolved").payload).toMatchObject({
      nodeId: "gate",
      kind: "approval",
      action: "accept",
      resumeValue: accept,
    });
  });

  it("B-31 refuses an action that it does not offer, a node that asks nobody, and a second answer", async () => {
    const { client } = world;
    const { runId } = await startWaiting("approves");
    expect((await client.resolve(runId, "gate", { action: "maybe" })).status).toBe(400);
    expect((await client.resolve(runId, "gate", { action: "refine" })).status).toBe(400);
    expect(await client.resolve(runId, "no-such-node", accept)).toMatchObject({
      status: 404,
      body: { error: "interrupt_not_found" },
    });
    expect(await client.resolve("run-nobody", "gate", accept)).toMatchObject({ status: 404 });
    expect((await client.snapshot(runId)).status).toBe("waiting-approval");
    expect((await client.resolve(runId, "gate", accept)).status).toBe(200);
    expect(await client.resolve(runId, "gate", accept)).toMatchObject({
      status: 409,
      body: { error: "interrupt_already_resolved" },
    });
  });

  it("B-32 that is rejected fails the run, or takes the edge for failures", async () => {
    const { client } = world;
    const { runId } = await startWaiting("approves");
    await client.resolve(runId, "gate", { action: "reject" });
    expect((await client.until(runId, "failed")).error?.code).toBe("approval_rejected");
    const routed = await startWaiting("routes");
    await client.resolve(routed.runId, "gate", { action: "reject" });
    await client.until(routed.runId, "completed");
    const completed = filterByType(await client.events(routed.runId), "node.completed");
    expect(completed.map(({ nodeId }) => nodeId)).toEqual(["rejected"]);
  });

  it("B-33 tells in the log what was to be refined, and needs the words for it", async () => {
    const { client } = world;
    const { runId } = await startWaiting("refines");
    expect((await client.resolve(runId, "gate", { action: "refine" })).status).toBe(400);
    expect((await client.resolve(runId, "gate", { action: "edit-accept" })).status).toBe(400);
    const refineFeedback = { scope: "whole", text: "deeper" };
    expect((await client.resolve(runId, "gate", { action: "refine", refineFeedback })).status).toBe(200);
    await client.until(runId, "completed");
    expect(findOnly(await client.events(runId), "interrupt.resolved").payload).toMatchObject({
      action: "refine",
      refineFeedback,
    });
  });

  it("B-34 that nobody gives in time counts as rejected, and never as approved", async () => {
    const { client } = world;
    const snapshot = await client.until(await client.start("hurries"), "failed");
    expect(snapshot.error?.code).toBe("approval_timeout");
    const resolved = findOnly(await client.events(snapshot.runId), "interrupt.resolved");
    expect(resolved.payload).toMatchObject({ action: "timeout", resumeValue: { reason: "timeout" } });
  });

  it("B-35 of several people waits for as many as it needs, each counted once", async () => {
    const { client } = world;
    const { runId } = await startWaiting("votes");
    for (const voter of [ANN, BEN, ANN]) {
      expect((await voiceOf(voter).resolve(runId, "gate", accept)).status).toBe(200);
      expect((await client.snapshot(runId)).status).toBe("waiting-approval");
    }
    expect((await voiceOf(CID).resolve(runId, "gate", accept)).status).toBe(200);
    await client.until(runId, "completed");
  });

  it("B-36 of several people fails when most of them reject", async () => {
    const { client } = world;
    const { runId } = await startWaiting("votes");
    for (const voter of [ANN, BEN]) await voiceOf(voter).resolve(runId, "gate", { action: "reject" });
    expect((await client.until(runId, "failed")).error?.code).toBe("approval_rejected");
  });

  it("B-37 that wants to know who answers has no token, and takes a bearer's answer", async () => {
    const { client } = world;
    const { runId, interrupt } = await startWaiting("known-person");
    expect(interrupt).not.toHaveProperty("interruptToken");
    expect((await client.resolve(runId, "gate", accept)).status).toBe(200);
    await client.until(runId, "completed");
  });

  it("B-38 is answered by the run's own tenant only", async () => {
    const { runId } = await startWaiting("approves");
    expect((await world.other.resolve(runId, "gate", accept)).status).toBe(404);
    expect((await world.client.snapshot(runId)).status).toBe("waiting-approval");
  });
});

describe("a clarification", () => {
  it("B-40 waits as waiting-input, and takes answers by id or as a list", async () => {
    const { client } = world;
    for (const answers of [{ q1: "the brass one" }, [{ id: "q1", answer: "the brass one" }]]) {
      const { runId, currentNodeId } = await startWaiting("asks", "waiting-input");
      expect(currentNodeId).toBe("ask");
      expect((await client.resolve(runId, "ask", { answers: {} })).status).toBe(400);
      expect((await client.resolve(runId, "ask", { answers })).status).toBe(200);
      await client.until(runId, "completed");
      expect(findOnly(await client.events(runId), "node.completed").payload["outputs"]).toEqual({
        answers: { q1: "the brass one" },
      });
    }
  });
});

describe("an external event", () => {
  it("B-41 resolves by the signed token of the snapshot, without a bearer", async () => {
    const { client, baseUrl } = world;
    const snapshot = await startWaiting("awaits", "waiting-external");
    const stranger = clientOf(baseUrl, "no-token");
    const path = `/v1/interrupts/${tokenOf(snapshot)}`;
    const looked = await stranger.get(path);
    expect(looked.status).toBe(200);
    expect(findSchemaProblems("suspend-request", looked.body)).toEqual([]);
    const wrong = await stranger.post(path, { resumeValue: { cart: "cart-8" } });
    expect(wrong.status).toBe(400);
    expect((await client.snapshot(snapshot.runId)).status).toBe("waiting-external");
    const resumeValue = { cart: "cart-7", state: "delivered" };
    expect((await stranger.post(path, { resumeValue })).status).toBe(200);
    await client.until(snapshot.runId, "completed");
    expect((await stranger.post(path, { resumeValue })).status).toBe(409);
    expect((await stranger.get(path)).status).toBe(409);
  });

  it("B-42 does not open to a token that was not signed here, whatever it looks like", async () => {
    const { client } = world;
    const token = tokenOf(await startWaiting("awaits", "waiting-external"));
    const [payload = "", mac = ""] = token.split(".");
    const otherMac = `${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`;
    const forged = [`${payload}.${otherMac}`, `${payload}x.${mac}`, "tok_nothing", "!!!not-one!!!"];
    for (const text of forged) {
      const path = `/v1/interrupts/${encodeURIComponent(text)}`;
      expect((await client.get(path)).status).toBe(404);
      expect((await client.post(path, { correlation: {} })).status).toBe(404);
    }
  });

  it("B-43 does not open to a token whose run was cancelled", async () => {
    const { client } = world;
    const snapshot = await startWaiting("awaits", "waiting-external");
    await client.post(`/v1/runs/${snapshot.runId}/cancel`);
    const reply = await client.post(`/v1/interrupts/${tokenOf(snapshot)}`, {
      resumeValue: { cart: "cart-7" },
    });
    expect(reply.status).toBe(409);
  });
});

describe("an interrupt of a child run", () => {
  it("B-44 shows in the parent's status, with the child's id", async () => {
    const { client } = world;
    const parent = await startWaiting("calls-approves");
    const childRunId = childOf(await client.events(parent.runId));
    expect(parent.childRuns).toEqual([{ runId: childRunId, status: "waiting-approval" }]);
    await client.resolve(childRunId, "gate", accept);
    await client.until(parent.runId, "completed");
  });

  it("B-45 is gone when the parent is cancelled: both end, and a late answer is refused", async () => {
    const { client } = world;
    const { runId } = await startWaiting("calls-approves");
    const childRunId = childOf(await client.events(runId));
    expect((await client.post(`/v1/runs/${runId}/cancel`)).status).toBe(200);
    await client.until(runId, "cancelled");
    await client.until(childRunId, "cancelled");
    expect(findOnly(await client.events(childRunId), "run.cancelled").payload).toMatchObject({
      reason: "parent-cancelled",
      parentRunId: runId,
    });
    expect((await client.resolve(childRunId, "gate", accept)).status).toBe(409);
  });

  it("B-46 that is cancelled at the same time as it is answered ends one way or the other", async () => {
    const { client } = world;
    for (let round = 0; round < 5; round += 1) {
      const { runId } = await startWaiting("approves");
      const [cancelled, answered] = await Promise.all([
        client.post(`/v1/runs/${runId}/cancel`),
        client.resolve(runId, "gate", accept),
      ]);
      expect(cancelled.status).toBe(200);
      expect([200, 409]).toContain(answered.status);
      const { status } = await waitFor(
        async () => {
          const snapshot = await client.snapshot(runId);
          return ["completed", "cancelled"].includes(snapshot.status) && snapshot;
        },
        { what: "the end" },
      );
      expect(status).toBe(
        answered.status === 200 && cancelled.body["status"] === "completed" ? "completed" : "cancelled",
      );
    }
  });
});
