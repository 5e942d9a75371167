/** Owns: that the program outside of the host, without `--ledger`, works on the ledger that the configuration names, or on none. */
import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  createOperatorConfig,
  type OperatorConfig,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli, type CliResult } from "./run-cli.ts";

const URL_TEXT = "postgres://coordination@127.0.0.1:1/coordination";
const phase1 = { enabled: true, ledger: { url: URL_TEXT } };
const entry = {
  enabled: true,
  hooks: { allowConversationAccess: true },
  config: { coordination: { phase1 } },
};
const memory = createMemoryConfig({ plugins: { entries: { coordination: entry } } });
/** As outside of the host, where nothing is known before it is read. */
const outside: OperatorConfig = { read: () => memory.read(), change: (plan) => memory.change(plan) };

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("coordination/ledger.sqlite"), [OPEN]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

function run(args: readonly string[], config: OperatorConfig = outside): Promise<CliResult> {
  return runCli(args, { stateDir: folder.path, config });
}

describe("beside a configuration that names a database, and an old file in the state folder", () => {
  test("status shows the database, and nothing of the file", async () => {
    const { stdout } = await run(["status", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      ledger: { path: expect.stringContaining("127.0.0.1:1/coordination") as string, coordinations: null },
      running: null,
    });
    expect((await run(["status"])).stdout).toContain("127.0.0.1:1/coordination");
  });

  test("doctor fails on the database", async () => {
    const { stdout, exitCode } = await run(["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    expect(exitCode).toBe(1);
    expect(checks.find(({ name }) => name === "ledger")).toMatchObject({ status: "fail" });
    expect(checks.map(({ name }) => name)).not.toContain("ledger-file");
  });

  test.each([
    [["list"]],
    [["verify"]],
    [["stats"]],
    [["runs"]],
    [["ledger", "prune", "--before", "90d"]],
    [["ledger", "backup", "COPY"]],
  ])("%j works on nothing else", async (words) => {
    const args = words.map((word) => (word === "COPY" ? folder.file("copy.sqlite") : word));
    const { stdout, exitCode } = await run([...args, "--json"]);
    expect({ exitCode, error: (JSON.parse(stdout) as { error?: object }).error }).toMatchObject({
      exitCode: 1,
      error: { code: expect.stringMatching(/^(?:LEDGER_UNAVAILABLE|INPUT_INVALID)$/u) as string },
    });
  });

  test("a named ledger is read all the same", async () => {
    const { stdout } = await run(["list", "--json", "--ledger", folder.file("coordination/ledger.sqlite")]);
    expect(JSON.parse(stdout)).toHaveLength(1);
  });
});

describe("beside a configuration that cannot be read", () => {
  const broken: OperatorConfig = {
    read: () => Promise.reject(new Error("a brace is missing")),
    change: (plan) => memory.change(plan),
  };

  test("a command says so, and names --ledger", async () => {
    const { stderr, exitCode } = await run(["list"], broken);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error CONFIG_INVALID: .*a brace is missing.*`--ledger`/u);
    const { stdout } = await run(["status", "--json"], broken);
    expect(JSON.parse(stdout)).toMatchObject({
      ledger: { error: { code: "CONFIG_INVALID" } },
      running: null,
    });
  });

  test("so does one for which OpenClaw is not installed, where the configuration may name a ledger", async () => {
    const absent = { ...broken, read: () => Promise.resolve(undefined) };
    const { stderr } = await run(["list"], { ...absent, mayNameLedger: () => Promise.resolve(true) });
    expect(stderr).toMatch(/^error CONFIG_INVALID: .*OpenClaw is not installed.*`--ledger`/u);
    expect((await run(["list"], absent)).exitCode).toBe(0);
  });

  test("one that surely names no ledger is not read", async () => {
    const silent = { ...broken, mayNameLedger: () => Promise.resolve(false) };
    expect((await run(["list"], silent)).exitCode).toBe(0);
  });
});

describe("a configuration file", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test.each([
    [undefined, false],
    ["{}", false],
    ['{ "plugins": { "entries": { "coordination": { "enabled": true } } } }', false],
    [`{ "ledger": { "url": "${URL_TEXT}" } }`, true],
    ['{ "$include": "./more.json5" }', true],
    [String.raw`{ "\u006cedger": {} }`, true],
  ])("of %j may name a ledger: %s", async (text, expected) => {
    using state = createTempFolder();
    if (text !== undefined) writeFileSync(state.file("openclaw.json"), text);
    vi.stubEnv("OPENCLAW_STATE_DIR", state.path);
    vi.stubEnv("OPENCLAW_CONFIG_PATH", "");
    expect(await createOperatorConfig().mayNameLedger?.(state.path)).toBe(expected);
    expect(createOperatorConfig({}).mayNameLedger).toBeUndefined();
  });
});
