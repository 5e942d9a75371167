/** Owns: what the commands say of a gateway that can read its ledger and not write to it, as on a disk that became read-only. */
import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
const USER = 65_534;
const isRoot = process.getuid?.() === 0;

interface DoctorReport {
  readonly ok: boolean;
  readonly checks: readonly { readonly name: string; readonly message: string }[];
}

/** Runs the real program as the user of the gateway, who is not root: root writes everywhere. */
function runAsUser(stateDir: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env["PATH"], LANG: "C.UTF-8", HOME: stateDir, OPENCLAW_STATE_DIR: stateDir };
  const identity = isRoot ? { uid: USER, gid: USER } : {};
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env, ...identity }, (_, stdout) => {
      resolve(stdout);
    });
  });
}

/** Records a ledger with a gateway that is well, and gives all of it to its user. */
async function recordState(stateDir: string): Promise<{ readonly state: string }> {
  const state = join(stateDir, "coordination");
  mkdirSync(state);
  await recordLedger(join(state, "ledger.sqlite"), [OPEN]);
  writeFileSync(join(state, "health.json"), JSON.stringify({ state: "ok", uncoordinatedSpawns: 0 }), {
    mode: 0o600,
  });
  if (isRoot) {
    for (const path of [stateDir, state, ...readdirSync(state).map((name) => join(state, name))])
      chownSync(path, USER, USER);
  }
  chmodSync(state, 0o700);
  return { state };
}

describe("a gateway that can write its files", () => {
  test("is well for status, and no check of doctor is about that", async () => {
    using folder = createTempFolder();
    await recordState(folder.path);
    const status = await runCli(["status", "--json"], { stateDir: folder.path });
    expect(JSON.parse(status.stdout)).not.toHaveProperty("unwritable");
    const doctor = await runCli(["doctor"], { stateDir: folder.path });
    expect(doctor.stdout).not.toContain("cannot be written");
  });
});

describe("a gateway that cannot write its files any more", () => {
  test("fails a check of doctor, and is not well for status", async () => {
    using folder = createTempFolder();
    const { state } = await recordState(folder.path);
    chmodSync(state, 0o500);
    const { ok, checks } = JSON.parse(await runAsUser(folder.path, ["doctor", "--json"])) as DoctorReport;
    expect(ok).toBe(false);
    const message = `${state} cannot be written (EACCES)`;
    expect(checks).toContainEqual(expect.objectContaining({ name: "writable", status: "fail", message }));
    expect(await runAsUser(folder.path, ["status"])).toContain(`unknown: ${message}`);
    chmodSync(state, 0o700);
  });

  test("is not well for status because of its ledger alone", async () => {
    using folder = createTempFolder();
    const { state } = await recordState(folder.path);
    const ledger = join(state, "ledger.sqlite");
    chmodSync(ledger, 0o400);
    expect(JSON.parse(await runAsUser(folder.path, ["status", "--json"]))).toMatchObject({
      health: { state: "ok" },
      unwritable: `${ledger} cannot be written (EACCES)`,
    });
  });

  test("is well where that is health.json alone, in place of which it puts a new file", async () => {
    using folder = createTempFolder();
    const { state } = await recordState(folder.path);
    chmodSync(join(state, "health.json"), 0o400);
    expect(JSON.parse(await runAsUser(folder.path, ["status", "--json"]))).not.toHaveProperty("unwritable");
  });

  test("is none of the concerns of who reads a named ledger", async () => {
    using folder = createTempFolder();
    const { state } = await recordState(folder.path);
    const { stdout } = await runCli(["doctor", "--ledger", join(state, "ledger.sqlite")]);
    expect(stdout).not.toContain("cannot be written");
  });
});
