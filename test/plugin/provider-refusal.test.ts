import { describe, expect, it } from "vitest";
import { readProviderRefusal } from "../../src/plugins/openclaw/host/provider-refusal.ts";

/** As the host keeps the answer of a call that failed. */
const createFailed = (errorCode: string, errorMessage: string): unknown => ({
  role: "assistant",
  content: [],
  provider: "mock",
  stopReason: "error",
  errorCode,
  errorMessage,
});

describe("readRefusal", () => {
  it("reads a rate limit with and without retry-after", () => {
    expect(readProviderRefusal(createFailed("429", "429 slow down; Retry-After: 2 seconds"))).toEqual({
      provider: "mock",
      retryAfterMs: 2_000,
    });
    expect(readProviderRefusal(createFailed("429", "429 slow down"))).toEqual({ provider: "mock" });
    expect(readProviderRefusal(createFailed("rate_limit_exceeded", "slow down"))).toBeDefined();
  });

  it.each(["503", "529"])("takes %s for an overload", (status) => {
    expect(readProviderRefusal(createFailed(status, `${status} busy`))).toEqual({ provider: "mock" });
  });

  it.each([
    ["another error", createFailed("500", "500 broken")],
    ["an empty account", createFailed("insufficient_quota", "429 pay first")],
    ["an answer that speaks of limits", { role: "assistant", stopReason: "stop", errorMessage: "429" }],
    ["a message of a person", { role: "user", stopReason: "error", errorCode: "429" }],
    ["nothing", undefined],
  ])("finds no refusal in %s", (_, message) => {
    expect(readProviderRefusal(message)).toBeUndefined();
  });
});
