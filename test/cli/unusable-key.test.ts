/** Owns: what `serve` and `mcp` say of a key file that the system does not let them read or make. */
import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
const USER = 65_534;
const isRoot = process.getuid?.() === 0;

interface ProgramExit {
  readonly code: number | string | null | undefined;
  readonly stderr: string;
}

/** Runs the real program as a user who is not root: root reads and writes everywhere. */
function runAsUser(folder: TempFolder, args: readonly string[]): Promise<ProgramExit> {
  if (isRoot) chownSync(folder.path, USER, USER);
  mkdirSync(folder.file("workflows"));
  const env = {
    PATH: process.env["PATH"],
    LANG: "C.UTF-8",
    HOME: folder.path,
    OPENWOP_API_KEY: "k".repeat(16),
  };
  const identity = isRoot ? { uid: USER, gid: USER } : {};
  const more = ["--workflows", folder.file("workflows"), "--ledger", folder.file("ledger.sqlite")];
  return new Promise((resolve) => {
    const started = execFile(
      process.execPath,
      [MAIN, ...args, ...more],
      { env, ...identity },
      (error, _, stderr) => {
        resolve({ code: error?.code, stderr });
      },
    );
    started.stdin?.end();
  });
}

/** Writes a key that not even its owner may read. */
function writeUnreadable(path: string): string {
  writeFileSync(path, new Uint8Array(32), { mode: 0o000 });
  if (isRoot) chownSync(path, USER, USER);
  return path;
}

describe("a key that the system does not let this user have", () => {
  test("is a wrong option of serve where --interrupt-key names it", async () => {
    using folder = createTempFolder();
    const path = writeUnreadable(folder.file("key"));
    const { code, stderr } = await runAsUser(folder, ["serve", "--port", "0", "--interrupt-key", path]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `error INPUT_INVALID: --interrupt-key: the key in ${path} cannot be used: EACCES`,
    );
  });

  test("is a wrong option of mcp where it would be in a folder that this user may not write", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("closed"));
    chmodSync(folder.file("closed"), 0o555);
    const path = folder.file("closed/key");
    const { code, stderr } = await runAsUser(folder, ["mcp", "--interrupt-key", path]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `error INPUT_INVALID: --interrupt-key: the key in ${path} cannot be used: EACCES`,
    );
  });

  test("is said with what to do where it is beside the ledger", async () => {
    using folder = createTempFolder();
    const path = writeUnreadable(folder.file("interrupt-key"));
    const { code, stderr } = await runAsUser(folder, ["serve", "--port", "0"]);
    expect(code).toBe(1);
    expect(stderr).toContain(`error LEDGER_UNAVAILABLE: the key in ${path} cannot be used: EACCES`);
    expect(stderr).toContain(
      "Check that the ledger's folder exists, is on a writable disk and belongs to this user",
    );
  });
});
