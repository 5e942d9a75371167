/** Owns: that a pack which is taken into use, or dropped, for some sessions holds for them afterwards, or that a warning says why not. */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

type MemoryConfig = ReturnType<typeof createMemoryConfig>;

let folder: TempFolder;

beforeAll(() => {
  folder = createTempFolder();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function runPolicy(config: MemoryConfig, line: string): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli(["policy", ...line.split(" ")], { config });
  expect({ line, stderr, exitCode }).toMatchObject({ line, exitCode: 0 });
  return stdout + stderr;
}

function readPolicies({ config }: MemoryConfig) {
  const { plugins } = config as { plugins: { entries: { coordination: { config: unknown } } } };
  return parsePluginConfig(plugins.entries.coordination.config).policies;
}

const createRuledConfig = (rules: readonly object[]): MemoryConfig => {
  const packs = { careful: { version: "1.0.0", settings: {} } };
  const coordination = { phase1: { policies: { packs, rules } } };
  return createMemoryConfig({ plugins: { entries: { coordination: { config: { coordination } } } } });
};

const NEVER_HOLDS =
  "comes first and fits the same sessions, so that this one holds for none whose key begins with `agent:`";

describe("policy use for some sessions", () => {
  test.each(["--agent", "--channel", "--session"])(
    "refuses %s with nothing, as does policy drop",
    async (option) => {
      for (const words of [["use", "careful"], ["drop"]]) {
        const config = createRuledConfig([{ agent: "main", pack: "careful" }]);
        const { stderr, exitCode } = await runCli(["policy", ...words, option, " ", "--yes"], { config });
        expect({ exitCode, writes: config.writes }).toEqual({ exitCode: 1, writes: 0 });
        expect(stderr).toMatch(new RegExp(`INPUT_INVALID: ${option}: expected .*, got nothing`, "u"));
      }
    },
  );

  test.each([
    ["--channel telegram", "--agent scout --channel telegram"],
    ["--session agent:*", "--session agent:*:release-*"],
    ["--session agent:*", "--agent scout --session agent:*"],
    ["--session *", "--session agent:scout:main"],
    ["--agent scout --session agent:*", "--session agent:scout:release-*"],
    ["--channel telegram --session agent:*", "--session agent:scout:telegram:*"],
    ["--agent scout --channel telegram --session *", "--session agent:scout:telegram:direct:42"],
  ])("puts the narrower rule before the wider one: %s, %s", async (wide, narrow) => {
    for (const [first, second] of [
      [wide, narrow],
      [narrow, wide],
    ] as const) {
      const config = createMemoryConfig({});
      await runPolicy(config, `use careful ${first}`);
      expect(await runPolicy(config, `use fast ${second}`)).not.toContain(NEVER_HOLDS);
      const [narrowPack, widePack] = first === wide ? ["fast", "careful"] : ["careful", "fast"];
      expect(readPolicies(config).rules.map(({ pack }) => pack)).toEqual([narrowPack, widePack]);
    }
  });

  test.each([
    ["--session agent:*", "--agent scout", "the rule for session agent:* (pack careful)"],
    ["--session *", "--channel telegram", "the rule for session * (pack careful)"],
  ])("warns where a rule before it fits all its sessions: %s, %s", async (wide, narrow, earlier) => {
    const config = createMemoryConfig({});
    await runPolicy(config, `use careful ${wide}`);
    const warned = await runPolicy(config, `use fast ${narrow}`);
    expect(warned).toContain(`warning ${earlier} ${NEVER_HOLDS}`);
  });

  test.each([
    ["--agent writer --session agent:*", "--session agent:scout:release-*"],
    ["--agent scout --session agent:*", "--session agent:*:release-*"],
    ["--channel main --session agent:*", "--session agent:scout:main"],
    ["--channel telegram --session agent:*", "--session agent:*:telegram:*"],
  ])("puts a rule behind those that do not fit all its sessions: %s, %s", async (earlier, later) => {
    const config = createMemoryConfig({});
    await runPolicy(config, `use careful ${earlier}`);
    await runPolicy(config, `use fast ${later}`);
    expect(readPolicies(config).rules.map(({ pack }) => pack)).toEqual(["careful", "fast"]);
  });

  test("leaves a rule in its place where another pack is taken into use for the same sessions", async () => {
    const config = createMemoryConfig({});
    await runPolicy(config, "use careful --session agent:*:release-*");
    await runPolicy(config, "use careful --session agent:scout:*");
    await runPolicy(config, "use careful --agent writer");
    const written = config.writes;
    const again = await runPolicy(config, "use careful --session agent:*:release-*");
    expect(again).toContain("the work of session agent:*:release-* goes by careful");
    expect(again).toContain("already");
    expect(config.writes).toBe(written);
    await runPolicy(config, "use fast --session agent:*:release-*");
    expect(readPolicies(config).rules).toEqual([
      { session: "agent:*:release-*", pack: "fast" },
      { session: "agent:scout:*", pack: "careful" },
      { agent: "writer", pack: "careful" },
    ]);
  });

  test("leaves the other rules in the order in which somebody wrote them", async () => {
    const rules = [
      { agent: "scout", pack: "careful" },
      { session: "agent:*:release-*", pack: "careful" },
    ];
    const config = createRuledConfig(rules);
    await runPolicy(config, "use fast --agent scout");
    expect(readPolicies(config).rules).toEqual([{ agent: "scout", pack: "fast" }, rules[1]]);
  });

  test("moves a rule before the one that leaves nothing to it", async () => {
    const config = createRuledConfig([
      { session: "agent:*", pack: "careful" },
      { session: "agent:scout:*", pack: "careful" },
    ]);
    const moved = await runPolicy(config, "use fast --session agent:scout:*");
    expect(moved).not.toContain(NEVER_HOLDS);
    expect(readPolicies(config).rules.map(({ pack }) => pack)).toEqual(["fast", "careful"]);
  });

  test("knows an agent and a channel however they are spelled", async () => {
    const config = createRuledConfig([{ agent: "scout", channel: "Telegram", pack: "careful" }]);
    await runPolicy(config, "use fast --agent Scout --channel TELEGRAM");
    expect(readPolicies(config).rules).toEqual([{ agent: "scout", channel: "telegram", pack: "fast" }]);
    const again = await runPolicy(config, "use fast --agent SCOUT --channel telegram");
    expect(again).toContain("the work of agent scout, channel telegram goes by fast 1.0.0 already");
    const dropped = await runPolicy(config, "drop --agent Scout --channel Telegram");
    expect(dropped).not.toContain("no policy pack of its own");
    expect(readPolicies(config).rules).toEqual([]);
  });

  test.each([{ agent: 5 }, { channel: [] }, { session: {} }])(
    "refuses to add to a rule that is none, and drops it with all others: %j",
    async (rule) => {
      const config = createRuledConfig([{ ...rule, pack: "careful" }]);
      const { stderr, exitCode } = await runCli(["policy", "use", "fast", "--agent", "a", "--session", "b"], {
        config,
      });
      expect({ exitCode, writes: config.writes }).toEqual({ exitCode: 1, writes: 0 });
      expect(stderr).toContain("CONFIG_INVALID: coordination.phase1.policies.rules[");
      await runPolicy(config, "drop");
      expect(config.writes).toBe(1);
    },
  );

  test("drops one rule however wrong the others are that come to stand elsewhere in the list", async () => {
    const wrong = { agent: "b", pack: "missing" };
    const config = createRuledConfig([{ agent: "a", pack: "careful" }, wrong, { ...wrong, agent: "c" }]);
    await runPolicy(config, "drop --agent a");
    await runPolicy(config, "drop --agent b");
    const { plugins } = config.config as { plugins: { entries: { coordination: { config: object } } } };
    expect(plugins.entries.coordination.config).toMatchObject({
      coordination: { phase1: { policies: { rules: [{ agent: "c", pack: "missing" }] } } },
    });
  });

  test("drops a rule that somebody wrote with another spelling", async () => {
    const config = createRuledConfig([{ agent: "Scout", pack: "careful" }]);
    expect(await runPolicy(config, "drop --agent scout")).toContain("changed in");
    expect(readPolicies(config).rules).toEqual([]);
  });
});

describe("policy use of a file", () => {
  const writeMine = (version: string): string => {
    const path = folder.file("mine.yaml");
    writeFileSync(path, `name: careful\nversion: ${version}\nsettings: {escalateMs: 60000}\n`);
    return path;
  };

  test("warns where its name is that of another pack in use, and says where", async () => {
    const config = createMemoryConfig({});
    await runPolicy(config, "use careful");
    await runPolicy(config, "use careful --agent writer");
    const warned = await runPolicy(config, `use ${writeMine("7.0.0")} --agent scout`);
    expect(warned).toContain(
      "warning careful 7.0.0 replaces careful 1.1.0 also for the gateway and agent writer, which go by that name",
    );
    expect(await runPolicy(config, `use ${writeMine("7.0.0")}`)).not.toContain("replaces");
  });

  test("does not warn where the pack is in use for the same sessions only", async () => {
    const config = createMemoryConfig({});
    await runPolicy(config, "use careful --agent Scout");
    expect(await runPolicy(config, `use ${writeMine("7.0.0")} --agent scout`)).not.toContain("replaces");
    const whole = createMemoryConfig({});
    await runPolicy(whole, "use careful");
    expect(await runPolicy(whole, `use ${writeMine("8.0.0")}`)).not.toContain("replaces");
  });
});

describe("policy commands where a variable of the gateway is not set", () => {
  const TESTS = { kind: "command", command: "npm" };
  const createUnsetConfig = (phase1: object): MemoryConfig =>
    createMemoryConfig({ plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } } });
  const CHECKED = {
    default: "checked",
    packs: { checked: { version: "1.0.0", settings: { gates: { verifiers: { tests: TESTS } } } } },
  };
  const NAMING = { gates: { agents: { writer: { checks: ["tests"] } } }, policies: CHECKED };
  const VARIABLES = [
    [
      "could be a value as it stands",
      { escalations: { webhooks: { ops: { url: "https://ops.example", secret: "${WEBHOOK_SECRET}" } } } },
    ],
    ["could not", { ledger: { url: "${LEDGER_URL}" } }],
  ] as const;

  test.each(VARIABLES)("drop no pack whose check is named elsewhere: one that %s", async (_, setting) => {
    const config = createUnsetConfig({ ...NAMING, ...setting });
    const { stderr, exitCode } = await runCli(["policy", "drop", "--yes"], { config });
    expect(stderr).toMatch(/CONFIG_INVALID: .*gates\.agents\.writer\.checks\[0\]/u);
    expect({ exitCode, writes: config.writes }).toEqual({ exitCode: 1, writes: 0 });
  });

  const WAYS = [[], ["--agent", "writer"]] as const;

  test.each(
    VARIABLES.flatMap(([about, setting]) => WAYS.map((options) => [about, options, setting] as const)),
  )("use no pack that cannot hold: one that %s, with %j", async (_, options, setting) => {
    const config = createUnsetConfig({ gates: { verifiers: { tests: TESTS } }, ...setting });
    const path = folder.file("odd.yaml");
    const odd = "settings: {gates: {verifiers: {tests: {kind: pattern, pattern: passed}}}}";
    writeFileSync(path, `name: odd\nversion: 1.0.0\n${odd}\n`);
    const { stderr, exitCode } = await runCli(["policy", "use", path, ...options, "--yes"], { config });
    expect(stderr).toMatch(/CONFIG_INVALID: .*gates\.verifiers\.tests.*with the policy pack odd in use/u);
    expect({ exitCode, writes: config.writes }).toEqual({ exitCode: 1, writes: 0 });
  });

  test.each(VARIABLES)("still use and drop others: one that %s", async (_, setting) => {
    const config = createUnsetConfig({ ...setting });
    await runPolicy(config, "use careful --yes");
    await runPolicy(config, "use fast --agent writer --yes");
    await runPolicy(config, "drop --agent writer --yes");
    await runPolicy(config, "drop --yes");
    expect(config.writes).toBe(4);
  });
});
