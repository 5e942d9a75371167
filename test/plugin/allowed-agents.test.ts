import { describe, expect, it } from "vitest";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  mayRun,
  type AgentRequester,
  type WantedAgent,
} from "../../src/plugins/openclaw/host/allowed-agents.ts";

const MAIN: AgentRequester = { agent: "main" as AgentId, isSandboxed: false };
const createWanted = (agent: string, isProgram = false): WantedAgent => ({
  agent: agent as AgentId,
  isProgram,
});
const may = (agents: Parameters<typeof mayRun>[0]["agents"], agent: string): boolean =>
  mayRun({ agents }, MAIN, createWanted(agent));

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

  it("are all of the host's with a star, and no programs but those that are named", () => {
    const anyone = { defaults: { subagents: { allowAgents: ["*"] } } };
    expect(may(anyone, "admin")).toBe(true);
    expect(mayRun({ agents: anyone }, MAIN, createWanted("coder", true))).toBe(false);
    expect(mayRun({ agents: {} }, MAIN, createWanted("main", true))).toBe(false);
    const named = { defaults: { subagents: { allowAgents: ["coder"] } } };
    expect(mayRun({ agents: named }, MAIN, createWanted("coder", true))).toBe(true);
  });

  it("are itself alone in a sandbox, whatever is listed", () => {
    const anyone = { defaults: { subagents: { allowAgents: ["*", "coder"] } } };
    const sandboxed = { ...MAIN, isSandboxed: true };
    expect(mayRun({ agents: anyone }, sandboxed, createWanted("main"))).toBe(true);
    expect(mayRun({ agents: anyone }, sandboxed, createWanted("admin"))).toBe(false);
    expect(mayRun({ agents: anyone }, sandboxed, createWanted("coder", true))).toBe(false);
  });
});
