import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN } from "./recorded-plan.ts";
import { recordQuestions, REPORT, SPAWNS } from "./recorded-questions.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("coordination/ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordQuestions(nameLedger());
});

afterAll(() => {
  folder[Symbol.dispose]();
});

function writePack(name: string, text: string): string {
  const path = folder.file(`${name}.yaml`);
  writeFileSync(path, `name: ${name}\nversion: 1.0.0\n${text}`);
  return path;
}

function createWrittenConfig(phase1: object): object {
  return { plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } } };
}

async function runPolicy(...args: readonly string[]) {
  return runCli(["policy", ...args]);
}

describe("policy list", () => {
  test("names the packs that ship, with their versions", async () => {
    const { stdout } = await runPolicy("list");
    expect(stdout).toMatch(/^balanced +\d+\.\d+\.\d+ {2}\S.*\ncareful .*\nfast .*\n$/u);
    const { stdout: json } = await runPolicy("list", "--json");
    expect(JSON.parse(json)).toContainEqual(
      expect.objectContaining({ name: "careful", chain: ["careful 1.1.0", "balanced 1.0.0"] }),
    );
  });
});

describe("policy validate", () => {
  test("passes a pack that extends a file beside it, which extends one that ships", async () => {
    writePack("middle", "extends: careful\n");
    const path = writePack("last", "extends: ./middle.yaml\nsettings: {lanes: {data: 2}}\n");
    const { stdout, exitCode } = await runPolicy("validate", path);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      "last 1.0.0, extends middle 1.0.0, extends careful 1.1.0, extends balanced 1.0.0",
    );
  });

  test("refuses one that extends itself over another, and names where", async () => {
    writePack("one", "extends: ./two.yaml\n");
    const path = writePack("two", "extends: ./one.yaml\n");
    const { stderr, exitCode } = await runPolicy("validate", path);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("one.yaml: it extends ./two.yaml, which comes back to it");
  });

  test("refuses a chain that is too long", async () => {
    for (let link = 1; link < 9; link += 1) writePack(`link${link}`, `extends: ./link${link + 1}.yaml\n`);
    writePack("link9", "");
    expect((await runPolicy("validate", folder.file("link1.yaml"))).stderr).toContain(
      "link8.yaml: 8 packs extend each other already",
    );
    expect((await runPolicy("validate", folder.file("link2.yaml"))).exitCode).toBe(0);
  });

  test.each([
    ["extends: careful\nsettings: {gates: {confidenceThreshold: 0.5}}", "0.5 is laxer than careful 1.1.0"],
    ["extends: reckless", "there is no policy pack reckless: balanced, careful, fast ship"],
    ["extends: ./none.yaml", "none.yaml"],
    ["settings: {gates: {confidence: 1}}", "settings.gates"],
    ["settings: {ledger: {}}", "ledger"],
    ["settings: [", "line 3"],
  ])("refuses %j and says why", async (text, words) => {
    const { stderr, exitCode } = await runPolicy("validate", writePack("refused", text));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("INPUT_INVALID");
    expect(stderr).toContain(words);
  });
});

describe("policy validate of a pack with several faults", () => {
  test.each([
    [
      "settings: {escalations: {webhooks: {}, approvers: []}, ledger: {}}\nauthor: me",
      ["settings.escalations.webhooks belongs", "settings.escalations.approvers belongs", "ledger", "author"],
    ],
    [
      "settings: {gates: {confidenceThreshold: 2}, lanes: {data: 0}}",
      ["gates.confidenceThreshold", "lanes.data"],
    ],
    [
      "extends: careful\nlocked: [gates.one, lanes.two]\nsettings: {gates: {enabled: false}, truth: {onMismatch: record}}",
      [
        "there is no setting gates.one",
        "there is no setting lanes.two",
        "settings.gates.enabled: false is laxer",
        'settings.truth.onMismatch: "record" is laxer',
      ],
    ],
  ])("names them all: %j", async (text, faults) => {
    const { stderr, exitCode } = await runPolicy("validate", writePack("faulty", text));
    expect(exitCode).toBe(1);
    for (const fault of faults) expect(stderr).toContain(fault);
  });
});

describe("policy show", () => {
  test("prints each setting with the pack that says it, and what is locked", async () => {
    const { stdout } = await runPolicy("show", "careful");
    expect(stdout).toMatch(/^ {2}gates\.confidenceThreshold +0\.85 {2}careful 1\.1\.0 {2}locked$/mu);
    expect(stdout).toMatch(/^ {2}gates\.revisionsMax +2 {2}balanced 1\.0\.0$/mu);
    expect(stdout).toMatch(/^ {2}conflicts\.commands +\[\] {2}default {2}locked$/mu);
    expect(stdout).not.toMatch(/ default$/mu);
    expect((await runPolicy("show", "careful", "--all")).stdout).toMatch(
      /^ {2}gates\.verifyMs +120000 {2}default$/mu,
    );
  });
});

describe("policy diff", () => {
  test("says of each setting whether the second pack is stricter", async () => {
    const { stdout } = await runPolicy("diff", "balanced", "careful");
    expect(stdout).toMatch(/^ {2}gates\.confidenceThreshold +stricter +0\.7 → 0\.85$/mu);
    expect(stdout).toMatch(/^ {2}conflicts\.strategy +other +"owner_wins" → "manual_review"$/mu);
    const { stdout: json } = await runPolicy("diff", "careful", "balanced", "--json");
    expect(JSON.parse(json)).toMatchObject({
      changes: expect.arrayContaining([{ path: "budget.spawns", from: 50, change: "laxer" }]) as unknown,
    });
    expect((await runPolicy("diff", "fast", "fast")).stdout).toBe("The same settings hold under both.\n");
  });
});

interface PolicyTestReport {
  readonly coordinations: number;
  readonly leftOut: readonly string[];
  readonly unreadable: readonly string[];
  readonly changed: readonly {
    readonly coordinationId: string;
    readonly points: readonly {
      readonly stepId?: string;
      readonly would: string;
      readonly why: string;
      readonly certainty: string;
    }[];
  }[];
}

describe("policy test", () => {
  test("names the decisions that change, and what it cannot tell", async () => {
    const lax = writePack("lax", "settings: {gates: {confidenceThreshold: 0.3}, lanes: {data: 1}}");
    const { stdout, exitCode } = await runPolicy("test", lax, "--ledger", nameLedger(), "--json");
    expect(exitCode).toBe(0);
    const tested = JSON.parse(stdout) as PolicyTestReport;
    expect(tested.leftOut).toEqual(["lanes"]);
    expect(tested.unreadable).toEqual([REPORT]);
    const changed = tested.changed.find(({ coordinationId }) => coordinationId === SPAWNS);
    expect(changed?.points).toContainEqual(
      expect.objectContaining({
        stepId: "step-1",
        would: "the result counts",
        why: expect.stringContaining("confidence 0.31 meets 0.3") as unknown,
      }),
    );
    const { stdout: text } = await runPolicy("test", lax, "--ledger", nameLedger());
    expect(text).toContain("would    the result counts");
    expect(text).toContain("Not tested, because the log does not hold what they decide on: lanes.");
    expect(text).toContain(
      `Left out, because their logs are damaged or \`replay\` says that they differ: ${REPORT}.`,
    );
  });

  test("leaves what the configuration says of the settings of the pack, and says where it cannot read it", async () => {
    const lax = writePack("laxer", "settings: {gates: {confidenceThreshold: 0.3, critic: judge}}");
    const testWith = async (setting?: Parameters<typeof runCli>[1]) => {
      const { stdout } = await runCli(["policy", "test", lax, "--json"], {
        stateDir: folder.path,
        ...setting,
      });
      const { changed, leftOut } = JSON.parse(stdout) as PolicyTestReport;
      const points = changed.find(({ coordinationId }) => coordinationId === SPAWNS)?.points;
      return { leftOut, certainty: points?.find(({ stepId }) => stepId === "step-1")?.certainty };
    };
    const withConfig = (gates: object) =>
      testWith({ config: createMemoryConfig(createWrittenConfig({ gates })) });
    expect(await withConfig({ agents: { Main: { confidenceThreshold: 0.7 } } })).toMatchObject({
      certainty: undefined,
    });
    expect(await withConfig({ confidenceThreshold: 0.7 })).toMatchObject({ certainty: undefined });
    expect(await withConfig({})).toEqual({ leftOut: ["gates.critic"], certainty: "differs" });
    expect(await testWith()).toMatchObject({ certainty: "unknown" });
    const { stdout } = await runCli(["policy", "test", lax], { stateDir: folder.path });
    expect(stdout).toContain("OpenClaw's configuration cannot be read from here");
  });

  test("goes on with the pack alone where the configuration is not valid with it, and says why", async () => {
    const lax = writePack("lax", "settings: {gates: {confidenceThreshold: 0.3}}");
    const gates = { agents: { writer: { checks: ["tests"] } } };
    const config = createMemoryConfig(createWrittenConfig({ gates }));
    const args = ["policy", "test", lax];
    const { stdout: json } = await runCli([...args, "--json"], { config, stateDir: folder.path });
    expect(JSON.parse(json)).toMatchObject({
      isConfigurationRead: false,
      configurationFault: expect.stringContaining("gates.agents.writer.checks[0]") as unknown,
      changed: expect.arrayContaining([expect.objectContaining({ coordinationId: SPAWNS })]) as unknown,
    });
    const { stdout } = await runCli(args, { config, stateDir: folder.path });
    expect(stdout).toContain(
      "configuration is left out, because with the pack the policy is not one: gates.",
    );
  });

  test.each([
    ["cannot be read", "update event set payload = '{}' where sequence = 2"],
    ["lacks an event", "delete from event where sequence = 2"],
  ])("goes on past a coordination whose log %s, and names it", async (damage, sql) => {
    const ledger = folder.file(`${damage}.sqlite`);
    await recordQuestions(ledger);
    forge(ledger, `${sql} and run_key = (select run_key from run where run_id = '${SPAWNS}')`);
    const lax = writePack("lax", "settings: {gates: {confidenceThreshold: 0.3}}");
    const { stdout, exitCode } = await runPolicy("test", lax, "--ledger", ledger, "--json");
    expect(exitCode).toBe(0);
    const { coordinations, unreadable } = JSON.parse(stdout) as PolicyTestReport;
    expect(unreadable.toSorted()).toEqual([REPORT, SPAWNS].toSorted());
    expect(coordinations).toBeGreaterThan(unreadable.length);
    const { stdout: text } = await runPolicy("test", lax, "--ledger", ledger);
    expect(text).toContain(SPAWNS);
  });

  test("counts spawns against the budget of the pack, and is sure of the first one alone", async () => {
    const small = writePack("small", "settings: {budget: {spawns: 1}}");
    const ledger = folder.file("spawns.sqlite");
    await recordLedger(ledger, [RESEARCH]);
    const { stdout } = await runPolicy("test", small, "--ledger", ledger, "--json");
    const [changed] = (JSON.parse(stdout) as PolicyTestReport).changed;
    expect(changed?.points[0]).toMatchObject({
      stepId: "step-2",
      decided: "attempt 1 begins",
      would: "the spawn is refused",
      why: expect.stringContaining("1 of 1 subagents were spawned") as unknown,
      certainty: "differs",
    });
    expect(changed?.points[1]).toMatchObject({ stepId: "step-3", certainty: "follows" });
  });

  test("says on how many plans it did not test a budget, because a plan states its own", async () => {
    const small = writePack("small-budget", "settings: {budget: {tokens: 1}}");
    const ledger = folder.file("budgets-of-plans.sqlite");
    await recordPlans(ledger, [ENDED_PLAN, RUNNING_PLAN]);
    const { stdout: json } = await runPolicy("test", small, "--ledger", ledger, "--json");
    expect(JSON.parse(json)).toMatchObject({ changed: [], plansWithoutBudget: 2 });
    const { stdout } = await runPolicy("test", small, "--ledger", ledger);
    expect(stdout).toContain("budget: not tested on 2 plans. It bounds coordinations that spawns open");
    forge(ledger, "delete from content");
    const { stdout: withoutTexts } = await runPolicy("test", small, "--ledger", ledger, "--json");
    expect(JSON.parse(withoutTexts)).toMatchObject({ plansWithoutText: 2 });
    expect((await runPolicy("test", small, "--ledger", ledger)).stdout).toContain(
      "The text of 2 plans is not kept any more. What the steps of such a plan ask for",
    );
    const lanes = writePack("only-lanes", "settings: {lanes: {data: 1}}");
    expect((await runPolicy("test", lanes, "--ledger", ledger)).stdout).not.toContain("budget");
  });

  test("says that nothing changes under the policy that held", async () => {
    const same = writePack("same", "settings: {lanes: {data: 1}}");
    const { stdout } = await runPolicy("test", same, "--ledger", nameLedger(), "--limit", "2");
    expect(stdout).toContain("on 2 coordinations");
    expect(stdout).toContain("The same would have been decided.");
  });
});

describe("policy use", () => {
  test("writes the pack into the configuration, which then goes by it", async () => {
    const config = createMemoryConfig({});
    const { stdout, exitCode } = await runCli(["policy", "use", "careful"], { config });
    expect(exitCode).toBe(0);
    expect(stdout).toContain('phase1.policies.default: (unset) → "careful"');
    expect(stdout).toContain("`openclaw coordination policy test careful`");
    const { plugins } = config.config as { plugins: { entries: { coordination: { config: unknown } } } };
    const phase1 = parsePluginConfig(plugins.entries.coordination.config);
    expect(phase1).toMatchObject({ gates: { confidenceThreshold: 0.85 }, budget: { spawns: 50 } });
    await runCli(["enable"], { config });
    expect((await runCli(["status"], { config })).stdout).toMatch(
      /^coordination +on \(policy careful 1\.1\.0\)$/mu,
    );
    const again = await runCli(["policy", "use", "careful"], { config });
    expect(again.stdout).toBe("the gateway goes by careful 1.1.0 already\n");
    await runCli(["policy", "drop"], { config });
    const { plugins: dropped } = config.config as typeof config.config & { plugins: typeof plugins };
    expect(parsePluginConfig(dropped.entries.coordination.config).gates.confidenceThreshold).toBe(0.7);
    expect((await runCli(["policy", "drop"], { config })).stdout).toBe(
      "the gateway goes by no policy pack\n",
    );
  });

  test("takes a pack into use for single sessions, the narrower rule first, and drops it for them", async () => {
    const config = createMemoryConfig({});
    await runCli(["enable"], { config });
    const use = await runCli(["policy", "use", "careful", "--agent", "writer"], { config });
    expect(use.stdout + use.stderr).toContain("hold for a gateway as a whole only");
    await runCli(["policy", "use", "fast", "--session", "agent:*:quick-*"], { config });
    await runCli(["policy", "use", "fast", "--agent", "writer", "--channel", "telegram"], { config });
    const readPolicies = () => {
      const { plugins } = config.config as { plugins: { entries: { coordination: { config: unknown } } } };
      return parsePluginConfig(plugins.entries.coordination.config).policies;
    };
    expect(readPolicies().default).toBeUndefined();
    expect(readPolicies().rules).toEqual([
      { session: "agent:*:quick-*", pack: "fast" },
      { agent: "writer", channel: "telegram", pack: "fast" },
      { agent: "writer", pack: "careful" },
    ]);
    const again = await runCli(["policy", "use", "careful", "--agent", "writer"], { config });
    expect(again.stdout).toContain("the work of agent writer goes by careful 1.1.0 already\n");
    expect((await runCli(["status"], { config })).stdout).toContain("policy careful 1.1.0 for agent writer");
    const { policyRules } = JSON.parse((await runCli(["status", "--json"], { config })).stdout) as {
      policyRules: readonly string[];
    };
    expect(policyRules).toContain("careful 1.1.0 for agent writer");
    await runCli(["policy", "drop", "--agent", "writer"], { config });
    expect(readPolicies().rules).toHaveLength(2);
    expect((await runCli(["policy", "drop", "--agent", "writer"], { config })).stdout).toBe(
      "the work of agent writer goes by no policy pack of its own\n",
    );
  });

  test.each([[[]], [["--dry-run"]], [["--agent", "writer"]]])(
    "refuses a pack that cannot hold with the configuration, and writes nothing, with %j",
    async (options) => {
      const tests = { kind: "command", command: "npm" };
      const before = createWrittenConfig({ gates: { verifiers: { tests } } });
      const pack = writePack(
        "matching",
        "settings: {gates: {verifiers: {tests: {kind: pattern, pattern: passed}}}}",
      );
      const config = createMemoryConfig(structuredClone(before));
      const { stderr, exitCode } = await runCli(["policy", "use", pack, ...options, "--yes"], { config });
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(
        /CONFIG_INVALID: .*gates\.verifiers\.tests.*with the policy pack matching in use/su,
      );
      expect(config).toMatchObject({ writes: 0, config: before });
    },
  );

  test("drops a pack that cannot hold with the configuration", async () => {
    const policies = { default: "odd", packs: { odd: { version: "1.0.0", settings: { escalateMs: 0 } } } };
    const config = createMemoryConfig(createWrittenConfig({ policies }));
    expect((await runCli(["policy", "drop", "--yes"], { config })).exitCode).toBe(0);
    expect(config.writes).toBe(1);
  });

  test.each([[[]], [["--dry-run"]]])(
    "drops no pack whose checks the configuration names, and writes nothing, with %j",
    async (options) => {
      const tests = { kind: "command", command: "npm" };
      const checked = { version: "1.0.0", settings: { gates: { verifiers: { tests } } } };
      const before = createWrittenConfig({
        gates: { agents: { writer: { checks: ["tests"] } } },
        policies: { default: "checked", packs: { checked } },
      });
      const config = createMemoryConfig(structuredClone(before));
      const { stderr, exitCode } = await runCli(["policy", "drop", ...options, "--yes"], { config });
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/CONFIG_INVALID: .*gates\.agents\.writer\.checks\[0\]/u);
      expect(config).toMatchObject({ writes: 0, config: before });
    },
  );

  test("warns of settings that the configuration has otherwise, and changes nothing in a dry run", async () => {
    const before = createWrittenConfig({ gates: { confidenceThreshold: 0.6, revisionsMax: 2 } });
    const config = createMemoryConfig(structuredClone(before));
    const { stdout } = await runCli(["policy", "use", "careful", "--dry-run"], { config });
    expect(stdout).toContain(
      "warning gates.confidenceThreshold stays 0.6, as the configuration has it; the pack says 0.85",
    );
    expect(stdout).not.toContain("gates.revisionsMax stays");
    expect(config.config).toEqual(before);
  });

  test("warns of rules for an agent whose id the configuration spells otherwise", async () => {
    const pack = writePack("spelled", "settings: {gates: {agents: {coder: {confidenceThreshold: 0.9}}}}");
    const agents = { Coder: { confidenceThreshold: 0.6 } };
    const config = createMemoryConfig(createWrittenConfig({ gates: { agents } }));
    const { stdout, stderr } = await runCli(["policy", "use", pack, "--dry-run"], { config });
    expect(stdout + stderr).toContain("gates.agents.coder.confidenceThreshold stays 0.6");
  });
});
