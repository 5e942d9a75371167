/** Owns: steps of plans whose provider refuses calls: they wait, and nothing else waits with them. */
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { LaneRunner } from "../../src/agents/coordination/ports/lane-runner.ts";
import { createProviderLanes } from "../../src/agents/coordination/runtime/providers/provider-lanes.ts";
import { createPQueueLanes, type LaneLimits } from "../../src/infra/lanes/p-queue-lanes.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { AGENT, plan, step, type Fields } from "./planned-world.ts";

const CLOSED_MS = 300_000;
const LIMITS: LaneLimits = { control: 1, data: 1, escalation: 1, queueMax: 2, agingMs: 60_000 };

const callOf = (agent: string, provider: string) => ({
  provider,
  session: `agent:${agent}:subagent:1` as SessionKey,
});

/** A plan whose steps run in real lanes. Agents work until the test ends them. */
async function runSteps(limits: Partial<LaneLimits> = {}) {
  const runner = createScriptedRunner(() => "work");
  const world = createWorld({}, runner);
  const { clock, host } = world;
  const providers = createProviderLanes({
    clock,
    logger: quietLogger,
    rules: { retryAfterMsMax: 600_000, callDelayMs: 8_000 },
    drawFraction: () => 0.5,
  });
  const lanes = createPQueueLanes({ ...LIMITS, ...limits }, clock, providers);
  let looks = 0;
  const readRoom: LaneRunner["room"] = (lane) => {
    if (lane === "data") looks += 1;
    return lanes.room(lane);
  };
  const coordinator = world.start((store) => store, {
    clock,
    runner: host,
    lanes: { ...lanes, room: readRoom },
  });
  await coordinator.start();
  return {
    clock,
    runner,
    coordinator,
    lanes,
    providers,
    refuseCallOf: (agent: string): void => {
      const call = callOf(agent, "acme");
      providers.callBegan(call);
      providers.callRefused(call, CLOSED_MS);
    },
    submit: async (steps: readonly Fields[]): Promise<void> => {
      await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
      await waitUntilSettled();
    },
    /** How often the plan was looked at. */
    countLooks: (): number => looks,
    listStarted: (): string[] => runner.orders.map(({ envelope }) => envelope.stepId),
  };
}

const nameSteps = (agent: string, count: number): Fields[] =>
  Array.from({ length: count }, (_, index) => step(`${agent}-${index}`, { agent }));

describe("a step that waits in its lane when its provider closes", () => {
  it("does not keep the coordinator from stopping, and does not begin", async () => {
    const { coordinator, refuseCallOf, submit, listStarted } = await runSteps();
    await submit([step("a"), step("b")]);
    refuseCallOf("main");
    let isStopped = false;
    void coordinator.stop().then(() => (isStopped = true));
    await waitUntilSettled();
    expect(isStopped).toBe(true);
    expect(listStarted()).toEqual(["a"]);
  });

  it("does not keep the coordinator from stopping where the provider's rules stopped before", async () => {
    const { coordinator, providers, refuseCallOf, submit, listStarted } = await runSteps();
    await submit([step("a"), step("b")]);
    refuseCallOf("main");
    providers.stop();
    let isStopped = false;
    void coordinator.stop().then(() => (isStopped = true));
    await waitUntilSettled();
    expect(isStopped).toBe(true);
    expect(listStarted()).toEqual(["a"]);
  });

  it("takes no place in the queue from steps of other providers", async () => {
    const { clock, runner, refuseCallOf, submit, listStarted } = await runSteps({ data: 2 });
    await submit([...nameSteps("main", 6), step("other-0", { agent: "other" })]);
    expect(listStarted()).toEqual(["main-0", "main-1"]);
    refuseCallOf("main");
    runner.end("main-0", endDone());
    await clock.advance(1_000);
    expect(listStarted()).toEqual(["main-0", "main-1", "other-0"]);
  });

  it("counts again when the provider opens, and all steps begin in the end", async () => {
    const { clock, runner, lanes, refuseCallOf, submit, listStarted } = await runSteps();
    const steps = [...nameSteps("main", 5), ...nameSteps("other", 3)];
    await submit(steps);
    refuseCallOf("main");
    runner.end("main-0", endDone());
    await clock.advance(1_000);
    expect(listStarted()).toEqual(["main-0", "other-0"]);
    await clock.advance(CLOSED_MS);
    expect(lanes.room("data")).toBe(0);
    for (let turn = 0; turn < 8; turn += 1) {
      const newest = listStarted().at(-1);
      if (newest !== undefined) runner.end(newest, endDone());
      await clock.advance(1_000);
    }
    expect(listStarted()).toEqual(expect.arrayContaining(steps.map(({ stepId }) => stepId)));
  });
});

describe("steps that become ready while their provider is closed", () => {
  it("leave the queue to steps of other providers", async () => {
    const { clock, refuseCallOf, submit, listStarted } = await runSteps();
    refuseCallOf("main");
    await submit([...nameSteps("main", 5), step("other-0", { agent: "other" })]);
    await clock.advance(1_000);
    expect(listStarted()).toEqual(["other-0"]);
  });

  it("begin when the provider opens, though nothing else happens", async () => {
    const { clock, refuseCallOf, submit, listStarted } = await runSteps();
    refuseCallOf("main");
    await submit(nameSteps("main", 3));
    await clock.advance(CLOSED_MS - 1);
    expect(listStarted()).toEqual([]);
    await clock.advance(1);
    expect(listStarted()).toEqual(["main-0"]);
  });

  it("begin when their agent moves to another provider", async () => {
    const { clock, providers, refuseCallOf, submit, listStarted } = await runSteps();
    refuseCallOf("main");
    await submit(nameSteps("main", 3));
    await clock.advance(1_000);
    expect(listStarted()).toEqual([]);
    providers.callBegan(callOf("main", "beta"));
    await waitUntilSettled();
    expect(listStarted()).toEqual(["main-0"]);
  });
});

describe("a plan without a step that waits for the provider that closed", () => {
  it.each([
    ["its steps are of other agents", [step("other-0", { agent: "other" })]],
    [
      "its step of that agent waits for another step",
      [step("other-0", { agent: "other" }), step("main-0", { dependsOn: ["other-0"] })],
    ],
  ])(
    "is not looked at when that agent goes to another provider, or the provider closes again: %s",
    async (_, steps) => {
      const { clock, providers, refuseCallOf, submit, listStarted, countLooks } = await runSteps();
      refuseCallOf("main");
      await submit(steps);
      await clock.advance(1_000);
      expect(listStarted()).toEqual(["other-0"]);
      const looks = countLooks();
      providers.callBegan(callOf("main", "beta"));
      await waitUntilSettled();
      refuseCallOf("main");
      await waitUntilSettled();
      expect(countLooks()).toBe(looks);
    },
  );
});
