import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { InterruptibleWait } from "../../src/plugins/cli/terminal/waiting-line.ts";
import { createAuthor, nameChildSession, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger, RESEARCH, type CoordinationScript } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const LATER: CoordinationScript = {
  id: "co-2b00",
  objective: "Come later on the same trace",
  trace: RESEARCH.trace,
  settledAtMs: 205_000,
  spawns: [{ name: "again", agent: "reader", atMs: 200_000, ends: { atMs: 201_000, outcome: "completed" } }],
};
const NOW_MS = TEST_EPOCH_MS + 300_000;

let folder: TempFolder;
const findLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(findLedger(), [RESEARCH, OPEN, LATER]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function runQuery(...args: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", findLedger()], { nowMs: NOW_MS });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

async function findIds(...args: string[]): Promise<string[]> {
  const listed = JSON.parse(await runQuery("list", ...args, "--json")) as { coordinationId: string }[];
  return listed.map(({ coordinationId }) => coordinationId);
}

async function findEvents(...args: string[]): Promise<RunEvent[]> {
  return JSON.parse(await runQuery("events", ...args, "--json")) as RunEvent[];
}

const isoOf = (ms: number): string => new Date(TEST_EPOCH_MS + ms).toISOString();
const nameChild = (name: string): string => nameChildSession(`${RESEARCH.trace}-${name}`);

describe("list", () => {
  test.each([
    [
      ["--trace", RESEARCH.trace],
      [LATER.id, RESEARCH.id],
    ],
    [["--trace", "none"], []],
    [
      ["--session", "agent:main:main"],
      [LATER.id, OPEN.id, RESEARCH.id],
    ],
    [["--session", nameChild("survey")], [RESEARCH.id]],
    [
      ["--agent", "reader"],
      [LATER.id, RESEARCH.id],
    ],
    [["--agent", "reader", "--child-session", nameChild("read-docs")], [RESEARCH.id]],
    [["--agent", "bench", "--trace", OPEN.trace], []],
    [["--child-session", nameChild("survey")], [RESEARCH.id]],
    [["--cause", RESEARCH.id.slice(0, 6)], [LATER.id]],
    [["--cause", `${RESEARCH.id.slice(0, 6)}:0`], [RESEARCH.id]],
    [["--cause", "co-unknown"], []],
    [["--since", "2m"], [LATER.id]],
    [
      ["--since", isoOf(60_000)],
      [LATER.id, OPEN.id],
    ],
    [["--since", isoOf(60_000), "--until", isoOf(60_001)], [OPEN.id]],
    [["--until", isoOf(60_000)], [RESEARCH.id]],
    [["--session", "agent:main:main", "--status", "running"], [OPEN.id]],
    [["--session", "agent:main:main", "--status", "ended", "--limit", "1"], [LATER.id]],
    [["--owner", nameChild("survey")], []],
    [
      ["--owner", "agent:main:main", "--agent", "reader"],
      [LATER.id, RESEARCH.id],
    ],
  ])("with %j has %j", async (options, ids) => {
    expect(await findIds(...options)).toEqual(ids);
  });

  test("says what it did not find", async () => {
    expect(await runQuery("list", "--trace", "none", "--since", "2h")).toBe(
      "no coordinations match --trace none --since 2h\n",
    );
  });
});

describe("events", () => {
  test("of a trace are those of all its coordinations", async () => {
    const events = await findEvents("--trace", RESEARCH.trace);
    expect(events).toEqual([...(await findEvents(RESEARCH.id)), ...(await findEvents(LATER.id))]);
  });

  test("of a child session are those of its step", async () => {
    const events = await findEvents("--child-session", nameChild("read-docs"));
    expect(events.length).toBeGreaterThan(3);
    expect(new Set(events.map(({ nodeId }) => nodeId)).size).toBe(1);
    expect(events.map(({ type }) => type)).toContain("step.completed");
  });

  test("of an agent are those of the steps that it runs, and go together with an id and a type", async () => {
    const events = await findEvents(RESEARCH.id, "--agent", "reader", "--type", "step.failed");
    expect(events).toMatchObject([{ type: "step.failed" }]);
    expect(await findEvents(OPEN.id, "--agent", "reader")).toEqual([]);
  });

  test("that an event caused are found by its id", async () => {
    const all = await findEvents(RESEARCH.id);
    const [created] = all;
    const caused = await findEvents("--cause", created!.eventId);
    expect(caused).toEqual(all.filter(({ causationId }) => causationId === created!.eventId));
    expect(caused.length).toBeGreaterThan(1);
  });

  test("that a plan caused are found by its id also where that ends as the id of an event does", async () => {
    using other = createTempFolder();
    const ledger = other.file("ledger.sqlite");
    const first = { ...RESEARCH, id: "release:2026" };
    await recordLedger(ledger, [first, LATER]);
    const find = async (cause: string): Promise<string[]> => {
      const { stdout } = await runCli(["list", "--cause", cause, "--json", "--ledger", ledger]);
      return (JSON.parse(stdout) as { coordinationId: string }[]).map(({ coordinationId }) => coordinationId);
    };
    expect(await find("release:2026")).toEqual([LATER.id]);
    expect(await find("release:2026:0")).toEqual([first.id]);
  });

  test("of a time are those that were recorded in it, from its beginning and before its end", async () => {
    const all = [...(await findEvents(RESEARCH.id)), ...(await findEvents(OPEN.id))];
    const found = await findEvents("--since", isoOf(38_900), "--until", isoOf(65_000));
    const expected = all.filter(({ timestamp }) => timestamp >= isoOf(38_900) && timestamp < isoOf(65_000));
    expect(found).toEqual(expected);
    expect(found.length).toBeGreaterThan(5);
  });

  test("are a table with the coordinations as headings", async () => {
    const text = await runQuery("events", "--trace", RESEARCH.trace, "--type", "coordination.created");
    expect(text).toMatch(
      /^co-1f0c\S+\n {5}0 .*coordination\.created.*\n\nco-2b00\n {5}0 .*coordination\.created\n$/u,
    );
  });

  test("that are not there are said to match nothing", async () => {
    expect(await runQuery("events", "--agent", "nobody", "--until", "1h")).toBe(
      "no events match --agent nobody --until 1h\n",
    );
    expect(await findEvents("--agent", "nobody")).toEqual([]);
  });
});

describe("a time", () => {
  test.each([
    [
      ["--since", "yesterday"],
      /^--since: expected a time such as 2026-01-31T12:00:00Z or how long ago, such as 45s/u,
    ],
    [["--until", "2 h"], /^--until: expected a time such as/u],
    [["--until", "2026-13-01"], /^--until: expected a time such as/u],
    [["--since", "2026-02-28T12:00:61Z"], /^--since: expected a time such as/u],
    [["--since", "2026-02-30"], /^--since: expected a time such as/u],
    [["--until", "2026-02-30T12:00:00+02:00"], /^--until: expected a time such as/u],
    [["--since", "1h", "--until", "2h"], /^--since: expected a time before that of --until, got /u],
  ])("such as %j is refused with what was expected", async (options, message) => {
    for (const command of ["list", "events"]) {
      const { stdout, exitCode } = await runCli([command, ...options, "--ledger", findLedger(), "--json"]);
      expect(exitCode).toBe(1);
      const { error } = JSON.parse(stdout) as { error: { code: string; message: string } };
      expect(error.code).toBe("INPUT_INVALID");
      expect(error.message).toMatch(message);
    }
  });

  test.each(["2026-01-02T03:05:05", "2026-01-02T03:05:05Z", "2026-01-02T04:05:05.000+01:00"])(
    "is read with a zone, and in UTC without one: %s",
    async (time) => {
      expect(await findIds("--since", time)).toEqual([LATER.id, OPEN.id]);
    },
  );
});

/** Does one thing after the other where the command would wait, and is interrupted then. */
function createActs(acts: readonly (() => Promise<unknown>)[]): InterruptibleWait {
  let actsDone = 0;
  return {
    isInterrupted: () => actsDone > acts.length,
    pause: async () => {
      await acts[actsDone]?.();
      actsDone += 1;
    },
    [Symbol.dispose]: () => undefined,
  };
}

describe("events --follow", () => {
  async function follow(args: readonly string[], acts: readonly (() => Promise<unknown>)[]) {
    return runCli(["events", "--follow", ...args, "--ledger", findLedger()], {
      nowMs: NOW_MS,
      waiting: () => createActs(acts),
    });
  }

  async function appendRun(name: string, agent = "main"): Promise<readonly RunEvent[]> {
    const store = await openTestLedger(findLedger());
    const writer = createAuthor(name);
    const spawn = { ...spawnOf(`call-${name}`), agentId: agent } as ReturnType<typeof spawnOf>;
    const request = writer.append(openingOf(`trace-${name}`), spawn);
    await store.append(request);
    await store.close();
    return request.events;
  }

  test("prints what is appended from then on, one line of JSON for each event, until it is interrupted", async () => {
    const appended: RunEvent[] = [];
    const append = (name: string) => async () => appended.push(...(await appendRun(name)));
    const { stdout, stderr, exitCode } = await follow(["--json"], [append("f1"), append("f2")]);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    const lines = stdout.split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(appended);
  });

  test("prints what matches, and of one coordination where it is named", async () => {
    const acts = [() => appendRun("f3", "painter"), () => appendRun("f4")];
    const { stdout } = await follow(["--agent", "painter", "--json"], acts);
    expect(stdout).toContain('"runId":"co-f3"');
    expect(stdout).not.toContain('"runId":"co-f4"');
    const one = await follow(["co-f3", "--json"], [() => appendRun("f5")]);
    expect(one).toMatchObject({ stdout: "", exitCode: 0 });
  });

  test("prints first what is there since a time, and ends at its limit", async () => {
    const limited = await follow(
      ["--trace", LATER.trace, "--since", isoOf(200_000), "--limit", "2", "--json"],
      [],
    );
    const lines = limited.stdout.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as RunEvent).eventId)).toEqual(["co-2b00:0", "co-2b00:1"]);
  });

  test("prints a table of what is appended", async () => {
    const { stdout } = await follow([], [() => appendRun("f6")]);
    expect(stdout).toMatch(/^co-f6\n {5}0 .*coordination\.created/u);
  });

  test("ends when nobody reads any more", async () => {
    const result = await runCli(["events", "--follow", "--since", "1h", "--ledger", findLedger()], {
      nowMs: NOW_MS,
      waiting: () =>
        createActs(Array.from({ length: 1_000 }, () => () => Promise.reject(new Error("it waited")))),
      writesMax: 0,
    });
    expect(result).toMatchObject({ stdout: "", stderr: "", exitCode: 0 });
  });

  test("does not go together with an end", async () => {
    const { stdout, exitCode } = await follow(["--until", "1h", "--json"], []);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "INPUT_INVALID", message: "--until: --follow waits for new events and has no end" },
    });
  });
});

test("the help of both commands has the options with examples", async () => {
  for (const command of ["list", "events"]) {
    const { stdout } = await runCli([command, "--help"]);
    for (const option of [
      "--trace",
      "--cause",
      "--session",
      "--agent",
      "--child-session",
      "--since",
      "--until",
    ])
      expect(stdout).toMatch(new RegExp(`^ +${option} <`, "mu"));
    expect(stdout).toMatch(/Examples:\n.*--since/su);
  }
});
