/** Owns: what `status` and `doctor` say of a gateway that was degraded when coordination was switched off. */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Health } from "../../src/agents/coordination/ports/health-sink.ts";
import {
  applyConfigChanges,
  listDisableChanges,
  listEnableChanges,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { readProcessName } from "../../src/platform/process-name.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

const DEGRADED: Health = {
  state: "degraded",
  failure: { code: "LEDGER_FULL", message: "the disk is full", atMs: TEST_EPOCH_MS },
  uncoordinatedSpawns: 3,
};
const ENABLED: object = {};
applyConfigChanges(ENABLED, listEnableChanges(ENABLED, {}));
const DISABLED: object = structuredClone(ENABLED);
applyConfigChanges(DISABLED, listDisableChanges(DISABLED));

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("coordination/ledger.sqlite"), [OPEN]);
  writeFileSync(folder.file("coordination/health.json"), JSON.stringify(DEGRADED), { mode: 0o600 });
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function runBoth(config: object | undefined, ...more: string[]) {
  const setting = { stateDir: folder.path, ...(config && { config: createMemoryConfig(config) }) };
  const status = await runCli(["status", ...more], setting);
  const json = await runCli(["status", "--json", ...more], setting);
  const doctor = await runCli(["doctor", "--json", ...more], setting);
  const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string }[] };
  return {
    text: status.stdout,
    json: JSON.parse(json.stdout) as object,
    health: checks.find(({ name }) => name === "health"),
    exitCode: doctor.exitCode,
  };
}

const ALARM = "COORDINATION IS DEGRADED";

describe("an old failure of a gateway", () => {
  test("is no alarm once coordination is switched off", async () => {
    const { text, json, health, exitCode } = await runBoth(DISABLED);
    expect(text).not.toContain(ALARM);
    expect(text).toMatch(
      /^health +LEDGER_FULL at .*; 3 spawns went unrecorded until coordination was switched off$/mu,
    );
    expect(json).toMatchObject({ enabled: false, health: { state: "degraded" }, oldHealth: true });
    expect({ health, exitCode }).toMatchObject({
      health: {
        status: "warn",
        message: expect.stringMatching(
          /^was degraded when it was switched off: LEDGER_FULL at .*: the disk is full; 3 spawns/u,
        ) as string,
      },
      exitCode: 0,
    });
  });

  test.each<[string, object | undefined, string[]]>([
    ["while coordination is on", ENABLED, []],
    ["where the configuration cannot be read", undefined, []],
    ["where the configuration is not valid", { plugins: { entries: { coordination: { config: 7 } } } }, []],
    [
      "of the gateway of another ledger, which is named",
      DISABLED,
      ["--ledger", "coordination/ledger.sqlite"],
    ],
  ])("is an alarm %s", async (_, config, more) => {
    const named = more.map((word) => (word.includes("/") ? folder.file(word) : word));
    const { text, json, health, exitCode } = await runBoth(config, ...named);
    expect(text).toContain(ALARM);
    expect(json).not.toHaveProperty("oldHealth");
    expect({ health, exitCode }).toMatchObject({ health: { status: "fail" }, exitCode: 1 });
  });

  test("is an alarm until the running gateway has taken up that coordination is off", async () => {
    using state = createTempFolder();
    await recordLedger(state.file("coordination/ledger.sqlite"), [OPEN]);
    const name = readProcessName();
    const health = { ...DEGRADED, gateway: { process: name, configSha256: "0".repeat(64) } };
    writeFileSync(state.file("coordination/health.json"), JSON.stringify(health), { mode: 0o600 });
    const setting = { stateDir: state.path, config: createMemoryConfig(DISABLED) };
    expect((await runCli(["status"], setting)).stdout).toContain(ALARM);
    expect((await runCli(["doctor"], setting)).exitCode).toBe(1);
  });
});
