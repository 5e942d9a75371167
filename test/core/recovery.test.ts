import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf, createWorld, type World } from "../support/fake-clock-host.ts";
import { nameChild } from "./scene.ts";

const factsOf = ({ ledger }: World): string[] =>
  ledger
    .events()
    .flat()
    .map(({ type }) => type)
    .filter((type) => /^(coordination|step)\./u.test(type));
const eventOf = <T extends RunEvent["type"]>(
  { ledger }: World,
  type: T,
): Extract<RunEvent, { type: T }> | undefined =>
  ledger
    .events()
    .flat()
    .find((event): event is Extract<RunEvent, { type: T }> => event.type === type);

/** A gateway that died right after a spawn: with or without a child, and an answer or not. */
async function crashWorld(
  w: World,
  { made, confirmed }: { made: boolean; confirmed: boolean },
): Promise<SessionKey> {
  const before = w.start();
  const admission = await before.admitSpawn(spawnOf({ task: "a" }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const child = made ? w.host.spawn(spawnOf({ task: "a" })) : undefined;
  if (child && confirmed) await before.confirmSpawn({ coordinationId, stepId, sourceSession }, child);
  await before.stop();
  return child?.childSessionKey ?? nameChild("none");
}

describe("after a crash", () => {
  it("a spawn that the host never heard of fails once it had its time", async () => {
    const w = createWorld();
    await crashWorld(w, { made: false, confirmed: false });
    await w.start().start();
    expect(factsOf(w).at(-1)).toBe("step.dispatched");
    await w.clock.advance(w.settings.acknowledgeMs + w.settings.sweepMs);
    expect(eventOf(w, "step.failed")?.payload).toMatchObject({
      error: { code: "spawn_not_confirmed" },
      via: "reconciled",
    });
    expect(eventOf(w, "coordination.terminal")?.payload.status).toBe("failed");
  });

  it("a child whose answer was lost is found at start, and gets its envelope", async () => {
    const w = createWorld();
    const child = await crashWorld(w, { made: true, confirmed: false });
    const after = w.start();
    await after.start();
    expect(eventOf(w, "step.acknowledged")?.payload).toMatchObject({
      childSessionKey: child,
      via: "reconciled",
    });
    expect(w.host.bound).toEqual([await after.envelopeForChild(child)]);
    await after.endChild(child, { outcome: "completed" });
    expect(factsOf(w).at(-1)).toBe("step.completed");
  });

  it.each([true, false])(
    "a child that ended meanwhile is recorded as it ended (confirmed before: %s)",
    async (confirmed) => {
      const w = createWorld();
      const child = await crashWorld(w, { made: true, confirmed });
      w.host.end(child, { outcome: "failed", message: "out of tokens" });
      await w.start().start();
      const expected = { error: { code: "child_failed", message: "out of tokens" }, via: "reconciled" };
      expect(eventOf(w, "step.failed")?.payload).toMatchObject(expected);
      await w.clock.advance(w.settings.settleMs + 1_000);
      expect(factsOf(w).at(-1)).toBe("coordination.terminal");
    },
  );

  it("a host that says nothing is believed until the deadline, not longer", async () => {
    const w = createWorld();
    await crashWorld(w, { made: true, confirmed: true });
    w.host.says = () => Promise.resolve({ kind: "unknown" });
    await w.start().start();
    await w.clock.advance(w.settings.stepTimeoutMs - 1_000);
    expect(factsOf(w).at(-1)).toBe("step.acknowledged");
    await w.clock.advance(w.settings.acknowledgeMs + 2 * w.settings.sweepMs);
    expect(eventOf(w, "step.timed_out")?.payload.via).toBe("deadline");
    expect(eventOf(w, "coordination.terminal")?.payload.status).toBe("failed");
  });

  it("a child that the host forgot is lost", async () => {
    const w = createWorld();
    const child = await crashWorld(w, { made: true, confirmed: true });
    w.host.children.delete(child);
    await w.start().start();
    await w.clock.advance(w.settings.acknowledgeMs + w.settings.sweepMs);
    expect(eventOf(w, "step.failed")?.payload.error.code).toBe("child_lost");
  });

  it("a coordination without open steps ends after a quiet time", async () => {
    const w = createWorld();
    const child = await crashWorld(w, { made: true, confirmed: true });
    const second = w.start();
    await second.endChild(child, { outcome: "completed" });
    await second.stop();
    expect(factsOf(w).at(-1)).toBe("step.completed");
    await w.start().start();
    await w.clock.advance(w.settings.settleMs + 1_000);
    expect(factsOf(w).at(-1)).toBe("coordination.terminal");
  });

  it.each(["trace-1", "trace-2"])(
    "two spawns that look the same are not given the same child (second on %s)",
    async (trace) => {
      const w = createWorld();
      const before = w.start();
      await before.admitSpawn(spawnOf({ task: "a", call: "1" }));
      await before.admitSpawn(spawnOf({ task: "a", call: "2", trace }));
      const children = [w.host.spawn(spawnOf({ task: "a" })), w.host.spawn(spawnOf({ task: "a" }))];
      await before.stop();
      await w.start().start();
      const acknowledged = w.ledger
        .events()
        .flat()
        .filter((event) => event.type === "step.acknowledged");
      const input = acknowledged.map(({ payload }) => payload.childSessionKey);
      expect(input.toSorted()).toEqual(children.map(({ childSessionKey }) => childSessionKey).toSorted());
    },
  );
});

describe("two spawns of one task, in two turns", () => {
  it("are not given the same child where both are answered with an error at once", async () => {
    const w = createWorld();
    const coordinator = w.start();
    const claims: SpawnClaim[] = [];
    for (const [toolCallId, trace] of [
      ["1", "trace-1"],
      ["2", "trace-2"],
    ] as const) {
      const admission = await coordinator.admitSpawn(spawnOf({ task: "a", call: toolCallId, trace }));
      if (admission.kind === "refused") throw new Error(admission.reason);
      const { coordinationId, stepId, sourceSession } = admission.envelope;
      claims.push({ coordinationId, stepId, sourceSession, toolCallId });
    }
    const children = claims.map(() => w.host.spawn(spawnOf({ task: "a" })).childSessionKey);
    await Promise.all(claims.map((claim) => coordinator.failSpawn(claim, "no answer")));
    const acknowledged = w.ledger
      .events()
      .flat()
      .flatMap((event) => (event.type === "step.acknowledged" ? [event.payload.childSessionKey] : []));
    expect(acknowledged.toSorted()).toEqual(children.toSorted());
    await coordinator.stop();
  });
});

describe("the sweep", () => {
  it("finds what no hook told of", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.start();
    const admission = await coordinator.admitSpawn(spawnOf({ task: "a" }));
    if (admission.kind === "refused") throw new Error(admission.reason);
    const child = w.host.spawn(spawnOf({ task: "a" }));
    await coordinator.confirmSpawn(admission.envelope, child);
    w.host.end(child.childSessionKey, { outcome: "completed" });
    await w.clock.advance(w.settings.sweepMs + 1_000);
    expect(eventOf(w, "step.completed")?.payload.via).toBe("reconciled");
  });

  it("deletes texts that were kept long enough", async () => {
    const w = createWorld({ contentMs: 120_000 });
    const coordinator = w.start();
    await coordinator.start();
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    await w.clock.advance(100_000);
    expect(w.ledger.contents.size).toBe(2);
    await w.clock.advance(200_000);
    expect(w.ledger.contents.size).toBe(0);
  });

  it("goes on after a ledger that failed", async () => {
    const w = createWorld();
    let broken = true;
    const coordinator = w.start((store) => ({
      ...store,
      list: (query) =>
        broken ? Promise.reject(new CoordinationError("LEDGER_BUSY", "busy")) : store.list(query),
    }));
    await coordinator.start();
    expect(w.lines).toContainEqual({ level: "error", message: "the sweep failed: busy" });
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    const child = w.host.spawn(spawnOf({ task: "a" }));
    broken = false;
    await w.clock.advance(w.settings.sweepMs + 1_000);
    expect(eventOf(w, "step.acknowledged")?.payload.childSessionKey).toBe(child.childSessionKey);
  });

  it("logs once why its sweeps fail, and anew after one that went well", async () => {
    const w = createWorld();
    let isRefused = true;
    const coordinator = w.start((store) => ({
      ...store,
      list: (query) =>
        isRefused ? Promise.reject(new CoordinationError("LEDGER_TOO_NEW", "schema 99")) : store.list(query),
    }));
    await coordinator.start();
    const listLines = () => w.lines.filter(({ message }) => message === "the sweep failed: schema 99");
    await w.clock.advance(3 * w.settings.sweepMs);
    expect(listLines()).toHaveLength(1);
    isRefused = false;
    await w.clock.advance(w.settings.sweepMs);
    isRefused = true;
    await w.clock.advance(3 * w.settings.sweepMs);
    expect(listLines()).toHaveLength(2);
  });
});

describe("a host that", () => {
  const hostile: Readonly<Record<string, () => Promise<never>>> = {
    throws: () => {
      throw new Error("not today");
    },
    rejects: () => Promise.reject(new Error("not today")),
    hangs: () => new Promise<never>(() => undefined),
  };

  it.each(Object.entries(hostile))("%s holds up neither other steps nor the deadline", async (_, says) => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    await coordinator.admitSpawn(spawnOf({ task: "b" }));
    w.host.says = says;
    const started = coordinator.start();
    await w.clock.advance(20_000);
    await started;
    await w.clock.advance(
      w.settings.stepTimeoutMs + w.settings.acknowledgeMs + 2 * w.settings.sweepMs + 60_000,
    );
    expect(factsOf(w).filter((type) => type === "step.timed_out")).toHaveLength(2);
    expect(factsOf(w).at(-1)).toBe("coordination.terminal");
  });

  it("hangs does not hang the stop", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    w.host.says = () => new Promise(() => undefined);
    void coordinator.start();
    await waitUntilSettled();
    expect(w.host.asked).toHaveLength(1);
    await coordinator.stop();
    expect(w.clock.pending).toBe(0);
  });
});

describe("stop", () => {
  const stopCoordinator = async (w: World, coordinator: Coordinator): Promise<void> => {
    await coordinator.stop();
    const { length } = w.ledger.events().flat();
    expect(w.clock.pending).toBe(0);
    await w.clock.advance(24 * 3_600_000);
    expect(w.clock.pending).toBe(0);
    expect(w.ledger.events().flat()).toHaveLength(length);
  };

  it("leaves no timer, whatever was waited for", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.start();
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    await coordinator.admitSpawn(spawnOf({ task: "b", trace: "trace-2" }));
    expect(w.clock.pending).toBeGreaterThan(2);
    await stopCoordinator(w, coordinator);
  });

  it("in the middle of the first pass ends that pass before it resolves", async () => {
    const w = createWorld();
    const coordinator = w.start();
    for (let index = 0; index < 5; index += 1)
      await coordinator.admitSpawn(spawnOf({ task: `t${index}`, trace: `trace-${index}` }));
    const countErrors = (): number => w.lines.filter(({ level }) => level === "error").length;
    const started = coordinator.start();
    await stopCoordinator(w, coordinator);
    await started;
    expect(countErrors()).toBe(0);
  });

  it("lets a late hook still be recorded, without a timer for it", async () => {
    const w = createWorld();
    const coordinator = w.start();
    await coordinator.stop();
    await coordinator.admitSpawn(spawnOf({ task: "a" }));
    expect(factsOf(w)).toHaveLength(3);
    expect(w.clock.pending).toBe(0);
  });
});
