/** Calls that are ruled on, and steps that begin, while the work of an isolated step is merged back. */
import { describe, expect, it } from "vitest";
import type { WriteCall } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createFakeWorktrees, type FakeWorktrees } from "../support/fake-worktrees.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { BASE, createIsolated, runIsolated } from "./isolated-run.ts";
import { createRetries, plan, PLAN_ID, step } from "./planned-world.ts";

const createCall = (session: WriteCall["session"], path: string): WriteCall => ({
  session,
  tool: "write",
  callKey: "call-1",
  reads: [],
  targets: [{ at: { path, folder: "/nowhere" }, replaces: true }],
});

interface SlowKeep {
  readonly isKeeping: boolean;
  finish(): void;
}

/** Git does not end keeping the work for people until it is let. */
function slowKeepDown(worktrees: FakeWorktrees): SlowKeep {
  const finished = Promise.withResolvers<undefined>();
  const keep = worktrees.keep.bind(worktrees);
  let isKeeping = false;
  worktrees.keep = async (worktree) => {
    isKeeping = true;
    await finished.promise;
    return keep(worktree);
  };
  return {
    get isKeeping() {
      return isKeeping;
    },
    finish: () => {
      finished.resolve(undefined);
    },
  };
}

describe("while the work of an isolated step is merged back", () => {
  it("a call is answered, though git takes its time to keep the work for people", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE });
    const slowKeep = slowKeepDown(worktrees);
    const work = { a: { "a.txt": "mine\n" }, b: { "a.txt": "yours\n" } };
    const steps = [step("a"), createIsolated("b", { dependsOn: ["a"] }), step("c")];
    const run = await runIsolated(work, plan(steps), { worktrees, scripts: { c: ["work"] } });
    expect(slowKeep.isKeeping).toBe(true);
    let answer: string | undefined;
    const call = createCall(OWNER, "/nowhere/other.txt");
    const answered = run.coordinator.arbiter.request(call).then(({ kind }) => (answer = kind));
    await run.advance(100);
    expect(answer).toBe("granted");
    slowKeep.finish();
    await answered;
    await run.advance(100);
    expect(run.events("worktree.conflicted")).toHaveLength(1);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(3_000);
    await run.close();
  });

  it("a file that was written before the merge failed is not overwritten by who does not know of it", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE, "b.txt": "b\n" });
    const slowKeep = slowKeepDown(worktrees);
    const write = worktrees.write.bind(worktrees);
    worktrees.write = (worktree, file) =>
      file.path === "b.txt" ? Promise.resolve("not_writable") : write(worktree, file);
    const work = { a: { "a.txt": "new\n", "b.txt": "new\n" } };
    const run = await runIsolated(work, plan([createIsolated("a"), step("b")]), {
      worktrees,
      scripts: { a: [endDone()], b: ["work"] },
    });
    expect(slowKeep.isKeeping).toBe(true);
    expect(worktrees.folder.get("a.txt")).toBe("new\n");
    const sibling = run.ordersOf("b")[0]!.childSessionKey;
    const answered = run.coordinator.arbiter.request(createCall(sibling, "/nowhere/a.txt"));
    await run.advance(100);
    expect((await answered).kind).not.toBe("granted");
    expect(run.events("conflict.detected")).toHaveLength(1);
    slowKeep.finish();
    await run.advance(100);
    expect(run.events("worktree.conflicted")).toHaveLength(1);
    expect(run.events("resource.changed")).toHaveLength(1);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(3_000);
    await run.close();
  });

  it("a file is not written that a step declares which began meanwhile", async () => {
    const worktrees = createFakeWorktrees({ "a.txt": BASE });
    const compared = Promise.withResolvers<undefined>();
    const compare = worktrees.compare.bind(worktrees);
    worktrees.compare = async (worktree) => {
      await compared.promise;
      return compare(worktree);
    };
    const declaring = step("b", { resources: ["file:/nowhere/a.txt"], ...createRetries(1) });
    const run = await runIsolated({ a: { "a.txt": "new\n" } }, plan([createIsolated("a"), declaring]), {
      worktrees,
      scripts: { a: [endDone()], b: [endFailing(), "work"] },
    });
    await run.advance(3_000);
    expect(run.ordersOf("b")).toHaveLength(2);
    compared.resolve(undefined);
    await run.advance(100);
    expect(run.events("worktree.conflicted")[0]?.payload.files).toEqual([{ path: "a.txt", because: "held" }]);
    expect(worktrees.folder.get("a.txt")).toBe(BASE);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(3_000);
    await run.close();
  });
});
