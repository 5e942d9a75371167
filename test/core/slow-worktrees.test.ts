/** Worktrees that git makes more slowly than their steps have time. */
import { expect, it } from "vitest";
import { createFakeWorktrees } from "../support/fake-worktrees.ts";
import { createIsolated, expectNothingLeft, runIsolated } from "./isolated-run.ts";
import { plan, PLAN_ID } from "./planned-world.ts";

it("an attempt ends at its time though its worktree is still being made, and nothing of it is left", async () => {
  const fake = createFakeWorktrees({});
  const made = Promise.withResolvers<undefined>();
  const worktrees: typeof fake = {
    ...fake,
    open: async (...toOpen) => {
      await made.promise;
      return fake.open(...toOpen);
    },
  };
  const run = await runIsolated({}, plan([createIsolated("a", { timeoutMs: 2_000 })]), { worktrees });
  await run.advance(3_000);
  expect(await run.fates()).toMatchObject({ a: "timed_out" });
  made.resolve(undefined);
  await run.advance(1_000);
  expect(run.ordersOf("a")).toEqual([]);
  expectNothingLeft(run);
  expect((await run.view()).status).not.toBe("running");
  await run.close();
});

it("a plan that is cancelled ends though worktrees of it wait until git has time for them", async () => {
  const fake = createFakeWorktrees({});
  const worktrees: typeof fake = {
    ...fake,
    open: async (_name, _folder, { signal }) => {
      await waitUntilAborted(signal);
      return { kind: "refused", message: "it is not made any more" };
    },
  };
  const run = await runIsolated({}, plan([createIsolated("a")]), { worktrees });
  await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
  await run.advance(1_000);
  expect(await run.fates()).toMatchObject({ a: "cancelled" });
  expect((await run.view()).status).toBe("cancelled");
  await run.close();
});

/** As git's queue, which comes to the worktree only later. */
function waitUntilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}
