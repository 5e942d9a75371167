/** A ledger that is there and that this user may not look at, which is another thing than none. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

interface DoctorReport {
  readonly ok: boolean;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

describe("a ledger that is a link to itself", () => {
  test("is there for status and list, and a failed check of doctor", async () => {
    using folder = createTempFolder();
    const ledger = folder.file("ledger.sqlite");
    symlinkSync("ledger.sqlite", ledger);
    const status = await runCli(["status", "--json", "--ledger", ledger]);
    expect(JSON.parse(status.stdout)).toMatchObject({
      ledger: { exists: true, coordinations: null, error: { code: "LEDGER_UNAVAILABLE" } },
    });
    const list = await runCli(["list", "--ledger", ledger]);
    expect(list.stderr).toContain("LEDGER_UNAVAILABLE");
    expect(list.stderr).not.toContain("no ledger at");
    const doctor = await runCli(["doctor", "--json", "--ledger", ledger]);
    const { ok, checks } = JSON.parse(doctor.stdout) as DoctorReport;
    expect({ ok, exitCode: doctor.exitCode }).toEqual({ ok: false, exitCode: 1 });
    expect(checks).toContainEqual(
      expect.objectContaining({
        name: "ledger-file",
        status: "fail",
        message: `${ledger} cannot be looked at (ELOOP)`,
      }),
    );
  });
});

describe("a path that leads through a file", () => {
  test.each([["backup"], ["anchor"]])("is a wrong input of ledger %s", async (command) => {
    using folder = createTempFolder();
    const ledger = folder.file("ledger.sqlite");
    await recordLedger(ledger, [RESEARCH]);
    const file = join(ledger, "copy");
    const { stdout } = await runCli(["ledger", command, file, "--json", "--ledger", ledger]);
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        code: "INPUT_INVALID",
        message: expect.stringContaining("cannot be looked at (ENOTDIR)") as string,
      },
    });
  });

  test("holds no ledger", async () => {
    using folder = createTempFolder();
    const ledger = folder.file("ledger.sqlite");
    await recordLedger(ledger, [RESEARCH]);
    const { stderr } = await runCli(["list", "--ledger", join(ledger, "ledger.sqlite")]);
    expect(stderr).toContain("no ledger at");
  });
});

/** Runs the real program as somebody who is neither root nor the owner of the ledger. */
function runAsNobody(args: readonly string[], home: string): Promise<{ stdout: string; stderr: string }> {
  const env = { PATH: process.env["PATH"], LANG: "C.UTF-8", HOME: home };
  const identity = { uid: NOBODY, gid: NOBODY };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env, ...identity }, (_, stdout, stderr) => {
      resolve({ stdout, stderr });
    });
  });
}

describe("a ledger in a folder of another user", () => {
  test.runIf(isRoot)("is there, and doctor says that it cannot be looked at", async () => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    const state = folder.file("coordination");
    mkdirSync(state, { mode: 0o700 });
    const ledger = join(state, "ledger.sqlite");
    await recordLedger(ledger, [RESEARCH]);
    const status = await runAsNobody(["status", "--json", "--ledger", ledger], folder.path);
    expect(JSON.parse(status.stdout)).toMatchObject({ ledger: { exists: true, coordinations: null } });
    const doctor = await runAsNobody(["doctor", "--json", "--ledger", ledger], folder.path);
    const { ok, checks } = JSON.parse(doctor.stdout) as DoctorReport;
    expect(ok).toBe(false);
    expect(checks.map(({ message }) => message)).toContain(`${ledger} cannot be looked at (EACCES)`);
  });
});
