/** Owns: how calls are ruled on while the log of one coordination is damaged. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { PluginHooks } from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import { createShellCall, requireRefused, write } from "./arbiter-calls.ts";
import { openScene, type SceneOptions } from "./arbiter-scene.ts";
import { OWNER } from "../support/fake-clock-host.ts";

const OTHER = "agent:main:other" as SessionKey;

/** A scene in which `damage` makes the log of a coordination unreadable for a process that takes over. */
async function openDamageable(options: SceneOptions = {}) {
  let damagedId: string | undefined;
  const s = await openScene({
    ...options,
    wrap: (store) => ({
      ...store,
      read: (runId, range) =>
        runId === damagedId
          ? Promise.reject(new CoordinationError("LEDGER_CORRUPT", `${runId} is damaged`))
          : store.read(runId, range),
    }),
  });
  const damage = async (runId: string): Promise<void> => {
    damagedId = runId;
    await s.restart();
    s.lines.length = 0;
  };
  return { s, damage };
}

/** Step `above` of plan-1 has written 1.md, and step `inside` of plan-2 works for it. */
async function openPlanInPlan(options: SceneOptions = {}) {
  const { s, damage } = await openDamageable(options);
  await s.plan([{ stepId: "above", priority: "low" }]);
  const ownerSession = s.sessionOf("above");
  await s.does(write(s, ownerSession, { "1.md": "above" }));
  await s.plan([{ stepId: "inside" }], { coordinationId: "plan-2", ownerSession });
  return { s, inside: s.sessionOf("inside"), damageOuterLog: () => damage("plan-1") };
}

describe("while the log of an outer plan cannot be read", () => {
  it("a step of the inner plan is told who holds a file", async () => {
    const { s, inside, damageOuterLog } = await openPlanInPlan();
    await using _ = s;
    await s.does(write(s, await s.child("b", { source: OTHER }), { "2.md": "b" }));
    await damageOuterLog();
    const answer = requireRefused(await s.does(write(s, inside, { "2.md": "i" })));
    expect(answer.sentence).toContain("held by step-1 of coordination co-1");
    s.lines.length = 0;
  });

  it("a step of the inner plan gets what the outer step holds that has it work", async () => {
    const { s, inside, damageOuterLog } = await openPlanInPlan();
    await using _ = s;
    await damageOuterLog();
    expect((await s.does(write(s, inside, { "1.md": "i" }))).kind).toBe("granted");
    expect(await s.holders("1.md")).toContain("plan-2/inside");
    expect(s.events("conflict.detected")).toEqual([]);
    s.lines.length = 0;
  });

  it("anybody may change what the outer step wrote and does not hold any more", async () => {
    const { s, inside, damageOuterLog } = await openPlanInPlan();
    await using _ = s;
    await s.coordinator.arbiter.release(1);
    await damageOuterLog();
    expect((await s.does(write(s, inside, { "1.md": "i" }))).kind).toBe("granted");
    expect(await s.holders("1.md")).toEqual(["plan-2/inside"]);
    s.lines.length = 0;
  });

  it("others are refused what the outer step holds, also where a plugin is asked", async () => {
    const sides: (string | undefined)[] = [];
    const hooks: PluginHooks = {
      hasAny: () => true,
      arbitrate: ({ holders }) => {
        sides.push(...holders.map(({ stepId, agentId }) => `${stepId} ${agentId}`));
        return Promise.resolve(undefined);
      },
      decide: () => Promise.resolve(undefined),
    };
    const { s, damageOuterLog } = await openPlanInPlan({ dependencies: { hooks } });
    await using _ = s;
    const b = await s.child("b", { source: OTHER });
    await damageOuterLog();
    const answer = requireRefused(await s.does(write(s, b, { "1.md": "b" })));
    expect(answer.sentence).toContain("held by above of coordination plan-1");
    expect(sides).toEqual(["above undefined"]);
    s.lines.length = 0;
  });

  it("who wins over the outer step gets the file", async () => {
    const { s, damageOuterLog } = await openPlanInPlan({ conflicts: { strategy: "priority_wins" } });
    await using _ = s;
    const b = await s.child("b", { source: OTHER });
    await damageOuterLog();
    expect((await s.does(write(s, b, { "1.md": "b" }))).kind).toBe("granted");
    expect(await s.holders("1.md")).toContain("co-1/step-1");
    s.lines.length = 0;
  });

  it("a merge finds no base that the outer step began from", async () => {
    const { s, damageOuterLog } = await openPlanInPlan({ conflicts: { strategy: "merge_if_safe" } });
    await using _ = s;
    const b = await s.child("b", { source: OTHER });
    await damageOuterLog();
    expect(requireRefused(await s.does(write(s, b, { "1.md": "b" }))).sentence).toContain("1.md");
    s.lines.length = 0;
  });

  it("a shell command is run beside what the outer step holds", async () => {
    const { s, damageOuterLog } = await openPlanInPlan();
    await using _ = s;
    const b = await s.child("b", { source: OTHER });
    await damageOuterLog();
    expect((await s.does(createShellCall(s, b))).kind).toBe("granted");
    s.lines.length = 0;
  });
});

describe("while the log of one coordination of an owner cannot be read", () => {
  async function openTwo() {
    const { s, damage } = await openDamageable();
    for (const trace of ["first", "second"]) {
      await s.child(trace, { trace });
      await s.clock.advance(1);
    }
    await s.does(write(s, await s.child("b", { source: OTHER }), { "1.md": "b" }));
    return { s, damage };
  }

  it.each(["co-1", "co-2"])("the owner is ruled on by the other one: %s", async (damagedId) => {
    const { s, damage } = await openTwo();
    await using _ = s;
    await damage(damagedId);
    requireRefused(await s.does(write(s, OWNER, { "1.md": "o" })));
    expect((await s.does(write(s, OWNER, { "2.md": "o" }))).kind).toBe("granted");
    expect(await s.holders("2.md")).toEqual([`${damagedId === "co-1" ? "co-2" : "co-1"}/@owner`]);
    s.lines.length = 0;
  });

  it.each(["co-1", "co-2"])("what it claimed in the other one ends with its turn: %s", async (damagedId) => {
    const { s, damage } = await openTwo();
    await using _ = s;
    await damage(damagedId);
    await s.does(write(s, OWNER, { "2.md": "o" }));
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(await s.holders("2.md")).toEqual([]);
    s.lines.length = 0;
  });

  it("nobody rules where it has no other one", async () => {
    const { s, damage } = await openDamageable();
    await using _ = s;
    await s.child("first");
    await damage("co-1");
    await expect(s.ask(write(s, OWNER, { "1.md": "o" }))).rejects.toMatchObject({ code: "LEDGER_CORRUPT" });
    s.lines.length = 0;
  });
});
