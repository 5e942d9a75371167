/** Owns: what `status` and `doctor` say where coordination is on and no gateway runs with it. */
import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  applyConfigChanges,
  listDisableChanges,
  listEnableChanges,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { readBootName, readProcessName } from "../../src/platform/process-name.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

const ENABLED: object = {};
applyConfigChanges(ENABLED, listEnableChanges(ENABLED, {}));
const DISABLED: object = structuredClone(ENABLED);
applyConfigChanges(DISABLED, listDisableChanges(DISABLED));

const LEDGER = "coordination/ledger.sqlite";
const RUNNING = { process: readProcessName(), configSha256: "0".repeat(64) };
/** No process of this machine started at that time. */
const ENDED = { ...RUNNING, process: `${RUNNING.process}0` };
/** A process of another machine, or of this one before it was booted. */
const ELSEWHERE = { ...RUNNING, process: `${"0".repeat(24)}.1.1` };

/** Records a ledger, and beside it that a gateway was well; no report where there is none. */
async function recordReport(state: TempFolder, gateway?: object): Promise<void> {
  await recordLedger(state.file(LEDGER), [OPEN]);
  if (gateway === undefined) return;
  const health = { state: "ok", uncoordinatedSpawns: 0, gateway };
  writeFileSync(state.file("coordination/health.json"), JSON.stringify(health), { mode: 0o600 });
}

async function runBoth(state: TempFolder, config: object, ...more: string[]) {
  const setting = { stateDir: state.path, config: createMemoryConfig(config) };
  const { stdout: text } = await runCli(["status", ...more], setting);
  const { stdout: json } = await runCli(["status", "--json", ...more], setting);
  const { stdout: doctor } = await runCli(["doctor", "--json", ...more], setting);
  const { checks } = JSON.parse(doctor) as { checks: { name: string }[] };
  return {
    health: text.split("\n").find((line) => line.startsWith("health")),
    gateway: (JSON.parse(json) as { gateway?: unknown }).gateway,
    check: checks.find(({ name }) => name === "gateway"),
  };
}

// Where the system does not name processes, nobody can tell whether the gateway still runs.
describe.skipIf(readProcessName() === undefined)("where coordination is on", () => {
  test("status and doctor say that the gateway's process has ended, and how to start it", async () => {
    using state = createTempFolder();
    await recordReport(state, ENDED);
    const { health, gateway, check } = await runBoth(state, ENABLED);
    expect(health).toMatch(/^health +no gateway coordinates: the process of the last one has ended$/u);
    expect(gateway).toBe("ended");
    expect(check).toMatchObject({
      status: "warn",
      message: "no gateway coordinates: the process of the last one has ended",
      advice: expect.stringContaining("`openclaw gateway run`") as string,
    });
  });

  test("they say that no gateway has reported since coordination was enabled", async () => {
    using state = createTempFolder();
    await recordReport(state);
    const { health, gateway, check } = await runBoth(state, ENABLED);
    expect(health).toMatch(/^health +no report of a gateway is found in the state folder$/u);
    expect(gateway).toBe("none");
    expect(check).toMatchObject({
      status: "warn",
      advice: expect.stringContaining("`openclaw plugins install") as string,
    });
  });

  test("they are content with a gateway that runs", async () => {
    using state = createTempFolder();
    await recordReport(state, RUNNING);
    const { health, gateway, check } = await runBoth(state, ENABLED);
    expect(health).toMatch(/^health +ok$/u);
    expect(gateway).toBe("running");
    expect(check).toMatchObject({ status: "ok" });
  });

  test("they say that a gateway runs without coordination, where its plugin was stopped", async () => {
    using state = createTempFolder();
    await recordReport(state, { process: readProcessName() });
    const { health, gateway, check } = await runBoth(state, ENABLED);
    expect(health).toMatch(/^health +a gateway runs without coordination$/u);
    expect(gateway).toBe("stopped");
    expect(check).toMatchObject({
      status: "warn",
      message: "a gateway runs without coordination",
      advice: expect.stringContaining("`openclaw plugins reload coordination`") as string,
    });
  });

  test.skipIf(readBootName() === undefined)(
    "they say that the gateway has ended where its machine was booted since",
    async () => {
      using state = createTempFolder();
      const [machine] = readBootName()?.split(".") ?? [];
      await recordReport(state, { ...ELSEWHERE, boot: `${machine}.${"0".repeat(24)}` });
      const { health, gateway, check } = await runBoth(state, ENABLED);
      expect(health).toMatch(/the process of the last one has ended$/u);
      expect(gateway).toBe("ended");
      expect(check).toMatchObject({ status: "warn" });
      await recordReport(state, { ...ELSEWHERE, boot: readBootName() });
      expect(await runBoth(state, ENABLED)).toMatchObject({ gateway: undefined, check: undefined });
      await recordReport(state, { ...ELSEWHERE, boot: `${"0".repeat(24)}.${"0".repeat(24)}` });
      expect(await runBoth(state, ENABLED)).toMatchObject({ gateway: undefined, check: undefined });
    },
  );

  test("they say nothing of a gateway on another machine, nor beside a ledger that is named", async () => {
    using state = createTempFolder();
    await recordReport(state, ELSEWHERE);
    expect(await runBoth(state, ENABLED)).toMatchObject({ gateway: undefined, check: undefined });
    await recordReport(state, ENDED);
    const named = await runBoth(state, ENABLED, "--ledger", state.file(LEDGER));
    expect(named).toMatchObject({ gateway: undefined, check: undefined });
  });
});

test("where coordination is off, a gateway that has ended is nothing to warn of", async () => {
  using state = createTempFolder();
  await recordReport(state, ENDED);
  expect(await runBoth(state, DISABLED)).toMatchObject({ gateway: undefined, check: undefined });
});
