/** Worktrees that git makes more slowly than their steps have time. */
import { expect, it } from "vitest";
import { createFakeWorktrees } from "../support/fake-worktrees.ts";
import { createIsolated, expectNothingLeft, runIsolated } from "./isolated-run.ts";
import { plan } from "./planned-world.ts";

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
