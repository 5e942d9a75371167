/** Owns: what a policy pack comes to, what it may not say, and which of two values is the stricter one. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { parsePolicyPack } from "../../src/agents/coordination/contracts/config/policy-pack.ts";
import { toReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { combinePacks } from "../../src/agents/coordination/policies/combine-packs.ts";
import { comparePolicies } from "../../src/agents/coordination/policies/compare-policies.ts";
import { compareStrictness } from "../../src/agents/coordination/policies/strictness.ts";
import { mergeObjects } from "../../src/agents/coordination/std/merge-objects.ts";
import { listShippedPacks, loadPolicyPack } from "../../src/plugins/cli/files/policy-pack-file.ts";

const parsePack = (fields: object) => parsePolicyPack({ name: "base", version: "1.0.0", ...fields });
const BASE = parsePack({
  locked: ["gates.confidenceThreshold", "privileges", "conflicts.strategy"],
  settings: {
    gates: { confidenceThreshold: 0.8, revisionsMax: 1 },
    privileges: { default: { tools: { deny: ["exec"] }, write: ["docs/**", "src/**"] } },
  },
});
const extendBase = (settings: object) =>
  combinePacks([BASE, parsePack({ name: "own", version: "2.0.0", settings })]);

describe("a pack that extends another", () => {
  it("has the other's settings where it has none itself, and says whose each is", () => {
    const { chain, settings, origins } = extendBase({
      gates: { revisionsMax: 0 },
      truth: { onMismatch: "hold" },
    });
    expect(chain).toEqual(["own 2.0.0", "base 1.0.0"]);
    expect(settings).toMatchObject({
      gates: { confidenceThreshold: 0.8, revisionsMax: 0 },
      truth: { onMismatch: "hold" },
    });
    expect(Object.fromEntries(origins)).toMatchObject({
      "gates.confidenceThreshold": "base 1.0.0",
      "gates.revisionsMax": "own 2.0.0",
    });
  });

  test.each([
    [{ gates: { confidenceThreshold: 0.9 } }],
    [{ privileges: { default: { tools: { deny: ["exec", "write"] } } } }],
    [{ privileges: { default: { write: ["docs/**"] } } }],
    [{ privileges: { default: { tools: { allow: ["read"] } } } }],
    [{ privileges: { agents: { scout: { tools: { deny: ["exec"] }, write: [] } } } }],
    [{ gates: { agents: { scout: { confidenceThreshold: 0.8, requireConfidence: false } } } }],
  ])("may be stricter where the other is locked: %j", (settings) => {
    expect(() => extendBase(settings)).not.toThrow();
  });

  test.each([
    [
      { gates: { confidenceThreshold: 0.7 } },
      "settings.gates.confidenceThreshold: 0.7 is laxer than base 1.0.0",
    ],
    [
      { privileges: { default: { tools: { deny: [] } } } },
      "settings.privileges.default.tools.deny: [] is laxer",
    ],
    [
      { privileges: { default: { write: ["**"] } } },
      'settings.privileges.default.write: ["**"] is another rule',
    ],
    [{ conflicts: { strategy: "priority_wins" } }, 'conflicts.strategy: "priority_wins" is another rule'],
    [
      { privileges: { agents: { scout: { write: [] } } } },
      "settings.privileges.agents.scout.tools.deny: nothing is laxer",
    ],
    [{ privileges: { agents: { scout: {} } } }, "settings.privileges.agents.scout.write: nothing is laxer"],
  ])("may not be laxer there, nor another rule: %j", (settings, words) => {
    expect(() => extendBase(settings)).toThrow(words);
  });

  it("cannot take a lock away from the packs that extend it in turn", () => {
    const middle = parsePack({ name: "middle", version: "1.0.0" });
    const last = parsePack({
      name: "last",
      version: "1.0.0",
      settings: { gates: { confidenceThreshold: 0.1 } },
    });
    expect(() => combinePacks([BASE, middle, last])).toThrow("is laxer than middle 1.0.0");
  });
});

const SIGNED = { kind: "pattern", pattern: "SIGNED" };
const TESTS = { kind: "command", command: "/bin/check" };
const extendLocked = (locked: readonly string[], base: object, settings: object) =>
  combinePacks([
    parsePack({ locked, settings: base }),
    parsePack({ name: "own", version: "2.0.0", settings }),
  ]);

describe("a lock", () => {
  const THRESHOLD = { gates: { confidenceThreshold: 0.9, requireConfidence: true } };
  const DENIED = { privileges: { default: { tools: { deny: ["exec"] }, write: [] } } };
  const AGENTS = { writer: { checks: ["signed"] } };
  const VERIFIED = { gates: { verifiers: { signed: SIGNED }, agents: AGENTS } };
  const TESTED = { gates: { verifiers: { signed: TESTS }, agents: AGENTS } };
  const createWriterGate = (fields: object) => ({ gates: { agents: { writer: fields } } });
  const privilegesOf = (agent: string, fields: object) => ({ privileges: { agents: { [agent]: fields } } });

  test.each([
    [["gates"], THRESHOLD, createWriterGate({ confidenceThreshold: 0, requireConfidence: false })],
    [["gates.confidenceThreshold"], THRESHOLD, createWriterGate({ confidenceThreshold: 0 })],
    [["gates.requireConfidence"], THRESHOLD, createWriterGate({ requireConfidence: false })],
    [
      ["gates"],
      THRESHOLD,
      { gates: { agents: { "a.confidenceThreshold": {}, a: { confidenceThreshold: 0 } } } },
    ],
    [["privileges"], DENIED, privilegesOf("writer", { tools: { deny: [] } })],
    [["privileges.default"], DENIED, privilegesOf("writer", { tools: { deny: ["exec"] } })],
    [["privileges.default.tools"], DENIED, privilegesOf("wri.ter", { write: [] })],
    [["privileges"], DENIED, privilegesOf("writer", { tools: {} })],
    [["gates.verifiers"], VERIFIED, { gates: { verifiers: { signed: { ...SIGNED, absent: true } } } }],
    [["gates"], TESTED, { gates: { verifiers: { signed: { ...TESTS, env: { SKIP: "1" } } } } }],
    [["gates"], VERIFIED, { gates: { verifiers: { signed: { pattern: "SIGNED BY" } } } }],
  ])("of %j is not gone around: %j, %j", (locked, base, settings) => {
    expect(() => extendLocked(locked, base, settings)).toThrow("locks it");
  });

  test.each([
    [["gates"], THRESHOLD, createWriterGate({ confidenceThreshold: 0.95 })],
    [["privileges"], DENIED, privilegesOf("writer", { tools: { deny: ["exec", "cron"] }, write: [] })],
    [
      ["gates"],
      VERIFIED,
      { gates: { verifiers: { tests: TESTS }, agents: { scout: { checks: ["tests"] } } } },
    ],
    [["gates.confidenceThreshold"], THRESHOLD, createWriterGate({ requireConfidence: false })],
  ])("of %j lets be stricter: %j, %j", (locked, base, settings) => {
    expect(() => extendLocked(locked, base, settings)).not.toThrow();
  });
});

describe("a pack that extends one with checks", () => {
  const BASE_CHECKS = { gates: { verifiers: { signed: SIGNED } } };

  it("may name them", () => {
    const { settings } = extendLocked([], BASE_CHECKS, {
      gates: { agents: { coder: { checks: ["signed"] } } },
    });
    expect(settings).toMatchObject({
      gates: { verifiers: { signed: SIGNED }, agents: { coder: { checks: ["signed"] } } },
    });
  });

  it("may change one field of them", () => {
    const { settings } = extendLocked([], BASE_CHECKS, {
      gates: { verifiers: { signed: { pattern: "SIGNED BY" } } },
    });
    expect(settings).toEqual({ gates: { verifiers: { signed: { kind: "pattern", pattern: "SIGNED BY" } } } });
  });

  it("is refused for one that neither of them has", () => {
    const settings = { gates: { agents: { coder: { checks: ["other"] } } } };
    expect(() => extendLocked([], BASE_CHECKS, settings)).toThrow("a key of gates.verifiers");
  });
});

describe("the difference of two packs", () => {
  const changesOf = (from: object, to: object) =>
    comparePolicies(from as Record<string, unknown>, to as Record<string, unknown>).map(
      ({ path, change }) => `${path} ${change}`,
    );

  it("is told of an agent by what holds for it, also where one has no entry for it", () => {
    const general = { gates: { confidenceThreshold: 0.9 }, privileges: { default: { write: [] } } };
    const ofScout = {
      gates: { agents: { scout: { confidenceThreshold: 0.8 } } },
      privileges: { agents: { scout: { tools: { deny: ["exec"] } } } },
    };
    expect(changesOf(general, mergeObjects(general, ofScout))).toEqual([
      "gates.agents.scout.confidenceThreshold laxer",
      "privileges.agents.scout.tools.deny stricter",
      "privileges.agents.scout.write laxer",
    ]);
    expect(changesOf(mergeObjects(general, ofScout), general)).toEqual([
      "gates.agents.scout.confidenceThreshold stricter",
      "privileges.agents.scout.tools.deny laxer",
      "privileges.agents.scout.write stricter",
    ]);
  });

  it("takes a check that is new for stricter, and another one under the same key for neither", () => {
    const signed = { gates: { verifiers: { signed: SIGNED } } };
    const absent = { gates: { verifiers: { signed: { ...SIGNED, absent: true } } } };
    expect(new Set(changesOf({}, signed).map((change) => change.split(" ")[1]))).toEqual(
      new Set(["stricter"]),
    );
    expect(new Set(changesOf(signed, {}).map((change) => change.split(" ")[1]))).toEqual(new Set(["laxer"]));
    expect(changesOf(signed, absent)).toEqual(["gates.verifiers.signed.absent other"]);
  });
});

describe("a pack", () => {
  test.each([
    [{ settings: { openwop: { enabled: true } } }, "openwop"],
    [{ settings: { escalations: { webhooks: {} } } }, "settings.escalations.webhooks belongs to one gateway"],
    [{ settings: { escalations: { approvers: ["chat:me"] } } }, "settings.escalations.approvers belongs"],
    [{ version: "1" }, "version"],
    [{ name: "Careful" }, "name"],
  ])("that says %j is refused", (fields, words) => {
    expect(() => combinePacks([parsePack(fields)])).toThrow(words);
  });

  it("is refused with the place of a setting that is not valid", () => {
    const pack = parsePack({ settings: { gates: { confidenceThreshold: 2 } } });
    expect(() => combinePacks([pack])).toThrow("settings.gates.confidenceThreshold: expected");
  });

  it("cannot lock what it cannot set", () => {
    expect(() => combinePacks([parsePack({ locked: ["gates.confidence"] })])).toThrow(
      "base 1.0.0: locked: there is no setting gates.confidence",
    );
  });

  it("rules a history only by what the log can tell of, and names the rest", () => {
    const { policy, leftOut } = toReplayPolicy({
      gates: { decisionFloor: 0.9 },
      conflicts: { strategy: "manual_review", waitMs: 1 },
      lanes: { data: 1 },
      budget: { spawns: 2 },
    });
    expect(policy).toEqual({
      gates: { decisionFloor: 0.9 },
      conflicts: { strategy: "manual_review" },
      budget: { spawns: 2 },
    });
    expect(leftOut).toEqual(["conflicts.waitMs", "lanes"]);
    expect(toReplayPolicy({ lanes: { data: 1 } })).toEqual({ policy: {}, leftOut: ["lanes"] });
  });
});

describe("the packs that ship", () => {
  it("are three, and all valid", async () => {
    expect(listShippedPacks()).toEqual(["balanced", "careful", "fast"]);
    for (const name of listShippedPacks()) expect(await loadPolicyPack(name)).toMatchObject({ name });
  });

  it("balanced is the defaults", async () => {
    expect(comparePolicies({}, (await loadPolicyPack("balanced")).settings)).toEqual([]);
  });

  it("careful is nowhere laxer than balanced, and fast nowhere stricter", async () => {
    const changesOf = async (name: string) => {
      const { settings } = await loadPolicyPack(name);
      return new Set(comparePolicies({}, settings).map(({ change }) => change));
    };
    expect(await changesOf("careful")).toEqual(new Set(["stricter", "other"]));
    expect(await changesOf("fast")).toEqual(new Set(["laxer", "other"]));
  });
});

describe("the configuration", () => {
  const PACKS = {
    careful: { version: "1.0.0", settings: { gates: { confidenceThreshold: 0.9 }, budget: { spawns: 5 } } },
  };
  const parsePhase1 = (phase1: object) => parsePluginConfig({ coordination: { phase1 } });

  it("goes by a pack where it says nothing itself, and by itself where it does", () => {
    const phase1 = parsePhase1({
      gates: { confidenceThreshold: 0.6 },
      policies: { default: "careful", packs: PACKS },
    });
    expect(phase1.gates.confidenceThreshold).toBe(0.6);
    expect(phase1.budget.spawns).toBe(5);
    expect(phase1.enabled).toBe(false);
  });

  it("may name a check of the pack that it goes by, and of no other", () => {
    const gates = { agents: { writer: { checks: ["tests"] } } };
    const verifiers = { tests: { kind: "pattern", pattern: "passed" } };
    const packs = { tested: { version: "1.0.0", settings: { gates: { verifiers } } } };
    expect(parsePhase1({ gates, policies: { default: "tested", packs } }).gates).toMatchObject({
      verifiers,
      ...gates,
    });
    expect(() => parsePhase1({ gates, policies: { packs } })).toThrow("verifiers");
  });

  test.each([
    [{ coordination: { phase1: {}, phase2: {} } }, 'no key "phase2"'],
    [{ coordination: { phase1: {} }, enabled: true }, 'no key "enabled"'],
    [{ coordination: { phase1: { enabld: true } } }, 'no key "enabld"'],
  ])("is refused for what a pack cannot say, as %j, also where it goes by one", (written, words) => {
    const policies = { default: "careful", packs: PACKS };
    const phase1 = { ...written.coordination.phase1, policies };
    const value = { ...written, coordination: { ...written.coordination, phase1 } };
    expect(() => parsePluginConfig(value)).toThrow(words);
  });

  it("does not go by a pack that it only has", () => {
    expect(parsePhase1({ policies: { packs: PACKS } }).budget.spawns).toBeUndefined();
  });

  test.each([
    [{ default: "fast", packs: PACKS }, "policies.default: expected a name of policies.packs"],
    [{ packs: { odd: { version: "1.0.0", settings: { enabled: true } } } }, "policies.packs.odd.settings"],
    [
      {
        default: "odd",
        packs: { odd: { version: "1.0.0", settings: { gates: { confidenceThreshold: 7 } } } },
      },
      "(with the policy pack odd in use)",
    ],
  ])("with %j is refused", (policies, words) => {
    expect(() => parsePhase1({ policies })).toThrow(words);
  });
});

describe("strictness", () => {
  const shares = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
  const counts = fc.option(fc.nat(100), { nil: undefined });
  const names = fc.option(fc.uniqueArray(fc.constantFrom("read", "write", "exec")), { nil: undefined });
  const settings = fc.oneof(
    fc.tuple(
      fc.constantFrom("gates.confidenceThreshold", "gates.agents.a.confidenceThreshold"),
      shares,
      shares,
    ),
    fc.tuple(fc.constantFrom("budget.spawns", "lanes.data", "budget.agents.a.tokens"), counts, counts),
    fc.tuple(
      fc.constantFrom(
        "privileges.default.tools.allow",
        "privileges.agents.a.tools.deny",
        "conflicts.highRisk",
      ),
      names,
      names,
    ),
    fc.tuple(
      fc.constant("truth.onMismatch"),
      fc.constantFrom("record", "hold", "refuse"),
      fc.constantFrom("record", "hold", "refuse"),
    ),
  );
  const OPPOSITE = { same: "same", stricter: "laxer", laxer: "stricter", other: "other" } as const;

  it("is laxer in one direction where it is stricter in the other", () => {
    fc.assert(
      fc.property(settings, ([path, from, to]) => {
        expect(compareStrictness(path, to, from)).toBe(OPPOSITE[compareStrictness(path, from, to)]);
      }),
    );
  });

  test.each([
    ["gates.verifiers.tests.command", undefined, "npm", "stricter"],
    ["gates.verifiers.tests.command", "npm", "true", "other"],
    ["budget.spawns", undefined, 5, "stricter"],
    ["escalateMs", 5, 6, "other"],
    ["privileges.default.tools.allow", ["read"], ["exec"], "other"],
    ["privileges.default.tools.allow", ["read", "exec"], ["exec", "read"], "same"],
    ["privileges.default.tools.deny", [], undefined, "same"],
    ["privileges.default.tools.allow", undefined, [], "stricter"],
  ])("of %s from %j to %j is %s", (path, from, to, strictness) => {
    expect(compareStrictness(path, from, to)).toBe(strictness);
  });
});

describe("merging", () => {
  it("replaces lists, keeps what is not named, and takes no prototype from a name", () => {
    const over = JSON.parse('{"a": {"list": [2]}, "__proto__": {"polluted": true}}') as Record<
      string,
      unknown
    >;
    const merged = mergeObjects({ a: { list: [1], kept: 1 } }, over);
    expect(merged["a"]).toEqual({ list: [2], kept: 1 });
    expect(Reflect.getPrototypeOf(merged)).toBe(Object.prototype);
    expect("polluted" in {}).toBe(false);
  });
});
