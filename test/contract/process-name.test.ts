/** Names by which processes of one machine find out that another one has ended (Linux; elsewhere there are none). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  isBootedSince,
  isProcessGone,
  isProcessThere,
  parsePid,
  readBootName,
  readProcessName,
} from "../../src/platform/process-name.ts";

const MODULE = fileURLToPath(new URL("../../src/platform/process-name.ts", import.meta.url));
const PROGRAM = `
  import { readProcessName } from ${JSON.stringify(MODULE)};
  process.stdout.write(String(readProcessName()));
  process.stdin.resume();
`;

describe.runIf(process.platform === "linux")("the name of a process", () => {
  test("tells that it is there, and that it is gone as soon as it was killed", async () => {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", PROGRAM], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const [name] = (await once(child.stdout, "data")) as [Buffer];
    expect(name.toString()).not.toBe(readProcessName());
    expect(readProcessName(child.pid)).toBe(name.toString());
    expect(parsePid(name.toString())).toBe(child.pid);
    expect(isProcessGone(name.toString())).toBe(false);
    expect(isProcessThere(name.toString())).toBe(true);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    expect(isProcessGone(name.toString())).toBe(true);
    expect(isProcessThere(name.toString())).toBe(false);
  });

  test("is another one for a later process with the same number", () => {
    const name = readProcessName() ?? "";
    expect(name).toMatch(/^[0-9a-f]{24}\.\d+\.\d+$/u);
    expect(isProcessGone(name)).toBe(false);
    expect(isProcessGone(name.replace(/\d+$/u, "1"))).toBe(true);
    expect(isProcessGone(name.replace(/\.\d+\./u, ".4194305."))).toBe(true);
  });

  test("says nothing of processes of other machines, nor of what is no name", () => {
    const name = readProcessName() ?? "";
    const elsewhere = name.replace(/^\w/u, (digit) => (digit === "0" ? "1" : "0"));
    for (const other of [elsewhere, elsewhere.replace(/\.\d+\./u, ".4194305."), "", "12", "x.y.z"]) {
      expect(isProcessGone(other)).toBe(false);
      expect(isProcessThere(other)).toBe(false);
    }
  });
});

describe.runIf(readBootName() !== undefined)("the name of a boot", () => {
  test("tells that the same machine was booted since, and nothing of other machines", () => {
    const name = readBootName() ?? "";
    expect(name).toMatch(/^[0-9a-f]{24}\.[0-9a-f]{24}$/u);
    const [machine = "", boot = ""] = name.split(".");
    const other = "0".repeat(24);
    expect(isBootedSince(name)).toBe(false);
    expect(isBootedSince(`${machine}.${other}`)).toBe(true);
    for (const elsewhere of [`${other}.${boot}`, `${other}.${other}`, ""])
      expect(isBootedSince(elsewhere)).toBe(false);
  });
});
