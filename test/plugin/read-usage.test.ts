import { describe, expect, it } from "vitest";
import { readUsage } from "../../src/plugins/openclaw/usage/read-usage.ts";

const USAGE = {
  input: 1_076,
  output: 82,
  cacheRead: 64,
  cacheWrite: 0,
  totalTokens: 1_222,
  cost: { input: 0.003228, output: 0.00123, cacheRead: 0.0000192, cacheWrite: 0, total: 0.0044772 },
};
const messageOf = (change: object) => ({
  role: "assistant",
  provider: "mock",
  model: "scripted",
  usage: USAGE,
  ...change,
});

describe("what a message of the host tells of its model call", () => {
  it("is its tokens by kind, its cost in billionths and its model", () => {
    expect(readUsage(messageOf({}))).toEqual({
      model: "mock/scripted",
      inputTokens: 1_076,
      outputTokens: 82,
      cacheReadTokens: 64,
      cacheWriteTokens: 0,
      costNanoUsd: 4_477_200,
    });
  });

  it("is nothing for a person's message, the host's own copy, and what has no usage", () => {
    const zero = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: { total: 0 } };
    for (const message of [
      messageOf({ role: "user" }),
      messageOf({ usage: zero }),
      messageOf({ usage: undefined }),
      undefined,
      "text",
    ])
      expect(readUsage(message)).toBeUndefined();
  });

  it("leaves out what is no count", () => {
    const odd = { input: -5, output: Number.NaN, cacheRead: 1e300, cacheWrite: 7.9, cost: { total: "1" } };
    expect(readUsage(messageOf({ usage: odd, provider: 7, model: "" }))).toEqual({
      model: "unknown",
      inputTokens: 0,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 7,
      costNanoUsd: 0,
    });
  });
});
