/** Owns: that work is done once for all who ask for it, and again after a failure. */
import { expect, it } from "vitest";
import { createOnceLoader } from "../../src/agents/coordination/std/load-once.ts";

it("makes a value once, and again only after a failure", () => {
  const results = [new Error("first"), 1, 2];
  const load = createOnceLoader(() => {
    const result = results.shift();
    if (result instanceof Error) throw result;
    return result;
  });
  expect(load).toThrow("first");
  expect([load(), load()]).toEqual([1, 1]);
});

it("makes a promised value once for all who wait for it, and again only after a failure", async () => {
  const results = [new Error("first"), 1, 2];
  const load = createOnceLoader(async () => {
    const result = await Promise.resolve(results.shift());
    if (result instanceof Error) throw result;
    return result;
  });
  const together = await Promise.allSettled([load(), load()]);
  expect(together.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await Promise.all([load(), load()])).toEqual([1, 1]);
  expect(await load()).toBe(1);
});
