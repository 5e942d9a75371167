/** Owns: names of the operator's own folders and arguments, which do nothing to a terminal either. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { buildLedger, forge, rehashRun } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

const NASTY = "\u{1b}[31mred\u{202e}-state";
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const HARMFUL = /[\u{0}-\u{9}\u{b}-\u{1f}\u{7f}-\u{9f}\u{202e}]/u;

describe("a state folder with escape sequences in its name", () => {
  test.each(["status", "doctor"])("is printed by %s without them", async (command) => {
    using folder = createTempFolder();
    const stateDir = join(folder.path, NASTY);
    await recordLedger(join(stateDir, "coordination", "ledger.sqlite"), [OPEN]);
    chmodSync(join(stateDir, "coordination"), 0o755);
    const { stdout, stderr } = await runCli([command], { stateDir });
    expect(stdout).toContain("[31mred");
    expect(stdout + stderr).not.toMatch(HARMFUL);
  });
});

describe("a ledger that was forged", () => {
  test("has the id of a node printed by replay without its escape sequences", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, (database) => {
      database.prepare("update event set node_id = ? where sequence = 2").run(NASTY);
      rehashRun(database, OPEN.id as CoordinationId);
    });
    const { stdout, exitCode } = await runCli(["replay", OPEN.id, "--ledger", path]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain("DIFFERS");
    expect(stdout).not.toMatch(HARMFUL);
  });

  test.each([
    ["events", ["events"], "update event set causation_id = @nasty where sequence = 2", "from \ufffd[31mred"],
    [
      "stats",
      ["stats"],
      "update run set run_id = @nasty; update event set payload = '{}' where sequence = 1",
      "logs are damaged: \ufffd[31mred",
    ],
    [
      "tree",
      ["tree", OPEN.id],
      `update event
       set type = 'budget.reached', node_id = null, payload = json_object(
         'stepId', @nasty, 'limit', 'spawns', 'agentId', @nasty, 'allowed', 1, 'used', 1, 'stopped', 'spawn')
       where sequence = (select max(sequence) from event)`,
      "a spawn of \ufffd[31mred",
    ],
  ])("has no escape sequences printed by %s", async (_, args, sql, expected) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, (database) => {
      for (const statement of sql.split(";")) database.prepare(statement).run({ nasty: NASTY });
    });
    const { stdout } = await runCli([...args, "--ledger", path], { nowMs: TEST_EPOCH_MS + 80_000 });
    expect(stdout).toContain(expected);
    expect(stdout).not.toMatch(HARMFUL);
  });

  test("has the id of a workflow printed by runs at no length", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await buildLedger(path);
    forge(path, (database) =>
      database.exec(
        "update run set summary = json_set(summary, '$.workflowId', printf('%.100000c', 'x')) where kind = 'workflow'",
      ),
    );
    const { stdout } = await runCli(["runs", "--ledger", path]);
    const longest = Math.max(...stdout.split("\n").map(({ length }) => length));
    expect(stdout).toContain("xxx");
    expect(longest).toBeLessThan(5_000);
  });
});

describe("a policy pack that somebody else wrote", () => {
  const writePack = (path: string): void => {
    const tools = { [NASTY]: { paths: ["path"] } };
    const settings = { conflicts: { tools }, gates: { confidenceThreshold: 0.9 } };
    writeFileSync(path, JSON.stringify({ name: "foreign", version: "1.0.0", settings }));
  };

  test.each([
    ["show", ["policy", "show", "PACK"]],
    ["diff", ["policy", "diff", "balanced", "PACK"]],
    ["use", ["policy", "use", "PACK", "--session", `agent:${NASTY}`, "--dry-run"]],
  ])("has its names printed by policy %s without their escape sequences", async (_, args) => {
    using folder = createTempFolder();
    const path = folder.file("pack.json");
    writePack(path);
    const typed = args.map((word) => (word === "PACK" ? path : word));
    const { stdout, exitCode } = await runCli(typed, { config: createMemoryConfig({}) });
    expect(exitCode).toBe(0);
    expect(stdout).toContain("[31mred");
    expect(stdout).not.toMatch(HARMFUL);
  });

  test("is tested on a forged ledger without the escape sequences of its ids and of what was asked for", async () => {
    using folder = createTempFolder();
    const [pack, path] = [folder.file("pack.json"), folder.file("ledger.sqlite")];
    writePack(pack);
    await recordLedger(path, [OPEN]);
    forge(path, (database) => {
      database.prepare("update run set run_id = ?").run(NASTY);
      database.exec("update event set payload = '{}' where sequence = 1");
    });
    const forged = await runCli(["policy", "test", pack, "--ledger", path]);
    expect(forged.stdout).toContain("logs are damaged or `replay` says that they differ: \ufffd[31mred");
    expect(forged.stdout).not.toMatch(HARMFUL);
    const narrowed = await runCli(["policy", "test", pack, "--ledger", path, "--session", NASTY]);
    expect(narrowed.stdout).toContain("(--session \ufffd[31mred");
    expect(narrowed.stdout).not.toMatch(HARMFUL);
  });
});

describe("an objective of 100,000 characters", () => {
  test.each(["show", "timeline"])("is cut by %s", async (command) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "update content set text = printf('%.100000c', 'x')");
    const { stdout } = await runCli([command, OPEN.id, "--ledger", path]);
    expect(stdout).toContain("xxx");
    expect(Math.max(...stdout.split("\n").map(({ length }) => length))).toBeLessThan(5_000);
  });
});

describe("a summary that no run of its kind has", () => {
  test.each([
    ["stats", "no JSON", "update run set summary = '{'"],
    ["list", "no JSON", "update run set summary = '{'"],
    ["list", "an unknown status", "update run set summary = json_set(summary, '$.status', 'resting')"],
    ["runs", "one of the other kind", "update run set kind = 'workflow'"],
  ])("is a damaged ledger to %s: %s", async (command, _, sql) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, sql);
    const { stdout, exitCode } = await runCli([command, "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "LEDGER_CORRUPT" } });
  });
});

describe("an argument", () => {
  test("that is no command is repeated without its escape sequences, on one line", async () => {
    const { stderr, exitCode } = await runCli([`${NASTY}\nerror FORGED: a line`]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("unknown command");
    expect(stderr).not.toMatch(HARMFUL);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test.each([
    { args: ["lst"], message: "unknown command 'lst' (Did you mean list?)" },
    { args: ["list", "--bogus"], message: "unknown option '--bogus'" },
    { args: ["replay"], message: "missing required argument 'id'" },
    {
      args: ["list", "one", "two"],
      message: "too many arguments for 'list'. Expected 0 arguments but got 2: one, two.",
    },
  ])(
    "that the parser refuses is an error of the usual form with --json: $args",
    async ({ args, message }) => {
      const { stdout, stderr, exitCode } = await runCli([...args, "--json"]);
      expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 1 });
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID", message } });
    },
  );

  test("behind -- is no option: the parser's refusal stays a text", async () => {
    const { stdout, stderr } = await runCli(["list", "--bogus", "--", "--json"]);
    expect(stdout).toBe("");
    expect(stderr).toContain("unknown option '--bogus'");
  });

  test.each(["list", "events"])(
    "that finds nothing is repeated by %s without its escape sequences",
    async (command) => {
      using folder = createTempFolder();
      const path = folder.file("ledger.sqlite");
      await recordLedger(path, [OPEN]);
      const { stdout } = await runCli([command, "--session", NASTY, "--ledger", path]);
      expect(stdout).toContain("match --session \ufffd[31mred");
      expect(stdout).not.toMatch(HARMFUL);
    },
  );

  test("that names whose policy is dropped is repeated without its escape sequences", async () => {
    const args = ["policy", "drop", "--session", `agent:${NASTY}`, "--yes"];
    const { stdout } = await runCli(args, { config: createMemoryConfig({}) });
    expect(stdout).toContain("agent:\ufffd[31mred");
    expect(stdout).not.toMatch(HARMFUL);
  });

  test("is not repeated at any length", async () => {
    const { stderr } = await runCli(["list", "--status", "x".repeat(100_000)]);
    expect(stderr).toContain("--status: expected one of");
    expect(stderr.length).toBeLessThan(5_000);
  });
});
