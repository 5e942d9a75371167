import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { resolveAllowedModelRef, resolveDefaultModelForAgent } from "openclaw/plugin-sdk/agent-runtime";
import { describe, expect, it } from "vitest";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import { findChildDifferences } from "../../src/agents/coordination/gates/child-differences.ts";
import { createHostNames, type HostNames } from "../../src/plugins/openclaw/host/host-names.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

function createNames(config: object, entry: object = {}, env: NodeJS.ProcessEnv = {}): HostNames {
  const api = {
    // As the host's own, when the plugin is registered.
    resolvePath: () => undefined,
    runtime: {
      config: { current: () => config },
      modelConfig: { resolveAllowedModelRef, resolveDefaultModelForAgent },
      agent: { session: { getSessionEntry: () => entry } },
    },
  };
  return createHostNames(api as unknown as OpenClawPluginApi, env);
}

const CONFIG = {
  agents: { defaults: { models: { "openai/large": { alias: "Best" }, "openai/small": {} } } },
  models: {
    providers: {
      openai: {
        models: [
          { id: "small", reasoning: false },
          { id: "large", reasoning: true },
        ],
      },
    },
  },
};

const OF_ANTHROPIC = { agents: { defaults: { model: { primary: "anthropic/claude-opus-5" } } } };

describe("the model that a spawn means", () => {
  it.each([
    ["openai/large", "openai/large"],
    [" best ", "openai/large"],
    ["BEST@work", "openai/large"],
    ["small", "small"],
    ["openai/large@work", "openai/large"],
    ["anthropic/sonnet@20250929", "anthropic/sonnet@20250929"],
    ["anthropic/sonnet@20250929@work", "anthropic/sonnet@20250929"],
    ["lmstudio/qwen@q4_k_m", "lmstudio/qwen@q4_k_m"],
    ["workers-ai/@cf/meta", "workers-ai/@cf/meta"],
  ])("%s is %s", (name, expected) => {
    expect(createNames(CONFIG).modelOf(name, "main")).toBe(expected);
  });

  it("is what was written where the configuration says nothing", () => {
    expect(createNames({}).modelOf("best", "main")).toBe("best");
  });

  it.each([
    ["sonnet", "claude-sonnet-5"],
    ["anthropic/sonnet", "anthropic/claude-sonnet-5"],
    ["Anthropic/Opus-4.6@work", "anthropic/claude-opus-4-6"],
    ["google/gemini-3-pro", "google/gemini-3.1-pro-preview"],
    ["openrouter/auto", "openrouter/openrouter/auto"],
    ["openai/large", "openai/large"],
  ])("is the one that the host takes for its short name: %s is %s", (name, expected) => {
    expect(createNames(OF_ANTHROPIC).modelOf(name, "main")).toBe(expected);
  });

  it("is compared as the host runs it: only another model is a difference", () => {
    const model = createNames(OF_ANTHROPIC).modelOf("sonnet", "main");
    const compare = (ran: string) =>
      findChildDifferences({ agentId: "main" as AgentId, model }, { model: ran });
    expect(compare("anthropic/claude-sonnet-5")).toEqual([]);
    expect(compare("anthropic/claude-haiku-4-5")).toMatchObject([{ field: "model" }]);
  });
});

describe("a folder", () => {
  it("is its real path, and itself where there is none", () => {
    using temp = createTempFolder();
    mkdirSync(temp.file("real"));
    symlinkSync(temp.file("real"), temp.file("link"));
    const names = createNames({});
    expect(names.folderOf(temp.file("link"))).toBe(realpathSync(temp.file("real")));
    expect(names.folderOf(join(temp.path, "none"))).toBe(join(temp.path, "none"));
  });

  it.each([
    ["/srv/none/../nobody/", {}, "/srv/nobody"],
    [" none ", {}, resolve("none")],
    ["~", { HOME: "/home/nobody" }, "/home/nobody"],
    ["~/none", { HOME: "/home/nobody" }, "/home/nobody/none"],
    ["~/none", { HOME: "undefined", USERPROFILE: "/users/nobody" }, "/users/nobody/none"],
    ["~/none", { HOME: "/home/nobody", OPENCLAW_HOME: "~/claw" }, "/home/nobody/claw/none"],
    ["~/none", { HOME: "/home/nobody", OPENCLAW_HOME: "/srv/claw" }, "/srv/claw/none"],
    ["~nobody", { HOME: "/home/nobody" }, resolve("~nobody")],
  ])("%j with %j is %s", (path, env, expected) => {
    expect(createNames({}, {}, env).folderOf(path)).toBe(expected);
  });
});

describe("how much a session thinks", () => {
  const session = { sessionKey: "agent:main:subagent:1", agentId: "main", provider: "openai" };

  it("is what its entry says", () => {
    expect(createNames(CONFIG, { thinkingLevel: "high" }).thinkingOf({ ...session, model: "large" })).toBe(
      "high",
    );
    expect(createNames(CONFIG).thinkingOf({ ...session, model: "large" })).toBe(undefined);
  });

  it("is nothing where its model cannot, whatever its entry says", () => {
    expect(createNames(CONFIG, { thinkingLevel: "high" }).thinkingOf({ ...session, model: "small" })).toBe(
      "off",
    );
  });
});
