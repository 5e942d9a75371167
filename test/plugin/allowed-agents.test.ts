import { describe, expect, it } from "vitest";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import { mayRun } from "../../src/plugins/openclaw/allowed-agents.ts";

const may = (agents: Parameters<typeof mayRun>[0]["agents"], agent: string): boolean =>
  mayRun({ agents }, "main" as AgentId, agent as AgentId);

describe("the agents that a plan of an agent may use", () => {
  it("are itself alone, where the operator says nothing", () => {
    expect(may({}, "main")).toBe(true);
    expect(may({}, "Main ")).toBe(true);
    expect(may({}, "admin")).toBe(false);
    expect(may(undefined, "admin")).toBe(false);
  });

  it("are those of its own list, else of the list for all", () => {
    const defaults = { subagents: { allowAgents: ["writer"] } };
    expect(may({ defaults }, "Writer")).toBe(true);
    expect(may({ defaults }, "admin")).toBe(false);
    const entries = { MAIN: { subagents: { allowAgents: ["admin"] } } };
    expect(may({ defaults, entries }, "admin")).toBe(true);
    expect(may({ defaults, entries }, "writer")).toBe(false);
    expect(may({ defaults, entries: { main: { subagents: { allowAgents: [] } } } }, "writer")).toBe(false);
  });

  it("are all with a star", () => {
    expect(may({ defaults: { subagents: { allowAgents: ["*"] } } }, "admin")).toBe(true);
  });
});
