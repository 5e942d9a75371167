import { describe, expect, it } from "vitest";
import type { Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { formatUnmetCriteria } from "../../src/agents/coordination/runtime/held-results/gave-up.ts";
import { judgePlan } from "../../src/agents/coordination/runtime/held-results/judge-plan.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { endDone, endFailing, createScriptedRunner } from "../support/scripted-runner.ts";
import { contentRef } from "./gates-scene.ts";
import { listEvents, createGatesWith, waitUntilQuiet } from "./gates-world.ts";
import {
  admit,
  dispatch,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  startStep,
} from "./planned-scene.ts";
import { plan, scriptOf, step, submitTo } from "./planned-world.ts";

const criteria = [
  { key: "all-done" },
  { key: "clean", when: "{{steps.a.outputs.clean}}" },
  { key: "deep", when: "{{steps.a.outputs.found.yes}}" },
];

async function judgeScene(outputs: string | undefined, end = finish("a", 1, { output: contentRef("out") })) {
  const scene = planScene(
    openPlan({ steps: 1, plan: { successCriteria: criteria } }),
    admit(planStep("a")),
    dispatch("a"),
    startStep("a"),
    end,
  );
  const get = (sha256: string) => Promise.resolve(sha256 === contentRef("out").sha256 ? outputs : undefined);
  const met = await judgePlan(
    {
      runs: { findOnDisk: (_: string, find: (state: Coordination) => unknown) => find(scene.state) },
      content: { get },
    } as never,
    scene.open.coordinationId,
  );
  return Object.fromEntries((met ?? []).map((each) => [each.key, each.met]));
}

describe("how far a plan reached what it is for", () => {
  it("is read from the outputs of its steps: true is met, and nothing else", async () => {
    expect(await judgeScene('{"clean":true,"found":{"yes":true}}')).toEqual({
      "all-done": true,
      clean: true,
      deep: true,
    });
    for (const value of ["1", '"true"', "false", "null", "[true]", '{"yes":1}'])
      expect(await judgeScene(`{"clean":${value},"found":${value}}`)).toEqual({
        "all-done": true,
        clean: false,
        deep: false,
      });
  });

  it("is not reached where there are no such outputs, or none are kept", async () => {
    expect(await judgeScene("{}")).toMatchObject({ clean: false, deep: false });
    expect(await judgeScene(undefined)).toMatchObject({ "all-done": true, clean: false });
    expect(await judgeScene('{"__proto__":{"clean":true}}')).toMatchObject({ clean: false });
  });

  it("is not reached by steps that did not complete", async () => {
    expect(await judgeScene('{"clean":true,"found":{"yes":true}}', failStep("a"))).toEqual({
      "all-done": false,
      clean: false,
      deep: false,
    });
  });

  it("is recorded before the owner is told, survives a restart, and makes the end a give-up", async () => {
    const world = createWorld(
      {},
      createScriptedRunner(scriptOf({ a: [endDone({ clean: false })], "@delivery": ["work"] })),
      {
        gates: createGatesWith([]),
      },
    );
    const run = await submitTo(world, plan([step("a")], { successCriteria: criteria.slice(0, 2) }));
    await waitUntilQuiet(world);
    expect(listEvents(world, "plan.judged").map(({ payload }) => payload.successCriteria)).toEqual([
      [
        { key: "all-done", met: true },
        { key: "clean", met: false },
      ],
    ]);
    const [order, ...more] = run.ordersOf("@delivery");
    expect(more).toEqual([]);
    expect(order?.message).toContain("partial, 1 of 1 steps completed; gave up: clean not met.\n");
    await run.restart();
    world.plans.end("@delivery", endDone());
    await waitUntilQuiet(world);
    expect(listEvents(world, "plan.judged")).toHaveLength(1);
    expect((await run.view()).status).toBe("partial");
    await run.close();
  });

  it("tells the owner of many that are not met in a bounded sentence", () => {
    const unmet = Array.from({ length: 64 }, (_, index) => ({ key: `criterion-${index}`, met: false }));
    const text = formatUnmetCriteria([{ key: "met", met: true }, ...unmet]);
    expect(text).toMatch(/^gave up: criterion-0, .*criterion-19 and 44 more not met$/u);
    expect(formatUnmetCriteria([{ key: "met", met: true }])).toBe("");
    expect(formatUnmetCriteria(undefined)).toBe("");
  });

  it("is all met by a plan that succeeds, and none of it by one that fails", async () => {
    for (const [script, status] of [
      [endDone({ clean: true }), "success"],
      [endFailing(), "failed"],
    ] as const) {
      const world = createWorld({}, createScriptedRunner(scriptOf({ a: [script] })), {
        gates: createGatesWith([]),
      });
      const run = await submitTo(world, plan([step("a")], { successCriteria: criteria.slice(0, 2) }));
      await waitUntilQuiet(world);
      const [terminal] = listEvents(world, "coordination.terminal");
      expect(terminal?.payload.status).toBe(status);
      expect(run.ordersOf("@delivery")[0]?.message.includes("gave up: all-done, clean not met.\n")).toBe(
        status === "failed",
      );
      expect(terminal?.payload.successCriteria?.every(({ met }) => met)).toBe(status === "success");
      await run.close();
    }
  });
});
