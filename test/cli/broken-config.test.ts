/** Commands beside an OpenClaw configuration that has a slip in its syntax, as the real program meets it. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
/** The last brace is missing. */
const SLIPPED = '{ "gateway": { "auth": { "token": "abc" } }, "agents": { "list": [{ "id": "main" }] },\n';

interface CommandOutcome {
  readonly stdout: string;
  readonly exitCode: number;
  /** The configuration afterwards. */
  readonly left: string;
}

async function runBeside(config: string, args: readonly string[]): Promise<CommandOutcome> {
  using state = createTempFolder();
  const file = state.file("openclaw.json");
  writeFileSync(file, config);
  const env = {
    PATH: process.env["PATH"],
    LANG: "C.UTF-8",
    HOME: state.path,
    OPENCLAW_STATE_DIR: state.path,
  };
  const { stdout, exitCode } = await new Promise<Omit<CommandOutcome, "left">>((resolve) => {
    const child = execFile(process.execPath, [MAIN, ...args], { env }, (_, text) => {
      resolve({ stdout: text, exitCode: child.exitCode ?? -1 });
    });
  });
  return { stdout, exitCode, left: readFileSync(file, "utf8") };
}

describe("beside a configuration that has a slip in its syntax", () => {
  test.each([[["enable", "--yes", "--json"]], [["policy", "use", "careful", "--yes", "--json"]]])(
    "%j leaves the file as it is, and says so",
    async (args) => {
      const { stdout, exitCode, left } = await runBeside(SLIPPED, args);
      expect({ exitCode, left }).toEqual({ exitCode: 1, left: SLIPPED });
      expect(JSON.parse(stdout)).toMatchObject({
        error: { code: "CONFIG_INVALID", message: expect.stringContaining("JSON5") as string },
      });
    },
  );

  test("status does not know whether coordination is on", async () => {
    const { stdout } = await runBeside('{ "plugins": {', ["status", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ enabled: null });
  });

  test("doctor names the slip and does not advise to run enable", async () => {
    const { stdout, exitCode } = await runBeside(SLIPPED, ["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    expect(exitCode).toBe(1);
    expect(checks.find(({ name }) => name === "config")).toMatchObject({
      status: "fail",
      message: expect.stringContaining("JSON5") as string,
    });
    expect(stdout).not.toContain("coordination enable`");
  });

  test("enable still fills a file in which nothing stands", async () => {
    const { exitCode, left } = await runBeside("\n", ["enable", "--yes"]);
    expect({ exitCode, isOn: left.includes("phase1") }).toEqual({ exitCode: 0, isOn: true });
  });
});
