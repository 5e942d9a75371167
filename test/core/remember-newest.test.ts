import { describe, expect, it } from "vitest";
import { rememberNewest } from "../../src/agents/coordination/std/remember-newest.ts";

describe("a map of the newest entries", () => {
  it("forgets the oldest entry beyond its size", () => {
    const entries = new Map<string, number>();
    for (const [key, value] of Object.entries({ a: 1, b: 2, c: 3 })) rememberNewest(entries, key, value, 2);
    expect([...entries]).toEqual([
      ["b", 2],
      ["c", 3],
    ]);
  });

  it("counts an entry that is set again as the newest", () => {
    const entries = new Map([
      ["a", 1],
      ["b", 2],
    ]);
    rememberNewest(entries, "a", 3, 2);
    rememberNewest(entries, "c", 4, 2);
    expect([...entries]).toEqual([
      ["a", 3],
      ["c", 4],
    ]);
  });
});
