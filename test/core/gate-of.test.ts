import { isStrictGate } from "../../src/agents/coordination/ledger/withheld-words.ts";
import { beforeEach, describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { GatesConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { LogFields } from "../../src/agents/coordination/ports/logger.ts";
import {
  findDoubt,
  createGating,
  buildGate,
} from "../../src/agents/coordination/runtime/held-results/gate-of.ts";
import { createQuestionPolicy } from "../../src/agents/coordination/runtime/questions/question-policy.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { graphOf, problemsOf, step, stepOf } from "./plan-scene.ts";
import { MAIN } from "./scene.ts";

const parseGates = (gates: object): GatesConfig =>
  parsePluginConfig({ coordination: { phase1: { gates } } }).gates;
const DEFAULTS = parseGates({});
const LINT = { kind: "command", command: "lint" };
const findGate = (config: GatesConfig, verify?: object, plugins: readonly string[] = []) =>
  buildGate(config, { agentId: MAIN, runner: "subagent", plugins, ...(verify && { verify }) });

describe("the configuration of gates", () => {
  it("has the floors and thresholds of OpenWOP where nothing is said", () => {
    expect(DEFAULTS).toMatchObject({
      enabled: true,
      decisionFloor: 0.5,
      confidenceThreshold: 0.7,
      criticThreshold: 0.7,
      requireConfidence: false,
      allowSelfVerification: false,
      revisionsMax: 2,
      verifyMs: 120_000,
    });
  });

  it.each([0.4999, 0, -1, 1.0001, "0.7", null, Number.NaN, Infinity])(
    "refuses %s as the floor of decisions",
    (floor) => {
      expect(() => parseGates({ decisionFloor: floor })).toThrow(/decisionFloor/u);
    },
  );

  it.each([0.5, 0.7, 1])("takes %d as the floor of decisions", (floor) => {
    expect(parseGates({ decisionFloor: floor }).decisionFloor).toBe(floor);
  });

  it.each(["confidenceThreshold", "criticThreshold"])("refuses what is no share as %s", (name) => {
    for (const value of [Number.NaN, "0.5", -0.1, 1.1, null, true])
      expect(() => parseGates({ [name]: value })).toThrow(new RegExp(name, "u"));
    expect(() => parseGates({ agents: { main: { confidenceThreshold: "high" } } })).toThrow(
      /confidenceThreshold/u,
    );
  });

  it.each([-1, 1.5, 11, "2"])("refuses %j as the bound of revisions", (revisionsMax) => {
    expect(() => parseGates({ revisionsMax })).toThrow(/revisionsMax/u);
  });
});

describe("a plan's own confidence", () => {
  it.each([Number.NaN, "0.9", null, -0.1, 1.1, true, {}])(
    "%s is refused, of a step and of the plan",
    (confidence) => {
      expect(problemsOf([step("a", [], { confidence })])).toEqual(["SCHEMA_MISMATCH steps[0].confidence"]);
      expect(problemsOf([step("a")], { confidence })).toEqual(["SCHEMA_MISMATCH confidence"]);
    },
  );

  it.each([0, 0.5, 1])("%d is taken", (confidence) => {
    expect(problemsOf([step("a", [], { confidence })], { confidence })).toEqual([]);
  });
});

describe("whether people are to begin what its planner doubts", () => {
  it("is asked below the floor, not at it, and not where nothing is said", () => {
    expect(findDoubt(DEFAULTS, 0.4999)).toEqual({ confidence: 4_999, floor: 5_000 });
    expect(findDoubt(DEFAULTS, 0.49999999)).toEqual({ confidence: 4_999, floor: 5_000 });
    expect(findDoubt(DEFAULTS, 0.5)).toBeUndefined();
    expect(findDoubt(DEFAULTS, undefined)).toBeUndefined();
    expect(findDoubt(DEFAULTS, 0)).toEqual({ confidence: 0, floor: 5_000 });
  });

  it("is asked by the operator's stricter floor", () => {
    const strict = parseGates({ decisionFloor: 0.9 });
    expect(findDoubt(strict, 0.8999)).toEqual({ confidence: 8_999, floor: 9_000 });
    expect(findDoubt(strict, 0.9)).toBeUndefined();
    expect(findDoubt(parseGates({ decisionFloor: 1 }), 0.99999)).toEqual({
      confidence: 9_999,
      floor: 10_000,
    });
  });

  it("is not asked where gates are off", () => {
    expect(findDoubt(parseGates({ enabled: false }), 0)).toBeUndefined();
  });
});

describe("what holds the results of an agent", () => {
  it("is the threshold alone where nothing is to be checked", () => {
    expect(findGate(DEFAULTS)).toEqual({ threshold: 7_000 });
    expect(isStrictGate({ threshold: 7_000 })).toBe(false);
  });

  it("is nothing where gates are off, and for the telling of the owner", () => {
    expect(findGate(parseGates({ enabled: false }))).toBeUndefined();
    expect(buildGate(DEFAULTS, { agentId: MAIN, runner: "owner", plugins: ["plugin:x"] })).toBeUndefined();
  });

  it("has the operator's words for the agent in place of those for all", () => {
    const config = parseGates({
      confidenceThreshold: 0.9,
      requireConfidence: true,
      verifiers: { lint: LINT },
      agents: { main: { checks: ["lint"], confidenceThreshold: 0.3, requireConfidence: false } },
    });
    expect(findGate(config)).toEqual({
      threshold: 3_000,
      checks: ["lint"],
      criticThreshold: 7_000,
      revisionsMax: 2,
      verifyMs: 120_000,
    });
    const other = buildGate(config, { agentId: "other" as AgentId, runner: "subagent", plugins: [] });
    expect(other).toEqual({ threshold: 9_000, requireConfidence: true });
  });

  it("takes no agent for configured because of its name", () => {
    const named = buildGate(DEFAULTS, { agentId: "constructor" as AgentId, runner: "subagent", plugins: [] });
    expect(named).toEqual({ threshold: 7_000 });
  });

  it("is made stricter by a plan, and never laxer", () => {
    const lax = { confidenceThreshold: 0.1, requireConfidence: false };
    expect(findGate(parseGates({ requireConfidence: true }), lax)).toEqual({
      threshold: 7_000,
      requireConfidence: true,
    });
    const strict = { confidenceThreshold: 0.8, requireConfidence: true };
    expect(findGate(DEFAULTS, strict)).toEqual({ threshold: 8_000, requireConfidence: true });
  });

  it("asks the operator's checks, then the plan's, then plugins', each once", () => {
    const config = parseGates({ verifiers: { lint: LINT }, agents: { main: { checks: ["lint"] } } });
    const verify = { checks: { more: { kind: "pattern", pattern: "x" }, lint: true } };
    expect(findGate(config, verify, ["plugin:p"])?.checks).toEqual(["lint", "more", "plugin:p"]);
    expect(findGate(config, { ...verify, revisionsMax: 0 })?.revisionsMax).toBe(0);
  });

  it("leaves out none of the checks that the operator and a plan may name", () => {
    const createNames = (name: string) => Array.from({ length: 16 }, (_, index) => `${name}-${index}`);
    const verifiers = Object.fromEntries(createNames("own").map((key) => [key, LINT]));
    const config = parseGates({ verifiers, agents: { main: { checks: createNames("own") } } });
    const verify = { checks: Object.fromEntries(createNames("plan").map((key) => [key, true])) };
    const { checks } = findGate(config, verify, createNames("plugin:p")) ?? {};
    expect(checks).toEqual([...createNames("own"), ...createNames("plan"), ...createNames("plugin:p")]);
  });

  it("lets an agent rule on its own work only where the operator says so", () => {
    const checked = { agents: { main: { checks: ["lint"] } }, verifiers: { lint: LINT } };
    expect(findGate(parseGates(checked))?.allowSelf).toBeUndefined();
    expect(findGate(parseGates({ ...checked, allowSelfVerification: true }))?.allowSelf).toBe(true);
  });

  it("keeps every text back where something is checked or a confidence is demanded", () => {
    expect(isStrictGate({ threshold: 0, checks: ["a"] })).toBe(true);
    expect(isStrictGate({ threshold: 0, requireConfidence: true })).toBe(true);
    expect(isStrictGate({ threshold: 0, checks: [] })).toBe(false);
  });

  it("goes with every step of a plan", () => {
    const graph = graphOf([
      step("a", [], { verify: { checks: { shape: { kind: "pattern", pattern: "x" } } }, confidence: 0.2 }),
      step("b"),
    ]);
    const gated = createGating(createGateDependencies());
    expect(gated(stepOf(graph, "a"), "subagent")).toEqual({
      gate: expect.objectContaining({ checks: ["shape"] }) as unknown,
      decision: { confidence: 2_000, floor: 5_000 },
    });
    expect(gated(stepOf(graph, "b"), "subagent")).toEqual({ gate: { threshold: 7_000 } });
  });
});

describe("what holds for questions", () => {
  const lines: string[] = [];
  const addLine = ({ plugin }: LogFields, message: string): void =>
    void lines.push(`${String(plugin)}: ${message}`);
  const logger = { debug: addLine, info: addLine, warn: addLine, error: addLine };
  const createRules = (escalations: object, channels: readonly string[] = []) => ({
    logger,
    ...createGateDependencies({
      escalations,
      pluginGates: { ...createGateDependencies().pluginGates, channels: () => channels },
    }),
    settings: { escalateMs: 60_000 },
  });
  const createPolicy = (...rules: Parameters<typeof createRules>) =>
    createQuestionPolicy(createRules(...rules));
  beforeEach(() => void lines.splice(0));

  it("is their time alone where nobody is to be told", () => {
    expect(createPolicy({})).toEqual({ answerMs: 60_000 });
  });

  it("leaves plugins the places that the operator's channels leave, and logs which plugin has none", () => {
    const notify = Array.from({ length: BOUNDS.noticesMax - 1 }, (_, index) => ({
      channel: "chat",
      afterMs: index,
    }));
    expect(createPolicy({ notify }, ["plugin:p", "plugin:q"])).toEqual({
      answerMs: 60_000,
      notify: [{ channel: "plugin:p", afterMs: 0 }, ...notify],
    });
    expect(lines).toEqual([expect.stringMatching(/^plugin:q: .*escalations\.notify/u)]);
  });

  it("is logged once for each plugin and configuration that leaves it no place", () => {
    const notify = Array.from({ length: BOUNDS.noticesMax }, (_, afterMs) => ({ channel: "chat", afterMs }));
    const names = ["plugin:q"];
    const [first, second] = [createRules({ notify }, names), createRules({ notify }, ["plugin:q"])];
    for (const rules of [first, first, second]) createQuestionPolicy(rules);
    expect(lines).toHaveLength(2);
    // It registers later.
    names.push("plugin:r");
    for (const rules of [first, first]) createQuestionPolicy(rules);
    expect(lines.slice(2)).toEqual([expect.stringMatching(/^plugin:r: /u)]);
  });

  it("is who is told, plugins first, each channel of a plugin once, and whoever may answer", () => {
    const notify = [
      { channel: "chat", afterMs: 0 },
      { channel: "plugin:p", afterMs: 9 },
    ];
    expect(
      createPolicy({ notify, requireDifferentApprover: true }, ["plugin:q", "plugin:p", "Not A Channel"]),
    ).toEqual({
      answerMs: 60_000,
      notify: [{ channel: "plugin:q", afterMs: 0 }, ...notify],
      requireDifferentApprover: true,
    });
  });
});
