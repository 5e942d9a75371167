/** Owns: that the program outside of the host, without `--ledger`, works on the ledger that the configuration names, or on none. */
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
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

  describe("doctor", () => {
    const runDoctor = async (...more: string[]) => {
      const { stdout } = await run(["doctor", "--json", ...more]);
      return (JSON.parse(stdout) as { checks: { name: string; status: string; message: string }[] }).checks;
    };

    test("looks at the gateway's keys and their folder, and not at the old file", async () => {
      const key = folder.file("coordination/withheld-key");
      writeFileSync(key, new Uint8Array(32));
      chmodSync(key, 0o666);
      symlinkSync(folder.file("nowhere"), folder.file("coordination/interrupt-key"));
      chmodSync(folder.file("coordination"), 0o755);
      chmodSync(folder.file("coordination/ledger.sqlite"), 0o666);
      const checks = await runDoctor();
      const messages = checks.map(({ name, status, message }) => `${name} ${status} ${message}`);
      expect(messages).toEqual(
        expect.arrayContaining([
          `ledger-folder warn ${folder.file("coordination")} is open to other users (mode 755)`,
          `withheld-key fail ${key} may be written by other users (mode 666)`,
          `plain-files fail ${folder.file("coordination/interrupt-key")} is a link to nothing`,
          expect.stringMatching(/^disk (?:ok|warn) /u) as string,
        ]),
      );
      expect(messages.join("\n")).not.toMatch(/ledger\.sqlite|^durability/mu);
    });

    test("looks at no files for a server that is named", async () => {
      const names = (await runDoctor("--ledger", URL_TEXT)).map(({ name }) => name);
      expect(names).toContain("ledger");
      for (const name of ["ledger-folder", "withheld-key", "disk"]) expect(names).not.toContain(name);
    });
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
