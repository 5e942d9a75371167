import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { forge } from "./forge.ts";
import { OPEN, recordLedger, RESEARCH, type CoordinationScript } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const CANCELLED: CoordinationScript = {
  id: "co-1f0c",
  objective: "Stop soon",
  trace: "cancelled",
  settledAtMs: 205_000,
  spawns: [{ name: "stopped", atMs: 200_000, ends: { atMs: 201_000, outcome: "cancelled" } }],
};

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [RESEARCH, OPEN, CANCELLED]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function readJson(args: readonly string[]): Promise<unknown> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", nameLedger(), "--json"], {
    nowMs: TEST_EPOCH_MS + 300_000,
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return JSON.parse(stdout);
}

function errorOf(result: { stdout: string; exitCode: number }): { code: string; message: string } {
  expect(result.exitCode).toBe(1);
  return (JSON.parse(result.stdout) as { error: { code: string; message: string } }).error;
}

describe("list", () => {
  test("has every coordination, newest first, with its objective and its steps counted", async () => {
    expect(await readJson(["list"])).toEqual([
      {
        coordinationId: CANCELLED.id,
        status: "cancelled",
        objective: "Stop soon",
        ownerSession: "agent:main:main",
        createdAtMs: TEST_EPOCH_MS + 200_000,
        steps: { total: 1, open: 0, failed: 0 },
      },
      expect.objectContaining({
        coordinationId: OPEN.id,
        status: "running",
        steps: { total: 2, open: 2, failed: 0 },
      }),
      expect.objectContaining({
        coordinationId: RESEARCH.id,
        status: "partial",
        steps: { total: 7, open: 0, failed: 1 },
      }),
    ]);
  });

  test.each([
    [["--status", "running"], [OPEN.id]],
    [
      ["--status", "ended"],
      [CANCELLED.id, RESEARCH.id],
    ],
    [["--status", "partial"], [RESEARCH.id]],
    [["--status", "failed"], []],
    [
      ["--limit", "2"],
      [CANCELLED.id, OPEN.id],
    ],
    [["--limit", "1", "--status", "partial"], [RESEARCH.id]],
    [
      ["--owner", "agent:main:main"],
      [CANCELLED.id, OPEN.id, RESEARCH.id],
    ],
    [["--owner", "agent:other:main"], []],
  ])("with %j it has %j", async (options, ids) => {
    const listed = (await readJson(["list", ...options])) as { coordinationId: string }[];
    expect(listed.map(({ coordinationId }) => coordinationId)).toEqual(ids);
  });

  test("shows ids just long enough to tell them apart", async () => {
    const { stdout } = await runCli(["list", "--ledger", nameLedger()], { nowMs: TEST_EPOCH_MS + 300_000 });
    expect(stdout).toMatch(/^co-9a3b0000 {2}● running {4}4m 00s {3}2 \(2 open\)/m);
    expect(stdout).toMatch(/^co-1f0c7a52 {2}◐ partial .* Compare the three/m);
  });

  test.each([
    [["--limit", "0"], "--limit: expected a whole number from 1"],
    [["--limit", "-3"], "--limit: expected a whole number from 1"],
    [["--limit", "many"], '--limit: expected a whole number from 1 to 100000, got "many"'],
    [["--status", "done"], "--status: expected one of running, ended,"],
  ])("refuses %j and says what it expected", async (options, message) => {
    const error = errorOf(await runCli(["list", ...options, "--ledger", nameLedger(), "--json"]));
    expect(error).toMatchObject({ code: "INPUT_INVALID", recovery: "fix-input" });
    expect(error.message).toContain(message);
  });
});

describe("a ledger that is named", () => {
  test.each([
    ["", "--ledger: expected a file or postgres://, got nothing"],
    ["mysql://user:secret@db/x", "--ledger: a ledger is a file or at postgres://, not at mysql://"],
    ["postgress://user:secret@db/x", "--ledger: a ledger is a file or at postgres://, not at postgress://"],
    ["POSTGRES://user:secret@db/x", "--ledger: a ledger is a file or at postgres://, not at POSTGRES://"],
    [" mysql://user:secret@db/x", "--ledger: a ledger is a file or at postgres://, not at mysql://"],
  ])("is refused by its name where it can be none: %j", async (ledger, message) => {
    for (const command of ["list", "status", "doctor"]) {
      const { stdout, ...result } = await runCli([command, "--ledger", ledger, "--json"]);
      const error = errorOf({ stdout, ...result });
      expect(error).toMatchObject({ code: "INPUT_INVALID", message });
      expect(stdout).not.toContain("secret");
    }
  });

  test("is a path where it begins with the letter of a drive", async () => {
    const result = await runCli(["list", "--ledger", "c://no/such.sqlite", "--json"]);
    expect(errorOf(result)).toMatchObject({ code: "LEDGER_NOT_FOUND" });
  });

  test.each([
    ["ledger", "copy", "", "copy.sqlite"],
    ["ledger", "copy", "ledger.sqlite", "mysql://user:secret@db/x"],
    ["ledger", "backup", ""],
    ["ledger", "anchor", ""],
    ["ledger", "key", ""],
    ["ledger", "backup", "postgres://user:secret@db/x"],
  ])("so is a place that it is written to: %j", async (...args) => {
    const error = errorOf(await runCli([...args, "--json"], { stateDir: folder.path }));
    expect(error.code).toBe("INPUT_INVALID");
    expect(error.message).toMatch(
      /^(?:from|to|file): (?:expected .*, got (?:nothing|an address at postgres:\/\/)|.* not at mysql:\/\/)$/u,
    );
    expect(error.message).not.toContain("secret");
  });
});

describe("show", () => {
  test("has the coordination and all of a finished step", async () => {
    const shown = (await readJson(["show", "co-1f0c7"])) as { steps: Record<string, unknown>[] };
    expect(shown).toMatchObject({
      coordinationId: RESEARCH.id,
      status: "partial",
      objective: RESEARCH.objective,
      ownerSession: "agent:main:main",
      createdAtMs: TEST_EPOCH_MS,
      endedAtMs: TEST_EPOCH_MS + 47_000,
      trace: { traceId: RESEARCH.trace },
      conflicts: [],
      escalations: [],
    });
    expect(shown.steps.find(({ name }) => name === "read-issues")).toMatchObject({
      stepId: "step-4",
      parentStepId: "step-1",
      attempt: 1,
      status: "failed",
      lane: "data",
      agentId: "reader",
      runner: "subagent",
      childSessionKey: `agent:main:subagent:${RESEARCH.trace}-read-issues`,
      childRunId: "run-of-read-issues",
      idempotencyKey: `${RESEARCH.id}:step-4:1`,
      sourceSession: `agent:main:subagent:${RESEARCH.trace}-survey`,
      priority: "normal",
      deliveryMode: "at_least_once",
      collect: false,
      input: { sha256: expect.any(String) as string, bytes: expect.any(Number) as number },
      admittedAtMs: TEST_EPOCH_MS + 2_300,
      dispatchedAtMs: TEST_EPOCH_MS + 2_300,
      endedAtMs: TEST_EPOCH_MS + 17_800,
      durationMs: 15_500,
      error: { code: "child_failed", message: "the issue tracker answered 503 three times" },
    });
  });

  test("has the confirmation and the deadline of a running step, and no end", async () => {
    const { steps } = (await readJson(["show", OPEN.id])) as { steps: Record<string, unknown>[] };
    expect(steps[0]).toMatchObject({
      status: "running",
      acknowledgedAtMs: TEST_EPOCH_MS + 65_000,
      deadlineAtMs: TEST_EPOCH_MS + 660_000,
    });
    expect(steps[0]).not.toHaveProperty("endedAtMs");
    expect(steps[0]).not.toHaveProperty("durationMs");
    expect(steps[1]).not.toHaveProperty("childSessionKey");
  });

  test("without an id it is the newest coordination", async () => {
    expect(await readJson(["show"])).toMatchObject({ coordinationId: CANCELLED.id });
  });

  test("an id that is also the prefix of another means itself", async () => {
    expect(await readJson(["show", "co-1f0c"])).toMatchObject({ coordinationId: "co-1f0c" });
  });

  test("a prefix of several names the candidates", async () => {
    const error = errorOf(await runCli(["show", "co-", "--ledger", nameLedger(), "--json"]));
    expect(error.code).toBe("INPUT_INVALID");
    for (const { id } of [RESEARCH, OPEN, CANCELLED]) expect(error.message).toContain(id);
  });

  test.each([["co-nothing"], ["CO-1F0C"], [""], ["%"]])("the unknown id %j is an error", async (id) => {
    const error = errorOf(await runCli(["show", id, "--ledger", nameLedger(), "--json"]));
    expect(error.code).toMatch(/^(COORDINATION_NOT_FOUND|INPUT_INVALID)$/);
  });

  test("for people it tells the error of a step and where the child is", async () => {
    const { stdout } = await runCli(["show", "co-1f0c7", "--ledger", nameLedger()]);
    expect(stdout).toContain("✗ step-4  read-issues  failed  15.5s");
    expect(stdout).toContain("child_failed: the issue tracker answered 503 three times");
    expect(stdout).toContain(`agent:main:subagent:${RESEARCH.trace}-read-issues`);
  });
});

describe("events", () => {
  interface Event {
    readonly runId: string;
    readonly sequence: number;
    readonly type: string;
  }

  test("of one coordination are all of them, in order", async () => {
    const events = (await readJson(["events", OPEN.id])) as Event[];
    expect(events.map(({ sequence }) => sequence)).toEqual([...events.keys()]);
    expect(events[0]).toMatchObject({
      eventId: `${OPEN.id}:0`,
      type: "coordination.created",
      runId: OPEN.id,
    });
    expect(events.filter(({ type }) => type === "step.dispatched")).toHaveLength(2);
  });

  test("of all coordinations begin with the oldest", async () => {
    const events = (await readJson(["events"])) as Event[];
    expect([...new Set(events.map(({ runId }) => runId))]).toEqual([RESEARCH.id, OPEN.id, CANCELLED.id]);
    for (const { id } of [RESEARCH, OPEN, CANCELLED]) {
      const ownEvents = events.filter(({ runId }) => runId === id);
      expect(ownEvents).toEqual(await readJson(["events", id]));
    }
  });

  test("can be narrowed by type, sequence and number", async () => {
    expect(await readJson(["events", "--type", "step.failed"])).toMatchObject([
      { runId: RESEARCH.id, type: "step.failed" },
      { runId: CANCELLED.id, type: "step.failed" },
    ]);
    const all = (await readJson(["events", OPEN.id])) as Event[];
    expect(await readJson(["events", OPEN.id, "--from", "3", "--limit", "2"])).toEqual(all.slice(3, 5));
    expect(await readJson(["events", OPEN.id, "--from", "9999"])).toEqual([]);
    const everything = (await readJson(["events"])) as Event[];
    const limit = everything.length - 2;
    expect(await readJson(["events", "--limit", String(limit)])).toEqual(everything.slice(0, limit));
  });

  test("an unknown type is refused with the known ones", async () => {
    const error = errorOf(
      await runCli(["events", "--type", "step.faild", "--ledger", nameLedger(), "--json"]),
    );
    expect(error.message).toContain("step.failed");
  });

  test("reading stops when nobody reads the output any more", async () => {
    using many = createTempFolder();
    const path = many.file("ledger.sqlite");
    const scripts = [1, 2, 3, 4].map((number) => ({ ...OPEN, id: `co-${number}`, trace: `trace-${number}` }));
    await recordLedger(path, scripts);
    const all = await runCli(["events", "--ledger", path, "--json"]);
    expect(all.writes).toBeGreaterThan(3);
    const cut = await runCli(["events", "--ledger", path, "--json"], { writesMax: 1 });
    expect(cut).toMatchObject({ exitCode: 0, stderr: "", writes: 2 });
  });

  test("what was printed before an unreadable event is valid JSON, and the exit code tells", async () => {
    using damaged = createTempFolder();
    const path = damaged.file("ledger.sqlite");
    await recordLedger(path, [RESEARCH, OPEN]);
    forge(
      path,
      "drop trigger event_no_update; update event set payload = '{}' where run_key = 2 and sequence = 4",
    );
    const { stdout, stderr, exitCode } = await runCli(["events", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error EVENT_UNREADABLE");
    const events = JSON.parse(stdout) as Event[];
    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([RESEARCH.id]));
  });

  test("for people they stand under their coordination, with their causes", async () => {
    const { stdout } = await runCli(["events", OPEN.id, "--ledger", nameLedger()]);
    expect(stdout.split("\n")[0]).toBe(OPEN.id);
    expect(stdout).toMatch(/^ {5}4 {2}2026-01-02T03:05:05\.678Z {2}step\.dispatched .* step-1 .* from 2$/m);
  });
});

test("a log with a hole is reported as damaged, not as our bug", async () => {
  using damaged = createTempFolder();
  const path = damaged.file("ledger.sqlite");
  await recordLedger(path, [OPEN]);
  forge(path, "drop trigger event_no_delete; delete from event where sequence = 3");
  for (const command of ["show", "timeline"])
    expect(errorOf(await runCli([command, "--ledger", path, "--json"])).code).toBe("LEDGER_CORRUPT");
});

describe("every reader", () => {
  const READERS = [["list"], ["show"], ["timeline"], ["events"], ["verify"]];

  test.each(READERS)("%s says when there is no ledger, and creates none", async (command) => {
    using empty = createTempFolder();
    const setting = { stateDir: empty.path };
    const result = await runCli([command], setting);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/^error LEDGER_NOT_FOUND: .*coordination.ledger\.sqlite\. Enable .*\n$/);
    expect(errorOf(await runCli([command, "--json"], setting)).code).toBe("LEDGER_NOT_FOUND");
    expect(readdirSync(empty.path)).toEqual([]);
  });

  test.each([...READERS, ["doctor"]])(
    "%s says to check the path of a ledger that was named",
    async (command) => {
      using empty = createTempFolder();
      const { stdout, stderr } = await runCli([command, "--ledger", empty.file("typo.sqlite")]);
      expect(stdout + stderr).toContain("Check the path or address of the ledger that you named.");
      expect(stdout + stderr).not.toContain("Enable coordination");
    },
  );

  test.each([["list"], ["show"], ["doctor"]])(
    "%s has a damaged ledger proved that was named",
    async (command) => {
      using folder = createTempFolder();
      const path = folder.file("a copy.sqlite");
      writeFileSync(path, "this is no ledger");
      const { stdout, stderr } = await runCli([command, "--ledger", path]);
      expect(stdout + stderr).toContain(`Run \`openclaw coordination verify --ledger '${path}'\``);
    },
  );

  test.each([...READERS, ["status"], ["doctor"]])("%s leaves the ledger's bytes alone", async (command) => {
    const before = readFileSync(nameLedger());
    await runCli([command, "--ledger", nameLedger()]);
    expect(readFileSync(nameLedger()).equals(before)).toBe(true);
  });

  test.each([...READERS, ["status"], ["doctor"], ["enable"], ["disable"]])(
    "%s explains itself with examples",
    async (command) => {
      const { stdout, exitCode } = await runCli([command, "--help"]);
      expect(exitCode).toBe(0);
      expect(stdout).toContain("--json");
      expect(stdout).toMatch(new RegExp(`Examples:\\n {2}\\$ openclaw coordination ${command}`));
    },
  );

  test("the ledger of the state folder is the default", async () => {
    using state = createTempFolder();
    await recordLedger(join(state.path, "coordination", "ledger.sqlite"), [OPEN]);
    const { stdout } = await runCli(["show", "--json"], { stateDir: state.path });
    expect(JSON.parse(stdout)).toMatchObject({ coordinationId: OPEN.id });
  });

  test("an error cannot colour the terminal", async () => {
    const { stderr } = await runCli(["show", "\u001b[31mx", "--ledger", nameLedger()]);
    expect(stderr).toContain("error COORDINATION_NOT_FOUND");
    expect(stderr).not.toContain("\u001b");
  });

  test("an objective that is no longer kept is null", async () => {
    using old = createTempFolder();
    const path = old.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "delete from content");
    const { stdout } = await runCli(["list", "--ledger", path, "--json"]);
    expect((JSON.parse(stdout) as { objective: unknown }[])[0]?.objective).toBeNull();
    expect((await runCli(["timeline", "--ledger", path])).stdout).toMatch(
      /^\(the objective is no longer kept\)/,
    );
  });
});
