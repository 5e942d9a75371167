/** Attempts whose gateway is gone: what becomes of them, and of what their agents were to be told. */
import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { endDone, type Script } from "../support/scripted-runner.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import {
  AGENT,
  createGateways,
  LEASE_MS,
  OWNER_SESSION,
  type Gateways,
  type TestGateway,
} from "./gateways-scene.ts";
import { createEscalationsWith, createGatesWith, createScriptedChannel } from "./gates-world.ts";
import { createRetries, plan, PLAN_ID, step, type Fields } from "./planned-world.ts";
import { logOver } from "./run-log-scene.ts";
import { usageOf } from "./usage-scene.ts";

const REMIND_MS = 60_000;

/** Works on `slow` until the test ends it; everything else is done at once. */
const workOnSlow: Script = ({ envelope }) => (envelope.stepId === "slow" ? "work" : endDone());

async function submitSlow({ coordinator }: TestGateway, fields: Fields): Promise<void> {
  const submitted = await coordinator.submitPlan({ plan: plan([step("slow", fields)]), ownerAgent: AGENT });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await waitUntilSettled();
}

/** Lets gateway `b` take over `slow`, which ran in `a`: its deadline passes before the plan of its agent is ended. */
async function runOutOfTime(gateways: Gateways): Promise<TestGateway> {
  const a = await gateways.start("a", workOnSlow);
  const b = await gateways.start("b");
  // A host does not tell a session that it does not know from one that is yet to begin.
  b.plans.cancel = () => Promise.resolve("unreachable");
  await submitSlow(a, { timeoutMs: 1_000, ...createRetries(1) });
  await logOver(gateways).submit(PLAN_ID, [{ type: "recordUsage", ...usageOf("slow" as StepId, 10) }]);
  const ownerSession = a.plans.orders[0]!.childSessionKey;
  const inner = plan([step("slow")], { coordinationId: "plan-2", ownerSession });
  await a.coordinator.submitPlan({ plan: inner, submittedBy: ownerSession, ownerAgent: AGENT });
  await waitUntilSettled();
  a.kill();
  await gateways.clock.advance(LEASE_MS * 4);
  return b;
}

describe("an attempt of a gone gateway", () => {
  it("runs out of time where its deadline passes before the plan of its agent is ended, and is tried again", async () => {
    await using gateways = createGateways();
    const b = await runOutOfTime(gateways);
    const timedOut = gateways.eventsOf(PLAN_ID).filter(({ type }) => type === "step.timed_out");
    expect(timedOut).toMatchObject([{ payload: { stepId: "slow", attempt: 1 } }]);
    expect(b.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["plan-1:slow:2"]);
  });

  it("counts what its recorded calls used when it runs out of time, and leaves its agent out of reach", async () => {
    await using gateways = createGateways();
    await runOutOfTime(gateways);
    const ends = gateways
      .eventsOf(PLAN_ID)
      .filter(({ type }) => type === "step.timed_out" || type === "step.child_stopped");
    const usage = { spawns: 1, tokens: 1_500, costMicroUsd: 10_000 };
    expect(ends).toMatchObject([
      { type: "step.timed_out", payload: { attempt: 1, usage } },
      { type: "step.child_stopped", payload: { attempt: 1, outcome: "unreachable" } },
    ]);
  });
});

describe("the agent of an attempt whose gateway is gone", () => {
  it("is told the answer to its question by no other gateway, and its step is tried again there", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b");
    await submitSlow(a, createRetries(1));
    const outcome = await a.coordinator.ask({
      askedBy: a.plans.orders[0]!.childSessionKey,
      agentId: "main",
      kind: "approval",
      question: "May I delete it?",
    });
    if (outcome.kind !== "asked") throw new Error("refused");
    a.kill();
    const by = { kind: "operator" } as const;
    await b.coordinator.answer({ questionId: outcome.questionId, answer: "approve", by, through: "cli" });
    await gateways.clock.advance(LEASE_MS * 3);
    expect(b.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["plan-1:slow:2"]);
    const events = gateways.eventsOf(PLAN_ID);
    const tellings = events.filter(({ type }) => type === "session.told");
    expect(tellings).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
    const failures = events.filter(({ type }) => type === "step.failed");
    expect(failures).toMatchObject([{ payload: { stepId: "slow", error: { code: "child_lost" } } }]);
  });
});

describe("people who are asked about a plan whose gateway is gone", () => {
  it("are told in no chat of the gateway that took it over, but through the other channels", async () => {
    await using gateways = createGateways();
    const channels = ["chat", "host", "plugin:pager"];
    const escalations = createEscalationsWith({
      notify: channels.map((channel) => ({ channel, afterMs: REMIND_MS })),
    });
    const notices: string[] = [];
    const channelOf = (channel: string) =>
      createScriptedChannel(({ chatSession }) => {
        notices.push(`${channel} ${chatSession}`);
        return { kind: "delivered", tries: 1 };
      }).channel;
    const gates = { gates: createGatesWith([]), escalations, channelOf };
    const a = await gateways.start("a", workOnSlow, gates);
    await gateways.start("b", workOnSlow, gates);
    await submitSlow(a, { confidence: 0.2 });
    a.kill();
    await gateways.clock.advance(REMIND_MS + LEASE_MS);
    expect(await gateways.driverOf(PLAN_ID)).toBe("b");
    expect(notices).toEqual([`plugin:pager ${OWNER_SESSION}`]);
    const notified = gateways
      .eventsOf(PLAN_ID)
      .flatMap((event) => (event.type === "escalation.notified" ? [event.payload] : []));
    expect(notified.map((notice) => `${notice.channel} ${notice.outcome}`).toSorted()).toEqual([
      "chat failed",
      "host failed",
      "plugin:pager delivered",
    ]);
  });
});
