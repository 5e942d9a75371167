import { describe, expect, it } from "vitest";
import { createTokenBuckets, type TokenBuckets } from "../../src/agents/coordination/std/token-buckets.ts";

interface Scene {
  readonly clock: { nowMs: number };
  readonly buckets: TokenBuckets;
}

function createScene({ max = 10 }: { readonly max?: number } = {}): Scene {
  const clock = { nowMs: 1_000, now: (): number => clock.nowMs };
  return { clock, buckets: createTokenBuckets(clock, { amount: 1, perMs: 1_000, burst: 2, max }) };
}

describe("buckets of tokens", () => {
  it("give out their burst, and then say what is missing of a token", () => {
    const { clock, buckets } = createScene();
    expect([buckets.take("a"), buckets.take("a"), buckets.take("a")]).toEqual([0, 0, 1]);
    clock.nowMs += 250;
    expect(buckets.take("a")).toBe(0.75);
    expect(buckets.take("b")).toBe(0);
  });

  it("fill at their rate up to the burst, also after a refusal", () => {
    const { clock, buckets } = createScene();
    for (let calls = 0; calls < 3; calls += 1) buckets.take("a");
    clock.nowMs += 1_000;
    expect([buckets.take("a"), buckets.take("a")]).toEqual([0, 1]);
    clock.nowMs += 60_000;
    expect([buckets.take("a"), buckets.take("a"), buckets.take("a")]).toEqual([0, 0, 1]);
  });

  it("lose nothing when the time of day goes back", () => {
    const { clock, buckets } = createScene();
    buckets.take("a");
    clock.nowMs -= 500;
    expect([buckets.take("a"), buckets.take("a")]).toEqual([0, 1]);
  });

  it("are full again once they are forgotten or cleared", () => {
    const { buckets } = createScene({ max: 1 });
    for (let calls = 0; calls < 3; calls += 1) buckets.take("a");
    buckets.take("b");
    expect(buckets.take("a")).toBe(0);
    buckets.take("a");
    buckets.clear();
    expect(buckets.take("a")).toBe(0);
  });
});
