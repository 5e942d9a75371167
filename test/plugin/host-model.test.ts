import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ModelRequest } from "../../src/agents/coordination/ports/model-client.ts";
import { createHostModel } from "../../src/plugins/openclaw/host/host-model.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";

const ASK: ModelRequest = {
  agentId: "critic" as AgentId,
  system: "You judge.",
  prompt: "Is it so?",
  charsMax: 100,
  signal: new AbortController().signal,
};

interface HostSetup {
  readonly agents?: object;
  readonly answer?: () => Promise<object> | object;
}

const createWholeAnswer = (text = "{}") => ({ text, model: "large", stopReason: "stop" });

function createHost({
  agents = { entries: { main: {}, boss: { default: true } } },
  answer = createWholeAnswer,
}: HostSetup = {}) {
  const requests: Readonly<Record<string, unknown>>[] = [];
  const runtime = {
    config: { current: () => ({ agents }) },
    llm: { complete: async (input: (typeof requests)[number]) => (requests.push(input), await answer()) },
  };
  return { requests: requests, model: createHostModel(runtime as unknown as HostRuntime) };
}

describe("a critic that is asked through the host", () => {
  it("is asked with no session, as the agent that it is, and for no more than a verdict is long", async () => {
    const { requests, model } = createHost();
    expect(await model.complete(ASK)).toEqual({ text: "{}", model: "large" });
    expect(requests).toEqual([
      {
        agentId: "critic",
        systemPrompt: "You judge.",
        purpose: "coordination.verify",
        messages: [{ role: "user", content: "Is it so?" }],
        maxTokens: 50,
        signal: ASK.signal,
      },
    ]);
  });

  it.each<[string, object, string, boolean]>([
    ["the one that is marked", { entries: { main: {}, boss: { default: true } } }, "boss", false],
    [
      "the one that is marked, in any spelling",
      { entries: { Boss: { default: true }, a: {} } },
      "boss",
      false,
    ],
    ["another than the marked one", { entries: { main: {}, boss: { default: true } } }, "main", true],
    ["the only one", { entries: { alpha: {} } }, "alpha", false],
    ["not the only one, and not there", { entries: { alpha: {} } }, "main", true],
    ["one of several without a mark", { entries: { main: {}, reviewer: {} } }, "main", true],
    ["one of two that are marked", { entries: { a: { default: true }, b: { default: true } } }, "a", true],
    [
      "marked where marks do not count",
      { ownership: "explicit", entries: { a: { default: true }, b: {} } },
      "a",
      true,
    ],
    ["the implicit one", {}, "main", false],
  ])("is named unless the host would take it anyway: %s", async (_, agents, agentId, isNamed) => {
    const { requests, model } = createHost({ agents });
    await model.complete({ ...ASK, agentId: agentId as AgentId });
    expect(requests[0]?.["agentId"]).toBe(isNamed ? agentId : undefined);
    expect(Object.keys(requests[0] ?? {}).includes("agentId")).toBe(isNamed);
  });

  it.each(["length", "aborted", "error", "toolUse", undefined])(
    "has given no whole answer where it stopped because of %s",
    async (stopReason) => {
      const { model } = createHost({ answer: () => ({ ...createWholeAnswer(), stopReason }) });
      await expect(model.complete(ASK)).rejects.toThrow(
        `the model gave no whole answer (${stopReason ?? "unknown"})`,
      );
    },
  );

  it("says no more than it may", async () => {
    const { model } = createHost({ answer: () => createWholeAnswer("x".repeat(101)) });
    expect((await model.complete(ASK)).text).toHaveLength(100);
  });

  it("has failed where the host refuses, in the host's words", async () => {
    const refusal = new Error("Plugin LLM completion cannot override the target agent.");
    const { model } = createHost({ answer: () => Promise.reject(refusal) });
    await expect(model.complete(ASK)).rejects.toBe(refusal);
  });

  it("is asked outside of the call that is under way, which may be over before it answers", async () => {
    const client = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const { model } = createHost({ answer: () => (seen.push(client.getStore()), createWholeAnswer()) });
    await client.run("gone", () => model.complete(ASK));
    expect(seen).toEqual([undefined]);
  });
});
