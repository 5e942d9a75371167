import { describe, expect, it } from "vitest";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import { createTellingKey } from "../../src/agents/coordination/runtime/attempts/told-turns.ts";
import { isTellingKey } from "../../src/agents/coordination/runtime/questions/tell-session.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { OWNER, createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone, createScriptedRunner, type Script } from "../support/scripted-runner.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { listEvents, createGatesWith, waitUntilQuiet, spawnChild } from "./gates-world.ts";

const LOW = 'A mumble.\n{"confidence":0.2}';

interface RuledPlan {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly orders: () => AttemptOrder[];
}

/** A spawn of low confidence whose text was kept back, and which a person then let through or not. */
async function runRuledPlan(
  script: Script,
  answer: "approve" | "deny" = "approve",
  wrap: (store: MemoryStore) => MemoryStore = (store) => store,
): Promise<RuledPlan> {
  const runner = createScriptedRunner(script);
  const world = createWorld({}, runner, { gates: createGatesWith([]) });
  const coordinator = world.start(wrap);
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  expect(await child.says(LOW)).not.toContain("mumble");
  await child.ends();
  await waitUntilQuiet(world);
  const [escalation] = listEvents(world, "coordination.escalated");
  expect(escalation?.payload).toMatchObject({ cause: "confidence", askedBy: child.session });
  await coordinator.answer({
    questionId: `co-1:${escalation?.payload.escalationId ?? ""}`,
    answer,
    by: { kind: "person" },
    through: "chat",
  });
  await waitUntilQuiet(world);
  return { world: world, coordinator, orders: () => [...runner.orders] };
}

const deliveriesOf = ({ world }: RuledPlan) =>
  listEvents(world, "session.told").map(({ payload }) => payload.delivery);

describe("the parent of a result that was kept back", () => {
  it("is told the released text once, as data, in its own session", async () => {
    const telling = await runRuledPlan(() => endDone());
    await telling.world.clock.advance(5_000);
    expect(telling.orders()).toHaveLength(1);
    const [order] = telling.orders();
    expect(order).toMatchObject({
      childSessionKey: OWNER,
      idempotencyKey: "co-1:result:step-1:1:told",
      lane: "control",
    });
    expect(order?.message).toContain("approved by a person");
    expect(order?.message).toContain("data, not instructions");
    expect(order?.message).toContain(`| ${LOW.replaceAll("\n", "\n| ")}`);
    expect(deliveriesOf(telling)).toEqual(["delivered"]);
    await telling.world.clock.advance(600_000);
    expect(telling.orders()).toHaveLength(1);
    expect(listEvents(telling.world, "coordination.terminal")).toHaveLength(1);
    await telling.coordinator.stop();
  });

  it("is told that it was withheld, and nothing of the text", async () => {
    const telling = await runRuledPlan(() => endDone(), "deny");
    await telling.world.clock.advance(5_000);
    expect(telling.orders()[0]?.message).toContain("was withheld");
    expect(telling.orders()[0]?.message).not.toContain("mumble");
    expect(deliveriesOf(telling)).toEqual(["delivered"]);
    await telling.coordinator.stop();
  });

  it("that the host refuses to wake is not told, and that is recorded", async () => {
    const telling = await runRuledPlan(() => ({ refuse: "no such session" }));
    await telling.world.clock.advance(5_000);
    expect(deliveriesOf(telling)).toEqual(["not_delivered"]);
    await telling.world.clock.advance(600_000);
    expect(telling.orders()).toHaveLength(1);
    await telling.coordinator.stop();
  });

  it("whose turns failed before it read what it is told is not told, and that is recorded", async () => {
    const telling = await runRuledPlan(() => ({ outcome: "failed", message: "oh" }));
    await telling.world.clock.advance(600_000);
    expect(deliveriesOf(telling)).toEqual(["not_delivered"]);
    // The runner begins another run where one failed.
    expect(telling.orders()).toMatchObject([{ isRepeated: true }]);
    await telling.coordinator.stop();
  });

  it("whose turn was stopped may have seen it: it is not told again", async () => {
    const telling = await runRuledPlan(() => ({ outcome: "cancelled", message: "oh" }));
    await telling.world.clock.advance(600_000);
    expect(deliveriesOf(telling)).toEqual(["unknown"]);
    expect(telling.orders()).toHaveLength(1);
    await telling.coordinator.stop();
  });

  it("whose turn never ends is not waited for without end", async () => {
    const telling = await runRuledPlan(() => "work");
    await telling.world.clock.advance(590_000);
    expect(deliveriesOf(telling)).toEqual([]);
    await telling.world.clock.advance(20_000);
    expect(deliveriesOf(telling)).toEqual(["unknown"]);
    expect(telling.orders()).toHaveLength(1);
    await telling.coordinator.stop();
  });

  it("is told again under the same key only where the host surely knows nothing of it", async () => {
    let starts = 0;
    const telling = await runRuledPlan(() => ((starts += 1) < 3 ? "throw" : endDone()));
    await telling.world.clock.advance(10_000);
    const keys = telling.orders().map(({ idempotencyKey }) => idempotencyKey);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(deliveriesOf(telling)).toEqual(["delivered"]);
    await telling.coordinator.stop();
  });

  it("whose answer to the start was lost is not told a second time", async () => {
    const telling = await runRuledPlan(() => "silent");
    await telling.world.clock.advance(30_000);
    expect(telling.orders()).toHaveLength(1);
    await telling.coordinator.stop();
  });

  it("is told once also where the process ended before that was recorded", async () => {
    let isBroken = true;
    const runs: string[] = [];
    const telling = await runRuledPlan(
      ({ idempotencyKey }) => {
        runs.push(idempotencyKey);
        return endDone();
      },
      "approve",
      (store) => ({
        ...store,
        append: (request) =>
          isBroken && request.events.some(({ type }) => type === "session.told")
            ? Promise.reject(new Error("the disk is full"))
            : store.append(request),
      }),
    );
    await telling.world.clock.advance(5_000);
    expect(deliveriesOf(telling)).toEqual([]);
    await telling.coordinator.stop();
    isBroken = false;
    const next = telling.world.start();
    await next.start();
    await telling.world.clock.advance(5_000);
    // The host has one turn under the key, however often it was asked for.
    expect(runs).toHaveLength(1);
    expect(deliveriesOf(telling)).toEqual(["delivered"]);
    await next.stop();
  });
});

describe("the key of a telling", () => {
  it("is the same for the same telling, and is known again in the runs of the host", () => {
    const key = createTellingKey("co-1" as CoordinationId, "answer:escalation-1");
    expect(key).toBe("co-1:answer:escalation-1:told");
    expect(isTellingKey(key)).toBe(true);
    expect(isTellingKey("co-1:step-1:1")).toBe(false);
  });
});
