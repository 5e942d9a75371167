import { describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { parseHostAgentId } from "../../src/agents/coordination/contracts/host-agent-id.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import { buildGate } from "../../src/agents/coordination/runtime/held-results/gate-of.ts";

const parseConfig = (phase1: object) => parsePluginConfig({ coordination: { phase1 } });
const LINT = { kind: "pattern", pattern: "x" } as const;

/** A JSON Schema whose innermost property lies so many properties deep. */
const nestSchema = (levels: number): object =>
  levels === 0
    ? { type: "string" }
    : { type: "object", required: ["a"], properties: { a: nestSchema(levels - 1) } };

const readRefusal = (phase1: object): unknown => {
  try {
    parseConfig(phase1);
    return undefined;
  } catch (error) {
    return error;
  }
};

describe("an agent's gate", () => {
  const spellings = ["coder", "CODER", "Coder", " coder", "coder ", "\tcoder\n"];
  const pairs = spellings.flatMap((demanded) => spellings.map((spelled) => [demanded, spelled] as const));

  it.each(pairs)("that is demanded of %j holds for a child of %j", (demanded, spelled) => {
    const { gates } = parseConfig({
      gates: {
        verifiers: { lint: LINT },
        agents: { [demanded]: { checks: ["lint"], requireConfidence: true } },
      },
    });
    const gate = buildGate(gates, { agentId: spelled as AgentId, runner: "subagent", plugins: [] });
    expect(gate).toMatchObject({ checks: ["lint"], requireConfidence: true });
  });

  it("that is demanded of one agent holds for no other", () => {
    const agents = { "my coder": { checks: ["lint"] } };
    const { gates } = parseConfig({ gates: { verifiers: { lint: LINT }, agents } });
    const checksOf = (agentId: string) =>
      buildGate(gates, { agentId: agentId as AgentId, runner: "subagent", plugins: [] })?.checks;
    expect(checksOf("My-Coder")).toEqual(["lint"]);
    expect(checksOf("mycoder")).toBeUndefined();
    expect(checksOf("main")).toBeUndefined();
  });
});

describe("the host's form of an agent's id", () => {
  it.each([
    ["coder", "coder"],
    [" CODER ", "coder"],
    ["my coder", "my-coder"],
    ["--coder--", "coder"],
    ["co_der-2", "co_der-2"],
    ["", "main"],
    ["  ", "main"],
    ["!!", "main"],
    ["x".repeat(100), "x".repeat(64)],
  ])("of %j is %j, and is that of itself", (spelling, id) => {
    expect(parseHostAgentId(spelling)).toBe(id);
    expect(parseHostAgentId(id)).toBe(id);
  });
});

describe("a check of the operator's", () => {
  it("may be a schema with objects in objects", () => {
    const schema = nestSchema(6);
    const { gates } = parseConfig({ gates: { verifiers: { shape: { kind: "schema", schema } } } });
    expect(gates.verifiers["shape"]).toMatchObject({ kind: "schema", schema });
  });

  it("may not be one without end", () => {
    const verifiers = { shape: { kind: "schema", schema: nestSchema(40) } };
    expect(readRefusal({ gates: { verifiers } })).toMatchObject({ code: "CONFIG_INVALID" });
  });
});

describe("a name that names nothing", () => {
  it.each([
    [
      { gates: { verifiers: { lint: LINT }, agents: { coder: { checks: ["lint", "nope"] } } } },
      "gates.agents.coder.checks[1]",
    ],
    [{ gates: { agents: { coder: { checks: ["constructor"] } } } }, "gates.agents.coder.checks[0]"],
    [
      { escalations: { notify: [{ channel: "chat" }, { channel: "webhook:nope" }] } },
      "escalations.notify[1].channel",
    ],
    [{ escalations: { notify: [{ channel: "cli" }] } }, "escalations.notify[0].channel"],
    [{ escalations: { notify: [{ channel: "gateway" }] } }, "escalations.notify[0].channel"],
  ])("is refused where it stands: %j", (phase1, path) => {
    const message = expect.stringContaining(`coordination.phase1.${path}:`) as unknown;
    expect(readRefusal(phase1)).toMatchObject({ code: "CONFIG_INVALID", recovery: "fix-config", message });
  });

  it("is none where it does", () => {
    const webhooks = { ops: { url: "https://example.com/x", secret: "a secret of some length" } };
    const notify = ["chat", "host", "webhook:ops", "plugin:any"].map((channel) => ({ channel }));
    const agents = { coder: { checks: ["lint"] } };
    expect(
      readRefusal({ gates: { verifiers: { lint: LINT }, agents }, escalations: { webhooks, notify } }),
    ).toBeUndefined();
  });
});
