import { mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  isCoordinating,
  readCoordinationSwitches,
  type OperatorConfig,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

type ChangePlan = Parameters<OperatorConfig["change"]>[0];

const ENTRY = "plugins.entries.coordination";
const ENABLED = {
  plugins: {
    entries: {
      coordination: {
        enabled: true,
        hooks: { allowConversationAccess: true },
        config: { coordination: { phase1: { enabled: true } } },
      },
    },
  },
};

const answerYes = () => Promise.resolve(true);
const answerNo = () => Promise.resolve(false);

describe("enable", () => {
  test("sets the plugin, its access and the flag, and says so", async () => {
    const config = createMemoryConfig({ gateway: { port: 1 } });
    const { stdout, exitCode } = await runCli(["enable"], { config });
    expect(exitCode).toBe(0);
    expect(config.config).toEqual({ gateway: { port: 1 }, ...ENABLED });
    expect(stdout).toContain(`  ${ENTRY}.enabled: (unset) → true\n`);
    expect(stdout).toContain(`  ${ENTRY}.hooks.allowConversationAccess: (unset) → true\n`);
    expect(stdout).toContain(`  ${ENTRY}.config.coordination.phase1.enabled: (unset) → true\n`);
    expect(stdout).toContain("changed in openclaw.json");
    expect(stdout).toContain("A running gateway takes this up by itself");
    expect(stdout).toContain("`openclaw coordination timeline`");
    expect(isCoordinating(readCoordinationSwitches(config.config))).toBe(true);
  });

  test("outside of OpenClaw says that the plugin must be installed, until a gateway has reported", async () => {
    using state = createTempFolder();
    const enable = async () => {
      const memory = createMemoryConfig({});
      const config = { read: () => memory.read(), change: (plan: ChangePlan) => memory.change(plan) };
      return (await runCli(["enable"], { config, stateDir: state.path })).stdout;
    };
    expect(await enable()).toContain("must also be installed in OpenClaw: see `openclaw plugins list`");
    const inside = await runCli(["enable"], { config: createMemoryConfig({}), stateDir: state.path });
    expect(inside.stdout).not.toContain("must also be installed");
    mkdirSync(state.file("coordination"));
    const health = { state: "ok", uncoordinatedSpawns: 0 };
    writeFileSync(state.file("coordination/health.json"), JSON.stringify(health), { mode: 0o600 });
    expect(await enable()).not.toContain("must also be installed");
  });

  test("as JSON tells old and new of each place", async () => {
    const config = createMemoryConfig({ plugins: { entries: { coordination: { enabled: false } } } });
    const { stdout } = await runCli(["enable", "--json"], { config });
    expect(JSON.parse(stdout)).toEqual({
      changed: [
        { path: `${ENTRY}.enabled`, from: false, to: true },
        { path: `${ENTRY}.hooks.allowConversationAccess`, from: null, to: true },
        { path: `${ENTRY}.config.coordination.phase1.enabled`, from: null, to: true },
      ],
      dryRun: false,
      configPath: "openclaw.json",
    });
  });

  test("joins an exclusive list of plugins, and leaves an empty or missing one alone", async () => {
    const exclusive = createMemoryConfig({ plugins: { allow: ["telegram"] } });
    await runCli(["enable"], { config: exclusive });
    expect(exclusive.config).toMatchObject({ plugins: { allow: ["telegram", "coordination"] } });
    const empty = createMemoryConfig({ plugins: { allow: [] } });
    await runCli(["enable"], { config: empty });
    expect(empty.config).toMatchObject({ plugins: { allow: [] } });
    const missing = createMemoryConfig({});
    await runCli(["enable"], { config: missing });
    expect(missing.config).not.toHaveProperty("plugins.allow");
  });

  test("warns of a deny list and of plugins switched off as a whole, and changes neither", async () => {
    const config = createMemoryConfig({ plugins: { enabled: false, deny: ["coordination"] } });
    const { stdout } = await runCli(["enable"], { config });
    expect(stdout).toContain('warning plugins.deny has "coordination"');
    expect(stdout).toContain("warning plugins.enabled is false");
    expect(config.config).toMatchObject({ plugins: { enabled: false, deny: ["coordination"] } });
  });

  test("takes strict mode and a list of agents", async () => {
    const config = createMemoryConfig({});
    await runCli(["enable", "--strict", "--agents", "main, research,main"], { config });
    expect(config.config).toHaveProperty(`${ENTRY}.config.coordination.phase1`, {
      enabled: true,
      strict: true,
      agents: ["main", "research"],
    });
  });

  test("goes on from some agents to all, and from strict mode to the other, and says which agents it has", async () => {
    const config = createMemoryConfig({});
    await runCli(["enable", "--strict", "--agents", "research,coder"], { config });
    const again = await runCli(["enable"], { config });
    expect(again.stdout).toBe(
      "coordination is already enabled, strict, for the agents research, coder only; --all-agents takes in the others\n",
    );
    const { stdout } = await runCli(["enable", "--all-agents"], { config });
    expect(stdout).toContain('phase1.agents: ["research","coder"] → (unset)');
    expect(isCoordinating(readCoordinationSwitches(config.config))).toBe(true);
    expect(config.config).toHaveProperty(`${ENTRY}.config.coordination.phase1`, {
      enabled: true,
      strict: true,
    });
    expect((await runCli(["enable", "--all-agents"], { config })).stdout).toBe(
      "coordination is already enabled, strict\n",
    );
    await runCli(["enable", "--no-strict"], { config });
    expect(config.config).toEqual(ENABLED);
    expect((await runCli(["enable", "--no-strict"], { config })).stdout).toBe(
      "coordination is already enabled\n",
    );
  });

  test("leaves strict mode as it is where nothing is said of it, and sets nothing in place of what is not there", async () => {
    const config = createMemoryConfig({});
    await runCli(["enable", "--no-strict", "--all-agents"], { config });
    expect(config.config).toEqual(ENABLED);
  });

  test("refuses some agents and all of them at once", async () => {
    const config = createMemoryConfig({});
    const { stderr, exitCode } = await runCli(["enable", "--agents", "main", "--all-agents"], { config });
    expect({ exitCode, writes: config.writes }).toEqual({ exitCode: 1, writes: 0 });
    expect(stderr).toContain("--all-agents");
  });

  test("refuses an empty agent id before it asks or writes", async () => {
    const config = createMemoryConfig({});
    const { stdout, exitCode } = await runCli(["enable", "--agents", "main,,x", "--json"], { config });
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID" } });
    expect(config.writes).toBe(0);
  });

  test("where it is already so, says so and writes nothing", async () => {
    const config = createMemoryConfig(structuredClone(ENABLED));
    const { stdout, exitCode } = await runCli(["enable"], { config });
    expect({ stdout, exitCode }).toEqual({ stdout: "coordination is already enabled\n", exitCode: 0 });
    expect(config.writes).toBe(0);
    const asJson = await runCli(["enable", "--json"], { config });
    expect(JSON.parse(asJson.stdout)).toMatchObject({ changed: [], dryRun: false });
  });

  const createRefusedConfig = (phase1: object) =>
    createMemoryConfig({ plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } } });

  test.each([[[]], [["--dry-run"]]])(
    "refuses a configuration that the plugin would refuse, and writes nothing, with %j",
    async (options) => {
      const config = createRefusedConfig({ gates: { agents: { writer: { checks: ["tests"] } } } });
      const { stderr, exitCode } = await runCli(["enable", "--yes", ...options], { config });
      expect(exitCode).toBe(1);
      expect(stderr).toContain("gates.agents.writer.checks[0]: expected a key of gates.verifiers");
      expect(config.writes).toBe(0);
      expect((await runCli(["disable", "--yes"], { config })).exitCode).toBe(0);
    },
  );

  test("takes a configuration with a variable that only the gateway's environment may have", async () => {
    const config = createRefusedConfig({ ledger: { url: "${LEDGER_URL}" } });
    expect(await runCli(["enable", "--yes"], { config })).toMatchObject({ exitCode: 0 });
    expect(config.writes).toBe(1);
  });

  test("refuses a configuration in which something else stands at the place", async () => {
    const config = createMemoryConfig({ plugins: { entries: { coordination: "yes" } } });
    const { stdout, exitCode } = await runCli(["enable", "--json"], { config });
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "CONFIG_INVALID" } });
  });
});

describe("disable", () => {
  test("sets the flag to false and nothing else", async () => {
    const config = createMemoryConfig(structuredClone(ENABLED));
    const { stdout } = await runCli(["disable", "--json"], { config });
    const path = `${ENTRY}.config.coordination.phase1.enabled`;
    expect(JSON.parse(stdout)).toMatchObject({ changed: [{ path, from: true, to: false }] });
    const expected = structuredClone(ENABLED);
    expected.plugins.entries.coordination.config.coordination.phase1.enabled = false;
    expect(config.config).toEqual(expected);
  });

  test("says that conversations may still be read, and how to take that back", async () => {
    const config = createMemoryConfig(structuredClone(ENABLED));
    const permission = `${ENTRY}.hooks.allowConversationAccess`;
    const advice = `\`openclaw config unset ${permission}\``;
    const first = await runCli(["disable"], { config });
    expect(first.stdout).toContain(`${permission} stays true`);
    expect(first.stdout).toContain(advice);
    expect((await runCli(["disable"], { config })).stdout).toContain(advice);
    const json = await runCli(["disable", "--json"], { config });
    expect(json.stderr).toContain(advice);
    expect(JSON.parse(json.stdout)).toMatchObject({ changed: [] });
  });

  test("where nothing is enabled, says so and writes nothing", async () => {
    const config = createMemoryConfig({});
    const { stdout, exitCode } = await runCli(["disable"], { config });
    expect({ stdout, exitCode }).toEqual({ stdout: "coordination is already disabled\n", exitCode: 0 });
    expect(config.writes).toBe(0);
  });
});

describe("both", () => {
  test("ask on a terminal, and change nothing without a yes", async () => {
    const config = createMemoryConfig({});
    const refused = await runCli(["enable"], { config, confirm: answerNo });
    expect(refused.exitCode).toBe(1);
    expect(refused.stdout).toMatch(/→ true[\s\S]*nothing was changed\n$/);
    expect(config.writes).toBe(0);
    await runCli(["enable"], { config, confirm: answerYes });
    expect(config.writes).toBe(1);
  });

  test("do not ask with --yes, nor where there is nothing to change", async () => {
    let requestCount = 0;
    const confirm = () => {
      requestCount += 1;
      return answerNo();
    };
    const config = createMemoryConfig({});
    await runCli(["enable", "--yes"], { config, confirm });
    await runCli(["enable"], { config, confirm });
    expect({ asked: requestCount, writes: config.writes }).toEqual({ asked: 0, writes: 1 });
  });

  test("change nothing where a person would not see the question, and say how to go on", async () => {
    const config = createMemoryConfig({});
    const hidden = await runCli(["enable"], { config, isQuestionHidden: true });
    expect({ exitCode: hidden.exitCode, stdout: hidden.stdout, writes: config.writes }).toEqual({
      exitCode: 1,
      stdout: "",
      writes: 0,
    });
    expect(hidden.stderr).toContain("stderr is no terminal");
    expect(hidden.stderr).toContain("give --yes");
    expect(await runCli(["enable", "--dry-run"], { config, isQuestionHidden: true })).toMatchObject({
      exitCode: 0,
    });
    expect(await runCli(["enable", "--yes"], { config, isQuestionHidden: true })).toMatchObject({
      exitCode: 0,
    });
    expect(await runCli(["enable"], { config, isQuestionHidden: true })).toMatchObject({
      exitCode: 0,
      stdout: "coordination is already enabled\n",
    });
    expect(config.writes).toBe(1);
  });

  test("with --dry-run show the change and write nothing", async () => {
    const config = createMemoryConfig(structuredClone(ENABLED));
    const { stdout, exitCode } = await runCli(["disable", "--dry-run"], { config, confirm: answerNo });
    expect(exitCode).toBe(0);
    expect(stdout).toContain("phase1.enabled: true → false");
    expect(stdout).toContain("dry run: nothing was changed in openclaw.json");
    const asJson = await runCli(["disable", "--dry-run", "--json"], { config });
    expect(JSON.parse(asJson.stdout)).toMatchObject({ changed: [{ from: true, to: false }], dryRun: true });
    expect(config.writes).toBe(0);
  });

  test("with --json keep stdout for the program: what a question is about and warnings go to stderr", async () => {
    const result = await runCli(["enable", "--json"], { config: createMemoryConfig({}), confirm: answerYes });
    expect(result.stderr).toContain("(unset) → true");
    expect(JSON.parse(result.stdout)).toMatchObject({ dryRun: false });
    expect((await runCli(["enable", "--json"], { config: createMemoryConfig({}) })).stderr).toBe("");
    const denied = createMemoryConfig({ plugins: { deny: ["coordination"] } });
    expect((await runCli(["enable", "--json"], { config: denied })).stderr).toMatch(/^warning plugins\.deny/);
  });

  test.each(["enable", "disable"])("%s says where OpenClaw is not installed", async (command) => {
    const { stderr, exitCode } = await runCli([command]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^error CONFIG_NOT_WRITABLE: .* Run `openclaw coordination enable` where OpenClaw/,
    );
  });
});
