import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { CoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { Health } from "../../src/agents/coordination/ports/health-sink.ts";
import {
  checkConfig,
  checkDiskSpace,
  checkFileSystem,
  checkNodeVersion,
  checkOverdueSteps,
  checkOwnerAndMode,
} from "../../src/plugins/cli/doctor-checks.ts";
import {
  applyConfigChanges,
  listEnableChanges,
  readCoordinationSwitches,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { recordBackups } from "./recorded-backups.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli, type CliSetting } from "./run-cli.ts";

function createEnabledConfig(extra: object = {}): object {
  const config: object = structuredClone(extra);
  applyConfigChanges(config, listEnableChanges(config, {}));
  return config;
}

async function readStatus(setting: CliSetting): Promise<Record<string, unknown>> {
  const { stdout, stderr, exitCode } = await runCli(["status", "--json"], setting);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return JSON.parse(stdout) as Record<string, unknown>;
}

async function recordState(path: string): Promise<string> {
  const ledger = join(path, "coordination", "ledger.sqlite");
  await recordLedger(ledger, [RESEARCH, OPEN]);
  return ledger;
}

const DEGRADED: Health = {
  state: "degraded",
  failure: { code: "LEDGER_FULL", message: "the disk is full", atMs: TEST_EPOCH_MS },
  uncoordinatedSpawns: 3,
};

describe("status", () => {
  test("without a ledger and without a configuration answers and creates nothing", async () => {
    using state = createTempFolder();
    expect(await readStatus({ stateDir: state.path })).toEqual({
      enabled: null,
      strict: null,
      openwop: { served: null },
      ledger: {
        path: join(state.path, "coordination", "ledger.sqlite"),
        exists: false,
        bytes: 0,
        coordinations: 0,
      },
      running: 0,
      openSteps: 0,
      openConflicts: 0,
      mismatches: 0,
      openQuestions: 0,
      refusedCalls: 0,
      health: { state: "ok", uncoordinatedSpawns: 0 },
    });
    expect(readdirSync(state.path)).toEqual([]);
  });

  test("counts what the ledger holds and what is running", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    expect(await readStatus({ stateDir: state.path })).toMatchObject({
      ledger: { exists: true, bytes: expect.any(Number) as number, coordinations: 2 },
      running: 1,
      openSteps: 2,
    });
  });

  test.each([
    ["no entry", {}, { enabled: false, strict: false }],
    ["the flag on", createEnabledConfig(), { enabled: true, strict: false }],
    [
      "the flag on and the plugin denied",
      createEnabledConfig({ plugins: { deny: ["coordination"] } }),
      { enabled: false, problem: 'plugins.deny has "coordination"' },
    ],
    [
      "a misspelt setting",
      { plugins: { entries: { coordination: { config: { coordination: { phase1: { enabld: true } } } } } } },
      { enabled: false, strict: null, problem: expect.stringContaining("enabld") as string },
    ],
  ])("with %s tells whether spawns are coordinated", async (_, config, expected) => {
    using state = createTempFolder();
    expect(await readStatus({ stateDir: state.path, config: createMemoryConfig(config) })).toMatchObject(
      expected,
    );
  });

  test("says loudly and first that spawns go on unrecorded, and what to do", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    writeFileSync(join(state.path, "coordination", "health.json"), JSON.stringify(DEGRADED));
    expect(await readStatus({ stateDir: state.path })).toMatchObject({ health: DEGRADED });
    const { stdout } = await runCli(["status"], { stateDir: state.path, terminal: { colour: true } });
    expect(stdout.split("\n")[0]).toContain("COORDINATION IS DEGRADED");
    expect(stdout.split(" COORDINATION")[0]).toContain("\u001b[41m");
    expect(stdout).toContain("LEDGER_FULL: the disk is full (2026-01-02 03:04:05Z)");
    expect(stdout).toContain("3 spawns went on without a record.");
    expect(stdout).toContain("Free space on the disk");
  });

  test("remembers a failure that is over, without alarm", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    writeFileSync(
      join(state.path, "coordination", "health.json"),
      JSON.stringify({ ...DEGRADED, state: "ok" }),
    );
    const { stdout } = await runCli(["status"], { stateDir: state.path });
    expect(stdout).not.toContain("DEGRADED");
    expect(stdout).toContain("ok again after LEDGER_FULL at 2026-01-02 03:04:05Z; 3 spawns went unrecorded");
  });

  test("of a ledger that cannot be read tells why, and the rest", async () => {
    using state = createTempFolder();
    mkdirSync(join(state.path, "coordination"));
    writeFileSync(join(state.path, "coordination", "ledger.sqlite"), "nonsense ".repeat(100));
    expect(
      await readStatus({ stateDir: state.path, config: createMemoryConfig(createEnabledConfig()) }),
    ).toMatchObject({
      enabled: true,
      ledger: { exists: true, bytes: null, coordinations: null, error: { code: "LEDGER_CORRUPT" } },
      running: null,
    });
  });
});

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly advice?: string;
}

async function runDoctor(setting: CliSetting) {
  const { stdout, exitCode } = await runCli(["doctor", "--json"], setting);
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] };
  expect(exitCode).toBe(ok ? 0 : 1);
  return { ok, checks, failed: checks.filter(({ status }) => status === "fail").map(({ name }) => name) };
}

describe("doctor", () => {
  test("finds nothing wrong with a sound installation", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    recordBackups(state.path, [{ id: "daily", atMs: TEST_EPOCH_MS }]);
    const health = { state: "ok", uncoordinatedSpawns: 0 };
    writeFileSync(join(state.path, "coordination", "health.json"), JSON.stringify(health));
    const { ok, checks } = await runDoctor({
      stateDir: state.path,
      config: createMemoryConfig(createEnabledConfig()),
    });
    expect(ok).toBe(true);
    expect(checks.map(({ name }) => name)).toEqual([
      "node",
      "flag",
      "plugin",
      "conversation-access",
      "plugin-lists",
      "ledger-folder",
      "ledger-file",
      "interrupt-key",
      "withheld-key",
      "durability",
      "disk",
      "ledger",
      "overdue-steps",
      "questions",
      "question-notices",
      "backup",
      "health",
    ]);
    expect(checks.filter(({ name, status }) => name !== "disk" && status !== "ok")).toEqual([]);
  });

  test("before the first use has nothing to complain about but the flag, and creates nothing", async () => {
    using state = createTempFolder();
    const { ok, checks } = await runDoctor({ stateDir: state.path, config: createMemoryConfig({}) });
    expect(ok).toBe(true);
    expect(checks.find(({ name }) => name === "flag")).toMatchObject({
      status: "warn",
      advice: "Run `openclaw coordination enable`.",
    });
    expect(readdirSync(state.path)).toEqual([]);
  });

  test("fails on what keeps an enabled plugin from working", async () => {
    using state = createTempFolder();
    const phase1 = { enabled: true };
    const config = createMemoryConfig({
      plugins: { allow: ["other"], entries: { coordination: { config: { coordination: { phase1 } } } } },
    });
    const { failed } = await runDoctor({ stateDir: state.path, config });
    expect(failed).toEqual(["plugin", "conversation-access", "plugin-lists"]);
  });

  test("warns of what is configured for tools that need no entry, and of no other", async () => {
    using state = createTempFolder();
    const withTools = (...names: readonly string[]): object => {
      const tools = Object.fromEntries(names.map((name) => [name, { paths: ["path"] }]));
      const config = { coordination: { phase1: { conflicts: { tools } } } };
      return createEnabledConfig({ plugins: { entries: { coordination: { config } } } });
    };
    const { ok, checks } = await runDoctor({
      stateDir: state.path,
      config: createMemoryConfig(withTools("deploy", "exec", "write")),
    });
    expect(ok).toBe(true);
    expect(checks.find(({ name }) => name === "conflicts-tools")).toMatchObject({
      status: "warn",
      message: expect.stringContaining("no effect on write, exec:") as string,
    });
    const others = await runDoctor({ stateDir: state.path, config: createMemoryConfig(withTools("deploy")) });
    expect(others.checks.map(({ name }) => name)).not.toContain("conflicts-tools");
  });

  test("warns where people are told of questions through the host alone, which carries approvals only", async () => {
    using state = createTempFolder();
    const findNotify = async (...channels: readonly string[]) => {
      const notify = channels.map((channel) => ({ channel }));
      const config = { coordination: { phase1: { escalations: { notify } } } };
      const enabled = createEnabledConfig({ plugins: { entries: { coordination: { config } } } });
      const { checks } = await runDoctor({ stateDir: state.path, config: createMemoryConfig(enabled) });
      return checks.find(({ name }) => name === "notify");
    };
    expect(await findNotify("host")).toMatchObject({
      status: "warn",
      message: expect.stringContaining("names only `host`") as string,
    });
    expect(await findNotify("host", "chat")).toBeUndefined();
    expect(await findNotify()).toBeUndefined();
  });

  test("fails on a damaged ledger, with its advice", async () => {
    using state = createTempFolder();
    mkdirSync(join(state.path, "coordination"));
    writeFileSync(join(state.path, "coordination", "ledger.sqlite"), "nonsense ".repeat(100));
    const { failed, checks } = await runDoctor({ stateDir: state.path });
    expect(failed).toEqual(["ledger"]);
    expect(checks.find(({ name }) => name === "ledger")?.advice).toContain("verify");
  });

  test("fails while the gateway reports itself degraded", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    writeFileSync(join(state.path, "coordination", "health.json"), JSON.stringify(DEGRADED));
    const { failed, checks } = await runDoctor({ stateDir: state.path });
    expect(failed).toEqual(["health"]);
    expect(checks.at(-1)?.message).toContain("3 spawns went on without a record");
  });

  test("warns of open steps past their deadline", async () => {
    using state = createTempFolder();
    await recordState(state.path);
    const nowMs = TEST_EPOCH_MS + 3_600_000;
    const { checks } = await runDoctor({ stateDir: state.path, nowMs });
    expect(checks.find(({ name }) => name === "overdue-steps")).toMatchObject({
      status: "warn",
      message: expect.stringContaining(`2 open steps past the deadline: ${OPEN.id}/step-1`) as string,
    });
  });

  test("does not count a step that ended, however late", async () => {
    using state = createTempFolder();
    const ledger = await recordState(state.path);
    const { stdout } = await runCli(["show", OPEN.id, "--ledger", ledger, "--json"]);
    const view = JSON.parse(stdout) as CoordinationView;
    const now = TEST_EPOCH_MS + 3_600_000;
    const ended = view.steps.map((step) => ({ ...step, endedAtMs: now as EpochMs }));
    expect(checkOverdueSteps([view], now).status).toBe("warn");
    expect(checkOverdueSteps([{ ...view, steps: ended }], now).status).toBe("ok");
  });

  test("warns of a ledger that other users may read", async () => {
    using state = createTempFolder();
    chmodSync(await recordState(state.path), 0o644);
    const { checks } = await runDoctor({ stateDir: state.path });
    expect(checks.find(({ name }) => name === "ledger-file")).toMatchObject({
      status: "warn",
      advice: expect.stringContaining("chmod 600") as string,
    });
  });
});

describe("doctor of a ledger that is named", () => {
  async function runDoctorOf(ledger: string) {
    const { stdout, exitCode } = await runCli(["doctor", "--json", "--ledger", ledger]);
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    return { exitCode, find: (name: string) => checks.find((check) => check.name === name) };
  }

  test.each([0o1777, 0o755])("gives no advice to close the folder around it (mode %o)", async (mode) => {
    using folder = createTempFolder();
    await recordLedger(folder.file("copy.sqlite"), [OPEN]);
    chmodSync(folder.path, mode);
    const { exitCode, find } = await runDoctorOf(folder.file("copy.sqlite"));
    expect(exitCode).toBe(0);
    expect(find("ledger-folder")).toMatchObject({ status: "warn" });
    expect(find("ledger-folder")).not.toHaveProperty("advice");
    expect(find("ledger")).toMatchObject({ status: "ok" });
  });

  test("fails where no ledger is there", async () => {
    using folder = createTempFolder();
    const { exitCode, find } = await runDoctorOf(folder.file("typo.sqlite"));
    expect(exitCode).toBe(1);
    expect(find("ledger")).toMatchObject({
      status: "fail",
      message: expect.stringContaining("LEDGER_NOT_FOUND") as string,
    });
  });
});

describe("a check", () => {
  test.each([
    ["20.19.0", "fail"],
    ["22.22.0", "warn"],
    ["24.15.9", "warn"],
    ["24.16.0", "ok"],
    ["26.1.0", "ok"],
  ])("of Node.js %s is %s", (version, expected) => {
    expect(checkNodeVersion(version).status).toBe(expected);
  });

  test.each([
    [63_000_000, "fail"],
    [64_000_000, "warn"],
    [999_999_999, "warn"],
    [1_000_000_000, "ok"],
  ])("of %i free bytes is %s", (free, expected) => {
    expect(checkDiskSpace(free).status).toBe(expected);
  });

  test("of a network file system fails, of a local one passes", () => {
    expect(checkFileSystem(0x69_69).status).toBe("fail");
    expect(checkFileSystem(0xef_53).status).toBe("ok");
  });

  test("of another user's file fails, except for root", () => {
    const found = { mode: 0o100_600, uid: 1_000 };
    expect(checkOwnerAndMode("file", found, { path: "x", mode: 0o600, uid: 1_001 }).status).toBe("fail");
    expect(checkOwnerAndMode("file", found, { path: "x", mode: 0o600, uid: 1_000 }).status).toBe("ok");
    expect(checkOwnerAndMode("file", found, { path: "x", mode: 0o600, uid: 0 }).status).toBe("ok");
  });

  test("of what an operator switched off on purpose does not fail", () => {
    const checks = checkConfig(
      readCoordinationSwitches({ plugins: { deny: ["coordination"] } }),
      "openclaw coordination",
    );
    expect(checks.map(({ status }) => status)).not.toContain("fail");
  });
});
