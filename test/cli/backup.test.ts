import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { startAppendLoop } from "../support/append-loop.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { changeHostDatabase, recordBackups } from "./recorded-backups.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [RESEARCH, OPEN]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

function backUp(file: string, setting: CliSetting = {}, ...more: readonly string[]) {
  return runCli(["ledger", "backup", file, "--ledger", nameLedger(), ...more], setting);
}

async function verify(file: string): Promise<unknown> {
  return JSON.parse((await runCli(["verify", "--ledger", file, "--json"])).stdout);
}

async function errorOf(file: string): Promise<unknown> {
  const { stdout, exitCode } = await backUp(file, {}, "--json");
  expect(exitCode).toBe(1);
  return (JSON.parse(stdout) as { error: unknown }).error;
}

describe("ledger backup", () => {
  test("copies the ledger to a private file that verifies, and leaves nothing else", async () => {
    using copies = createTempFolder();
    const copy = copies.file("copy.sqlite");
    const { stdout, stderr, exitCode } = await backUp(copy);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toContain(`verify --ledger ${copy}`);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(readdirSync(copies.path)).toEqual(["copy.sqlite"]);
    expect(await verify(copy)).toEqual(await verify(nameLedger()));
  });

  test("names the keys beside the ledger, which are not in the copy", async () => {
    using ledgers = createTempFolder();
    using copies = createTempFolder();
    const ledger = ledgers.file("ledger.sqlite");
    await recordLedger(ledger, [RESEARCH]);
    const keys = ["interrupt-key", "withheld-key"].map((name) => ledgers.file(name));
    const command = ["ledger", "backup", copies.file("copy.sqlite"), "--ledger", ledger];
    for (const key of keys) writeFileSync(key, "key");
    const { stdout } = await runCli(command);
    expect(stdout).toContain(
      `The keys of the ledger are not in the copy. Back them up, too: ${keys.join(", ")}.`,
    );
    expect(readdirSync(copies.path)).toEqual(["copy.sqlite"]);
  });

  test("says as JSON what it copied where", async () => {
    using copies = createTempFolder();
    const copy = copies.file("copy.sqlite");
    const { stdout } = await backUp(copy, {}, "--json");
    expect(JSON.parse(stdout)).toEqual({ ledger: nameLedger(), file: copy, bytes: statSync(copy).size });
  });

  test("overwrites no file, no link and not the ledger itself", async () => {
    using copies = createTempFolder();
    const takenPath = copies.file("taken");
    writeFileSync(takenPath, "mine");
    const link = copies.file("link");
    symlinkSync(copies.file("nowhere"), link);
    for (const file of [takenPath, link, nameLedger(), copies.path])
      expect(await errorOf(file)).toMatchObject({
        code: "INPUT_INVALID",
        message: expect.stringContaining(`${file} already exists`) as string,
      });
    expect(readFileSync(takenPath, "utf8")).toBe("mine");
    expect(readdirSync(copies.path).toSorted()).toEqual(["link", "taken"]);
  });

  test("of two to one file at once makes one whole copy, and refuses the other", async () => {
    using copies = createTempFolder();
    const copy = copies.file("copy.sqlite");
    const made = await Promise.all([backUp(copy, {}, "--json"), backUp(copy, {}, "--json")]);
    expect(made.map(({ exitCode }) => exitCode).toSorted()).toEqual([0, 1]);
    const refused = made.find(({ exitCode }) => exitCode === 1);
    expect(JSON.parse(refused?.stdout ?? "")).toMatchObject({
      error: { code: "INPUT_INVALID", message: expect.stringContaining("already exists") as string },
    });
    expect(readdirSync(copies.path)).toEqual(["copy.sqlite"]);
    expect(await verify(copy)).toEqual(await verify(nameLedger()));
  });

  test("names the folder that is not there, and the ledger that is not there", async () => {
    using copies = createTempFolder();
    expect(await errorOf(copies.file("no/copy.sqlite"))).toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining(copies.file("no")) as string,
    });
    const copy = copies.file("copy.sqlite");
    const missing = await runCli(["ledger", "backup", copy, "--ledger", copies.file("none"), "--json"]);
    expect(JSON.parse(missing.stdout)).toMatchObject({ error: { code: "LEDGER_NOT_FOUND" } });
    expect(existsSync(copy)).toBe(false);
  });

  test("shows a person how far it is, and a program nothing", async () => {
    using copies = createTempFolder();
    const shown = await backUp(copies.file("one"), { ticking: true, terminal: { isTTY: true } });
    expect(shown.stderr).toMatch(/\rcopied \d+ % /u);
    expect(shown.stderr.endsWith("\r\u001b[K")).toBe(true);
    expect((await backUp(copies.file("two"), { ticking: true })).stderr).toBe("");
  });

  test("has an example in its help", async () => {
    for (const args of [["ledger"], ["ledger", "backup"]])
      expect((await runCli([...args, "--help"])).stdout).toContain("ledger backup copy.sqlite");
  });

  test("of a ledger that is being written is whole and has all that was acknowledged before", async () => {
    using written = createTempFolder();
    const path = written.file("ledger.sqlite");
    await using loop = await startAppendLoop(path);
    for (const name of ["one", "two", "three"]) {
      await loop.more(100);
      const before = loop.acknowledged();
      const copy = written.file(name);
      const made = await runCli(["ledger", "backup", copy, "--ledger", path]);
      expect(made).toMatchObject({ exitCode: 0, stderr: "" });
      await loop.more(1);
      expect(await verify(copy)).toMatchObject({ ok: true, problems: [] });
      const reader = await openLedgerForReading(copy);
      for (const runId of new Set(before.map((acknowledged) => acknowledged.runId)))
        expect(await reader.read(runId, { from: 0, limit: 1 })).toHaveLength(1);
      await reader.close();
    }
  });
});

describe("doctor, of backups", () => {
  const NOW = TEST_EPOCH_MS;
  const DAY_MS = 24 * 3_600_000;

  async function runBackupCheck(prepare: (stateDir: string) => void): Promise<unknown> {
    using state = createTempFolder();
    const coordination = state.file("coordination");
    mkdirSync(coordination, { mode: 0o700 });
    await recordLedger(join(coordination, "ledger.sqlite"), [OPEN]);
    prepare(state.path);
    const before = readdirSync(state.path, { recursive: true });
    const { stdout } = await runCli(["doctor", "--json"], { stateDir: state.path, nowMs: NOW });
    expect(readdirSync(state.path, { recursive: true })).toEqual(before);
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    return checks.find(({ name }) => name === "backup");
  }

  test("says that none is known, where the host has no record or only others", async () => {
    const none = { status: "warn", message: "no backup by OpenClaw is known" };
    expect(await runBackupCheck(() => undefined)).toMatchObject(none);
    expect(
      await runBackupCheck((stateDir) => {
        recordBackups(stateDir, [
          { id: "failed", atMs: NOW - 1, status: "failed" },
          { id: "git", atMs: NOW - 1, kind: "git" },
          { id: "snapshot", atMs: NOW - 1, kind: "sqlite-snapshot" },
        ]);
      }),
    ).toMatchObject(none);
  });

  test("says when the newest archive was made", async () => {
    const check = await runBackupCheck((stateDir) => {
      recordBackups(stateDir, [
        { id: "older", atMs: NOW - 5 * DAY_MS },
        { id: "newer", atMs: NOW - 2 * DAY_MS },
      ]);
    });
    expect(check).toMatchObject({ status: "ok" });
    expect(check).toMatchObject({ message: expect.stringMatching(/2d.* ago: newer\.tar\.gz$/u) as string });
  });

  test("warns of one that is older than two weeks", async () => {
    const check = await runBackupCheck((stateDir) => {
      recordBackups(stateDir, [{ id: "old", atMs: NOW - 15 * DAY_MS }]);
    });
    expect(check).toMatchObject({
      status: "warn",
      advice: expect.stringContaining("openclaw backup create") as string,
    });
  });

  test("says that the record cannot be read, where it is in another form", async () => {
    const unreadable = { status: "warn", message: "OpenClaw's record of its backups cannot be read" };
    expect(
      await runBackupCheck((stateDir) => {
        mkdirSync(join(stateDir, "state"));
        writeFileSync(join(stateDir, "state", "openclaw.sqlite"), "nonsense ".repeat(100));
      }),
    ).toMatchObject(unreadable);
    expect(
      await runBackupCheck((stateDir) => {
        changeHostDatabase(stateDir, (database) => {
          database.exec("create table other (id text)");
        });
      }),
    ).toMatchObject(unreadable);
  });

  test("says nothing of a ledger elsewhere, which no backup of the host has", async () => {
    const { stdout } = await runCli(["doctor", "--ledger", nameLedger(), "--json"]);
    expect(
      (JSON.parse(stdout) as { checks: { name: string }[] }).checks.map(({ name }) => name),
    ).not.toContain("backup");
  });
});
