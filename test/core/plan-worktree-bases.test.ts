/** Isolated steps, run by a real coordinator over worktrees in memory: what they begin with. */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createFakeWorktrees } from "../support/fake-worktrees.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { BASE, createIsolated, expectNothingLeft, runIsolated } from "./isolated-run.ts";
import { createRetries, plan, PLAN_ID, step } from "./planned-world.ts";

const MERGED = { "a.txt": "new\n", "b.txt": "b\n", "c.txt": "c\n" };
const work = { a: { "a.txt": "new\n", "c.txt": "c\n" }, b: { "a.txt": "newer\n" } };
const chain = plan([createIsolated("a"), createIsolated("b", { dependsOn: ["a"] })]);

describe("an isolated step", () => {
  it("begins with what the isolated step before it merged, and may change the same lines", async () => {
    const run = await runIsolated(work, chain);
    expect(run.begun).toEqual({ a: [{ "a.txt": BASE, "b.txt": "b\n" }], b: [MERGED] });
    expect((await run.view()).status).toBe("success");
    expect(Object.fromEntries(run.worktrees.folder)).toEqual({ ...MERGED, "a.txt": "newer\n" });
    expectNothingLeft(run);
    await run.close();
  });

  it("begins without what nobody merged: changes of other people, and of steps that share the folder", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n" });
    worktrees.folder.set("b.txt", "somebody\n");
    const shared = step("shared", { dependsOn: ["a"] });
    const last = createIsolated("b", { dependsOn: ["shared"] });
    const run = await runIsolated(
      { a: { "a.txt": "new\n" }, shared: { "d.txt": "d\n" } },
      plan([createIsolated("a"), shared, last]),
      { worktrees },
    );
    expect(run.begun.b).toEqual([{ "a.txt": "new\n", "b.txt": "b\n" }]);
    await run.close();
  });

  it("begins another attempt with what was merged until then", async () => {
    const run = await runIsolated(
      work,
      plan([createIsolated("a"), createIsolated("b", { dependsOn: ["a"], ...createRetries(1) })]),
      { scripts: { b: [endFailing(), endDone()] } },
    );
    await run.advance(5_000);
    expect(run.begun.b).toEqual([MERGED, MERGED]);
    await run.close();
  });

  it("of a fork begins with what the steps merged whose results the fork keeps", async () => {
    const run = await runIsolated(work, chain, { scripts: { b: [endFailing(), endFailing(), endDone()] } });
    for (const [source, coordinationId] of [
      [PLAN_ID, "second"],
      ["second", "third"],
    ] as [CoordinationId, CoordinationId][]) {
      expect(await run.coordinator.forkPlan({ source, coordinationId })).toMatchObject({ carried: ["a"] });
      await run.advance(100);
    }
    expect(run.begun.b).toEqual([MERGED, MERGED, MERGED]);
    expect(run.worktrees.folder.get("a.txt")).toBe("newer\n");
    await run.close();
  });
});
