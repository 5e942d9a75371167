/** The commands as processes, the host's rule for its state folder, and changing a real configuration file. */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { resolveStateDir as hostStateDir } from "openclaw/plugin-sdk/state-paths";
import { describe, expect, test } from "vitest";
import { SPAN_EXPORT } from "../../src/agents/coordination/contracts/ids.ts";
import { createConfirm, detectTerminal } from "../../src/plugins/cli/process-host.ts";
import { resolveStateDir, type Environment } from "../../src/plugins/cli/terminal/state-dir.ts";
import { addCoordination } from "../contract/prunable-ledger.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;

interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | null;
}

interface RunLimits {
  /** Stdout is closed after the first chunk, as `head` does. */
  readonly closeEarly?: boolean;
  /** No file that the program writes may be longer, in blocks of 512 bytes. */
  readonly fileBlocksMax?: number;
}

function run(args: readonly string[], env: Environment, limits: RunLimits = {}): Promise<ProgramResult> {
  const { closeEarly = false, fileBlocksMax } = limits;
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const inherited = { PATH, NODE_COMPILE_CACHE, LANG: "C.UTF-8" };
  const limited = ["-c", `ulimit -f ${fileBlocksMax} && exec "$@"`, "sh", process.execPath, MAIN, ...args];
  const settings = { env: { ...inherited, ...env } };
  const child =
    fileBlocksMax === undefined
      ? spawn(process.execPath, [MAIN, ...args], settings)
      : spawn("/bin/sh", limited, settings);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (closeEarly) child.stdout.destroy();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.on("error", reject).on("close", (exitCode) => resolve({ stdout, stderr, exitCode }));
  });
}

describe("the program", () => {
  test("reads the ledger of the state folder that the environment names", async () => {
    using state = createTempFolder();
    await recordLedger(join(state.path, "coordination", "ledger.sqlite"), [RESEARCH]);
    const { stdout, stderr, exitCode } = await run(["timeline"], { OPENCLAW_STATE_DIR: state.path });
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toContain("├╴read-docs");
    expect(stdout).not.toContain("\u001b");
  });

  test("is quiet when its reader goes away", async () => {
    using state = createTempFolder();
    const ledger = state.file("ledger.sqlite");
    const scripts = Array.from({ length: 40 }, (_, index) => {
      const id = `co-${index}`;
      return { ...RESEARCH, id, trace: `trace-${index}`, spawns: RESEARCH.spawns.slice(0, 3) };
    });
    await recordLedger(ledger, scripts);
    const whole = await run(["events", "--json", "--ledger", ledger], {});
    const cut = await run(["events", "--json", "--ledger", ledger], {}, { closeEarly: true });
    expect(cut.stdout.length).toBeLessThan(whole.stdout.length);
    expect({ stderr: cut.stderr, exitCode: cut.exitCode }).toEqual({ stderr: "", exitCode: 0 });
  });

  test("prunes a ledger file while another process exports its spans", async () => {
    using state = createTempFolder();
    const ledger = state.file("ledger.sqlite");
    const store = await openTestLedger(ledger);
    await addCoordination(store, "old");
    await addCoordination(store, "newest");
    const exporter = { name: SPAN_EXPORT, holder: "exporter" };
    await store.exports.take({ ...exporter, from: 0 });
    let hasEnded = false;
    const pruning = run(["ledger", "prune", "--before", "2026-02-01", "--ledger", ledger], {}).finally(
      () => (hasEnded = true),
    );
    // The exporter tells of itself until the command has ended.
    const tell = () => store.exports.advance({ ...exporter, position: 100 });
    await waitFor(async () => (await tell()) && hasEnded, { what: "the end of the command" });
    await store.close();
    const { stdout, ...end } = await pruning;
    expect(end).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toContain("1 run with");
  });

  test.runIf(process.platform === "linux")(
    "leaves no part of a timeline's file where there is no room for all of it",
    async () => {
      using state = createTempFolder();
      const ledger = state.file("ledger.sqlite");
      const spawns = Array.from({ length: 200 }, (_, index) => ({ name: `step-${index}`, atMs: index }));
      await recordLedger(ledger, [{ id: RESEARCH.id, objective: "Open", trace: "open", spawns }]);
      const file = state.file("timeline.html");
      const { stderr, exitCode } = await run(
        ["timeline", "--html", file, "--ledger", ledger],
        {},
        {
          fileBlocksMax: 100,
        },
      );
      expect({ stderr, exitCode }).toEqual({
        stderr: expect.stringContaining("EFBIG") as string,
        exitCode: 1,
      });
      expect(readdirSync(state.path).filter((name) => name.startsWith("timeline"))).toEqual([]);
    },
  );

  test("has a version and an exit code for errors", async () => {
    using state = createTempFolder();
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect((await run(["--version"], {})).stdout).toBe(`${version}\n`);
    const failed = await run(["list", "--json"], { OPENCLAW_STATE_DIR: state.path });
    expect(failed.exitCode).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: "LEDGER_NOT_FOUND" } });
  });

  test("enables and disables in a real configuration, and status tells so and writes nothing", async () => {
    using home = createTempFolder();
    const env = { OPENCLAW_HOME: home.path };
    const before = await run(["status", "--json"], env);
    expect(JSON.parse(before.stdout)).toMatchObject({ enabled: false });
    expect(readdirSync(home.path)).toEqual([]);
    const enabled = await run(["enable", "--json", "--strict"], env);
    expect(enabled.exitCode).toBe(0);
    const { configPath } = JSON.parse(enabled.stdout) as { configPath: string };
    expect(configPath).toBe(join(home.path, ".openclaw", "openclaw.json"));
    expect(JSON.parse(readFileSync(configPath, "utf8"))).toHaveProperty(
      "plugins.entries.coordination.config.coordination.phase1",
      { enabled: true, strict: true },
    );
    const status = await run(["status", "--json"], env);
    expect(JSON.parse(status.stdout)).toMatchObject({ enabled: true, strict: true, configPath });
    await run(["disable"], env);
    const after = await run(["status", "--json"], env);
    expect(JSON.parse(after.stdout)).toMatchObject({ enabled: false });
  });
});

describe("the state folder", () => {
  test("is the one that the host itself finds", () => {
    using home = createTempFolder();
    using legacy = createTempFolder();
    mkdirSync(join(legacy.path, ".clawdbot"));
    const environments: Environment[] = [
      { HOME: home.path },
      { HOME: legacy.path },
      { HOME: home.path, OPENCLAW_HOME: legacy.path },
      { HOME: home.path, OPENCLAW_HOME: "~/deeper" },
      { HOME: home.path, OPENCLAW_HOME: "undefined" },
      { HOME: home.path, OPENCLAW_STATE_DIR: " ~/state " },
      { HOME: home.path, OPENCLAW_HOME: legacy.path, OPENCLAW_STATE_DIR: "~" },
      { HOME: home.path, OPENCLAW_STATE_DIR: "relative/state" },
      { HOME: home.path, OPENCLAW_STATE_DIR: "  " },
      { USERPROFILE: home.path },
      {},
    ];
    for (const env of environments)
      expect(resolveStateDir(env, () => home.path)).toBe(hostStateDir(env, () => home.path));
  });
});

describe("a terminal", () => {
  const tty = { isTTY: true, columns: 132 };

  test.each<[string, { isTTY?: boolean; columns?: number }, Environment, object]>([
    ["a UTF-8 terminal", tty, { LANG: "de_DE.UTF-8" }, { columns: 132, colour: true, unicode: true }],
    ["a pipe", {}, { LANG: "C.UTF-8", COLUMNS: "77" }, { columns: 77, colour: false, isTTY: false }],
    ["NO_COLOR", tty, { NO_COLOR: "1" }, { colour: false }],
    ["an empty NO_COLOR", tty, { NO_COLOR: "" }, { colour: true }],
    ["FORCE_COLOR in a pipe", {}, { FORCE_COLOR: "1" }, { colour: true }],
    ["FORCE_COLOR=0", tty, { FORCE_COLOR: "0" }, { colour: false }],
    ["a dumb terminal", tty, { TERM: "dumb" }, { colour: false }],
    ["a C locale", tty, { LANG: "C" }, { unicode: false }],
    ["LC_ALL before LANG", tty, { LC_ALL: "C", LANG: "en_US.UTF-8" }, { unicode: false }],
  ])("%s is recognised", (_, stream, env, expected) => {
    expect(detectTerminal(stream, env)).toMatchObject(expected);
  });

  test("is asked where the question is seen and can be answered, and needs --yes where it is not seen", () => {
    expect(createConfirm({ isTTY: true }, { isTTY: true })).toHaveProperty("confirm");
    expect(createConfirm({ isTTY: true }, {})).toEqual({ isQuestionHidden: true });
    expect(createConfirm({}, { isTTY: true })).toEqual({});
  });
});
