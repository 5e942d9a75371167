/** Several gateways on a ledger that was moved from the file of one of them: what it opened there stays its own. */
import { describe, expect, it } from "vitest";
import { DELIVERY_STEP_ID, type SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { formatPlaceholder } from "../../src/agents/coordination/gates/placeholder.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { endDone } from "../support/scripted-runner.ts";
import { createGatesWith, createRuling, createScriptedVerifier } from "./gates-world.ts";
import {
  AGENT,
  createGateways,
  LEASE_MS,
  OWNER_SESSION,
  type Gateways,
  type TestGateway,
} from "./gateways-scene.ts";
import { plan, PLAN_ID, step } from "./planned-world.ts";

const MOVED = { movedFrom: "shop" };

async function spawn({ coordinator, host }: TestGateway, source = OWNER_SESSION) {
  const request = spawnOf({ task: "task", source });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId } = admission.envelope;
  const child = host.spawn(request);
  await coordinator.confirmSpawn(admission.envelope, child);
  return { coordinationId, child };
}

async function submitPlan({ coordinator }: TestGateway) {
  const submitted = await coordinator.submitPlan({
    plan: plan([step("slow")], { defaults: { retry: { budget: 1, backoffMs: 1_000 } } }),
    ownerAgent: AGENT,
  });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await waitUntilSettled();
}

describe("a coordination that was opened before the ledger was moved", () => {
  it("waits for the gateway that opened it, and the children of its models are not lost in another one", async () => {
    await using gateways = createGateways(MOVED);
    const { clock } = gateways;
    const alone = await gateways.startAlone("shop");
    const { coordinationId, child } = await spawn(alone);
    alone.kill();
    await gateways.start("office");
    await clock.advance(LEASE_MS * 2);
    expect(await gateways.driverOf(coordinationId)).toBe("office");
    expect((await gateways.view(coordinationId)).steps).toMatchObject([{ status: "running" }]);
    const shop = await gateways.start("shop");
    await clock.advance(LEASE_MS);
    expect(await gateways.driverOf(coordinationId)).toBe("shop");
    shop.host.end(child.childSessionKey, { outcome: "completed" });
    await clock.advance(LEASE_MS * 10);
    expect((await gateways.view(coordinationId)).status).toBe("success");
  });

  it("tells its result to the session that opened it, and not to one of the same key in another gateway", async () => {
    await using gateways = createGateways(MOVED);
    const { clock } = gateways;
    const alone = await gateways.startAlone("shop", () => "work");
    await submitPlan(alone);
    alone.kill();
    const office = await gateways.start("office", () => endDone());
    await clock.advance(LEASE_MS * 10);
    expect((await gateways.view(PLAN_ID)).status).toBe("running");
    const isDelivery = ({ idempotencyKey }: { readonly idempotencyKey: string }): boolean =>
      idempotencyKey.includes(DELIVERY_STEP_ID);
    expect(office.plans.orders.filter(isDelivery)).toEqual([]);
    const shop = await gateways.start("shop", () => endDone());
    await clock.advance(LEASE_MS);
    expect(shop.plans.orders.filter(isDelivery)).toHaveLength(1);
    expect((await gateways.view(PLAN_ID)).status).toBe("success");
  });

  it("is changed by the session that opened it, and by none of the same key in another gateway", async () => {
    await using gateways = createGateways(MOVED);
    const alone = await gateways.startAlone("shop", () => "work");
    await submitPlan(alone);
    alone.kill();
    const office = await gateways.start("office", () => "work");
    const shop = await gateways.start("shop", () => "work");
    const cancel = ({ coordinator }: TestGateway): Promise<unknown> =>
      coordinator.cancel({ coordinationId: PLAN_ID, by: "agent", askedBy: OWNER_SESSION });
    expect(await cancel(office)).toMatchObject({ kind: "refused", code: "NOT_OWNER" });
    expect(await cancel(shop)).toMatchObject({ kind: "accepted" });
  });
});

describe("the result of a spawn on a moved ledger is revised in the session of its child", () => {
  const startRevising = (gateways: Gateways): Promise<TestGateway> => {
    const { verifier } = createScriptedVerifier((_, time) =>
      time === 1 ? createRuling("revise", { criteria: ["tests"] }) : createRuling("pass"),
    );
    const gates = { gates: createGatesWith(["lint"]), verifier };
    return gateways.start(
      "office",
      ({ message }) => (message.includes("tests") ? endDone({ better: true }) : "work"),
      gates,
    );
  };

  const endChild = async ({ coordinator, texts }: TestGateway, session: SessionKey): Promise<void> => {
    await coordinator.heldSessions.keep(session, formatPlaceholder(texts.add(session, "done")));
    await coordinator.endChild(session, { outcome: "completed" });
  };

  it("where another gateway opened the coordination after the move", async () => {
    await using gateways = createGateways(MOVED);
    const office = await startRevising(gateways);
    const { coordinationId, child } = await spawn(office);
    await endChild(office, child.childSessionKey);
    await gateways.clock.advance(LEASE_MS * 2);
    expect(office.plans.orders[0]?.childSessionKey).toBe(child.childSessionKey);
    expect((await gateways.view(coordinationId)).steps).toMatchObject([{ status: "completed" }]);
  });

  it("where the agent that spawned it goes on in another gateway with a plan that was moved", async () => {
    await using gateways = createGateways(MOVED);
    const alone = await gateways.startAlone("shop", () => "work");
    await submitPlan(alone);
    alone.kill();
    const office = await startRevising(gateways);
    await gateways.clock.advance(LEASE_MS * 2);
    const [order] = office.plans.orders;
    if (!order) throw new Error("the step was not started again");
    const { child } = await spawn(office, order.childSessionKey);
    await endChild(office, child.childSessionKey);
    await gateways.clock.advance(LEASE_MS * 2);
    expect((await gateways.view(PLAN_ID)).steps).toContainEqual(
      expect.objectContaining({ sourceSession: order.childSessionKey, status: "completed" }),
    );
    expect(office.plans.orders[1]?.childSessionKey).toBe(child.childSessionKey);
  });
});

it("the questions that a session asked before the ledger was moved count with those that it asks afterwards", async () => {
  await using gateways = createGateways(MOVED);
  const ask = ({ coordinator }: TestGateway, question: string) =>
    coordinator.ask({ askedBy: OWNER_SESSION, agentId: "main", kind: "clarification", question });
  const alone = await gateways.startAlone("shop");
  const first = await ask(alone, "Which mill?");
  alone.kill();
  const office = await gateways.start("office");
  const shop = await gateways.start("shop");
  expect(await ask(shop, "Which mill?")).toEqual(first);
  expect(await ask(office, "Which mill?")).not.toEqual(first);
});
