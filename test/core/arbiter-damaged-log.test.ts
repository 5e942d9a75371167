/** Owns: how calls are ruled on while the log of one coordination is damaged. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { PluginHooks } from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import { createShellCall, requireRefused, write } from "./arbiter-calls.ts";
import { openScene, type SceneOptions } from "./arbiter-scene.ts";

const OTHER = "agent:main:other" as SessionKey;

/** Step `above` of plan-1 has written 1.md, and step `inside` of plan-2 works for it. */
async function openPlanInPlan(options: SceneOptions = {}) {
  const disk = { isDamaged: false };
  const s = await openScene({
    ...options,
    wrap: (store) => ({
      ...store,
      read: (runId, range) =>
        disk.isDamaged && runId === "plan-1"
          ? Promise.reject(new CoordinationError("LEDGER_CORRUPT", "plan-1 is damaged"))
          : store.read(runId, range),
    }),
  });
  await s.plan([{ stepId: "above", priority: "low" }]);
  const ownerSession = s.sessionOf("above");
  await s.does(write(s, ownerSession, { "1.md": "above" }));
  await s.plan([{ stepId: "inside" }], { coordinationId: "plan-2", ownerSession });
  const damageOuterLog = async (): Promise<void> => {
    disk.isDamaged = true;
    await s.restart();
    s.lines.length = 0;
  };
  return { s, inside: s.sessionOf("inside"), damageOuterLog };
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
