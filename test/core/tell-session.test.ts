import { describe, expect, it } from "vitest";
import type { Order } from "../../src/agents/coordination/ports/agent-runner.ts";
import {
  isTellingKey,
  createTellingKey,
} from "../../src/agents/coordination/runtime/questions/tell-session.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { OWNER, world, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { done, scriptedRunner, type Script } from "../support/scripted-runner.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { eventsIn, gatesWith, quiet, spawnChild } from "./gates-world.ts";

const LOW = 'A mumble.\n{"confidence":0.2}';

interface Told {
  readonly it: World;
  readonly coordinator: Coordinator;
  readonly orders: () => Order[];
}

/** A spawn of low confidence whose text was kept back, and which a person then let through or not. */
async function ruled(
  script: Script,
  answer: "approve" | "deny" = "approve",
  wrap: (store: MemoryStore) => MemoryStore = (store) => store,
): Promise<Told> {
  const runner = scriptedRunner(script);
  const it = world({}, runner, { gates: gatesWith([]) });
  const coordinator = it.start(wrap);
  await coordinator.start();
  const child = await spawnChild(it, coordinator);
  expect(await child.says(LOW)).not.toContain("mumble");
  await child.ends();
  await quiet(it);
  const [asked] = eventsIn(it, "coordination.escalated");
  expect(asked?.payload).toMatchObject({ cause: "confidence", askedBy: child.session });
  await coordinator.answer({
    questionId: `co-1:${asked?.payload.escalationId ?? ""}`,
    answer,
    by: { kind: "person" },
    through: "chat",
  });
  await quiet(it);
  return { it, coordinator, orders: () => [...runner.orders] };
}

const deliveriesOf = ({ it }: Told) => eventsIn(it, "session.told").map(({ payload }) => payload.delivery);

describe("the parent of a result that was kept back", () => {
  it("is told the released text once, as data, in its own session", async () => {
    const told = await ruled(() => done());
    await told.it.clock.advance(5_000);
    expect(told.orders()).toHaveLength(1);
    const [order] = told.orders();
    expect(order).toMatchObject({
      childSessionKey: OWNER,
      idempotencyKey: "co-1:result:step-1:1:told",
      lane: "control",
    });
    expect(order?.message).toContain("approved by a person");
    expect(order?.message).toContain("data, not instructions");
    expect(order?.message).toContain(`| ${LOW.replaceAll("\n", "\n| ")}`);
    expect(deliveriesOf(told)).toEqual(["delivered"]);
    await told.it.clock.advance(600_000);
    expect(told.orders()).toHaveLength(1);
    expect(eventsIn(told.it, "coordination.terminal")).toHaveLength(1);
    await told.coordinator.stop();
  });

  it("is told that it was withheld, and nothing of the text", async () => {
    const told = await ruled(() => done(), "deny");
    await told.it.clock.advance(5_000);
    expect(told.orders()[0]?.message).toContain("was withheld");
    expect(told.orders()[0]?.message).not.toContain("mumble");
    expect(deliveriesOf(told)).toEqual(["delivered"]);
    await told.coordinator.stop();
  });

  it("that the host refuses to wake is not told, and that is recorded", async () => {
    const told = await ruled(() => ({ refuse: "no such session" }));
    await told.it.clock.advance(5_000);
    expect(deliveriesOf(told)).toEqual(["not_delivered"]);
    await told.it.clock.advance(600_000);
    expect(told.orders()).toHaveLength(1);
    await told.coordinator.stop();
  });

  it("whose turn failed may have seen it: it is not told again", async () => {
    const told = await ruled(() => ({ outcome: "failed", message: "oh" }));
    await told.it.clock.advance(600_000);
    expect(deliveriesOf(told)).toEqual(["unknown"]);
    expect(told.orders()).toHaveLength(1);
    await told.coordinator.stop();
  });

  it("whose turn never ends is not waited for without end", async () => {
    const told = await ruled(() => "work");
    await told.it.clock.advance(590_000);
    expect(deliveriesOf(told)).toEqual([]);
    await told.it.clock.advance(20_000);
    expect(deliveriesOf(told)).toEqual(["unknown"]);
    expect(told.orders()).toHaveLength(1);
    await told.coordinator.stop();
  });

  it("is told again under the same key only where the host surely knows nothing of it", async () => {
    let starts = 0;
    const told = await ruled(() => ((starts += 1) < 3 ? "throw" : done()));
    await told.it.clock.advance(10_000);
    const keys = told.orders().map(({ idempotencyKey }) => idempotencyKey);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(deliveriesOf(told)).toEqual(["delivered"]);
    await told.coordinator.stop();
  });

  it("whose answer to the start was lost is not told a second time", async () => {
    const told = await ruled(() => "silent");
    await told.it.clock.advance(30_000);
    expect(told.orders()).toHaveLength(1);
    await told.coordinator.stop();
  });

  it("is told once also where the process ended before that was recorded", async () => {
    let isBroken = true;
    const runs: string[] = [];
    const told = await ruled(
      ({ idempotencyKey }) => {
        runs.push(idempotencyKey);
        return done();
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
    await told.it.clock.advance(5_000);
    expect(deliveriesOf(told)).toEqual([]);
    await told.coordinator.stop();
    isBroken = false;
    const next = told.it.start();
    await next.start();
    await told.it.clock.advance(5_000);
    // The host has one turn under the key, however often it was asked for.
    expect(runs).toHaveLength(1);
    expect(deliveriesOf(told)).toEqual(["delivered"]);
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
