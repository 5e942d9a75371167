/** Owns: that rules for one agent stay one agent's, however a pack, the pack that extends it and the configuration spell its id. */
import { describe, expect, it, test } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { parsePolicyPack } from "../../src/agents/coordination/contracts/config/policy-pack.ts";
import { createTreeBudget } from "../../src/agents/coordination/contracts/config/tree-budget.ts";
import { findAgentEntry } from "../../src/agents/coordination/contracts/host-agent-id.ts";
import { combinePacks } from "../../src/agents/coordination/policies/combine-packs.ts";

const VERIFIERS = { tests: { kind: "command", command: "npm" } };

const createRules = (agentId: string, gate: object, rest: { privilege: object; budget: object }) => ({
  gates: { verifiers: VERIFIERS, agents: { [agentId]: gate } },
  privileges: { agents: { [agentId]: rest.privilege } },
  budget: { agents: { [agentId]: rest.budget } },
});
const createOperatorRules = (agentId: string) =>
  createRules(
    agentId,
    { checks: ["tests"] },
    { privilege: { tools: { deny: ["exec"] } }, budget: { spawns: 3 } },
  );
const createPackRules = (agentId: string) =>
  createRules(
    agentId,
    { confidenceThreshold: 0.9, checks: [] },
    { privilege: { write: ["docs/**"], tools: { deny: [] } }, budget: { spawns: 9, depth: 2 } },
  );

function expectBothRules({ gates, privileges, budget }: ReturnType<typeof parsePluginConfig>): void {
  expect(findAgentEntry(gates.agents, "coder")).toEqual({ confidenceThreshold: 0.9, checks: ["tests"] });
  expect(findAgentEntry(privileges.agents, "coder")).toEqual({
    write: ["docs/**"],
    tools: { deny: ["exec"] },
  });
  expect(createTreeBudget(budget)).toEqual({ agents: { coder: { spawns: 3, depth: 2 } } });
}

it("limits no agent whose first spelling has no limits", () => {
  const { budget } = parsePluginConfig({
    coordination: { phase1: { budget: { agents: { Coder: {}, coder: { spawns: 3 } } } } },
  });
  expect(createTreeBudget(budget)).toBeUndefined();
});

const SPELLINGS = [
  ["coder", "coder"],
  ["Coder", "coder"],
  ["coder", "Coder"],
  [" CODER", "coder!"],
] as const;

describe("rules for single agents", () => {
  test.each(SPELLINGS)("of the configuration (%j) stand in place of the pack's (%j)", (written, ofPack) => {
    const packs = { team: { version: "1.0.0", settings: createPackRules(ofPack) } };
    const phase1 = { ...createOperatorRules(written), policies: { packs, default: "team" } };
    expectBothRules(parsePluginConfig({ coordination: { phase1 } }));
  });

  test.each(SPELLINGS)(
    "of a pack (%j) stand in place of those of the pack that it extends (%j)",
    (over, base) => {
      const { settings, origins } = combinePacks([
        parsePolicyPack({ name: "base", version: "1.0.0", settings: createPackRules(base) }),
        parsePolicyPack({ name: "over", version: "1.0.0", settings: createOperatorRules(over) }),
      ]);
      expectBothRules(parsePluginConfig({ coordination: { phase1: settings } }));
      expect(origins.get("gates.agents.coder.checks")).toBe("over 1.0.0");
      expect(origins.get("gates.agents.coder.confidenceThreshold")).toBe("base 1.0.0");
    },
  );

  test.each(SPELLINGS)("stay locked (%j) for a pack that spells the agent %j", (locked, over) => {
    const base = parsePolicyPack({
      name: "base",
      version: "1.0.0",
      locked: [`gates.agents.${locked}`],
      settings: { gates: { agents: { [locked]: { confidenceThreshold: 0.9 } } } },
    });
    const settings = { gates: { agents: { [over]: { confidenceThreshold: 0.1 } } } };
    expect(() => combinePacks([base, parsePolicyPack({ name: "over", version: "1.0.0", settings })])).toThrow(
      "settings.gates.agents.coder.confidenceThreshold: 0.1 is laxer than base 1.0.0",
    );
  });

  it("are the first ones where two spellings in one pack mean the same agent", () => {
    const agents = { Coder: { confidenceThreshold: 0.8 }, coder: { confidenceThreshold: 0.2 } };
    const { settings } = parsePolicyPack({ name: "team", version: "1.0.0", settings: { gates: { agents } } });
    expect(settings).toEqual({ gates: { agents: { coder: { confidenceThreshold: 0.8 } } } });
  });

  it("of any shape are refused with their place", () => {
    const settings = { gates: { agents: { Coder: [] } } };
    const pack = parsePolicyPack({ name: "team", version: "1.0.0", settings });
    expect(() => combinePacks([pack])).toThrow("settings.gates.agents.coder");
    const list = parsePolicyPack({ name: "team", version: "1.0.0", settings: { budget: { agents: [1] } } });
    expect(() => combinePacks([list])).toThrow("settings.budget.agents");
  });
});
