import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { ENDED_PLAN, FORKED_PLAN, recordPlans, RUNNING_PLAN, type PlanScript } from "./recorded-plan.ts";
import { runCli } from "./run-cli.ts";

const NASTY_SOURCE: PlanScript = { ...ENDED_PLAN, id: "plan-\u001b[31m\u202e" };
const NASTY_FORK: PlanScript = { ...FORKED_PLAN, id: "plan-harmless", forkOf: NASTY_SOURCE.id };

let folder: TempFolder;
/** The first event of the source that the fork takes nothing from. */
let from: number;
/** In the source's log, what completed the step that was kept. */
let completedBy: string;

const runPlanCli = (args: readonly string[], terminal: Partial<Terminal> = {}) =>
  runCli([...args, "--ledger", folder.file("ledger.sqlite")], { nowMs: TEST_EPOCH_MS + 230_000, terminal });

beforeAll(async () => {
  folder = createTempFolder();
  const scripts = [ENDED_PLAN, FORKED_PLAN, RUNNING_PLAN, NASTY_SOURCE, NASTY_FORK];
  await recordPlans(folder.file("ledger.sqlite"), scripts);
  const { stdout } = await runPlanCli(["events", ENDED_PLAN.id, "--json"]);
  const log = JSON.parse(stdout) as { type: string; eventId: string; payload: { stepId?: string } }[];
  from = log.length;
  const isCompletion = ({ type, payload }: (typeof log)[number]): boolean =>
    type === "step.completed" && payload.stepId === "postgres";
  completedBy = log.find(isCompletion)?.eventId ?? "none";
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function printLines(command: string, id: string, terminal: Partial<Terminal> = {}): Promise<string[]> {
  const { stdout, stderr, exitCode } = await runPlanCli([command, id], terminal);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout.trimEnd().split("\n");
}

async function readJson<T>(command: string, id: string): Promise<T> {
  return JSON.parse((await runPlanCli([command, id, "--json"])).stdout) as T;
}

const findRow = (drawn: readonly string[], name: string): string =>
  drawn.find((line) => line.startsWith(`${name} `)) ?? `no row ${name}`;

describe("show of a fork", () => {
  test("says of what and from where it is one, and how much it kept", async () => {
    const shown = (await printLines("show", FORKED_PLAN.id)).join("\n");
    expect(shown).toContain(`\n  source      fork of ${ENDED_PLAN.id} from ${from}, 1 kept\n`);
  });

  test("tells a kept step from one that was done, with the event that completed it in the source", async () => {
    const shown = await printLines("show", FORKED_PLAN.id);
    const at = shown.indexOf("✓ postgres  completed (kept)");
    const step = shown.slice(at, shown.indexOf("", at)).join("\n");
    expect(step).toMatch(new RegExp(`^  kept from   ${completedBy}$`, "mu"));
    expect(step).toMatch(/^ {2}output {6}\d+ B/mu);
    expect(step).not.toMatch(/dispatched|attempt|child/u);
    expect(shown).toContain("✓ sqlite  completed  4.0s");
  });

  test("as JSON has the source of the fork and of the step", async () => {
    const view = await readJson<CoordinationView>("show", FORKED_PLAN.id);
    expect(view.forkedFrom).toEqual({ coordinationId: ENDED_PLAN.id, sequence: from });
    const [kept, doneStep] = view.steps;
    expect(kept).toMatchObject({ stepId: "postgres", attempt: 0, carriedFrom: completedBy });
    expect(kept).not.toHaveProperty("durationMs");
    expect(doneStep).not.toHaveProperty("carriedFrom");
  });

  test("is silent about forks where there is none", async () => {
    const shown = (await printLines("show", ENDED_PLAN.id)).join("\n");
    expect(shown).not.toMatch(/fork of|kept/u);
    expect(await readJson("show", ENDED_PLAN.id)).not.toHaveProperty("forkedFrom");
  });
});

describe("the timeline of a fork", () => {
  test("says of what it is one, and how many steps it kept", async () => {
    const [, facts, ids] = await printLines("timeline", FORKED_PLAN.id, { columns: 120 });
    expect(facts).toContain("3 steps, 1 kept ·");
    expect(ids).toContain(`${FORKED_PLAN.id} · fork of ${ENDED_PLAN.id} from ${from} · owner`);
  });

  test("draws no bar and no time for what was kept", async () => {
    const drawn = await printLines("timeline", FORKED_PLAN.id);
    expect(findRow(drawn, "postgres")).toMatch(/✓ [ ┊]+ kept$/u);
    expect(findRow(drawn, "sqlite")).toMatch(/✓ ┄?█.* 4\.0s$/u);
  });

  test.each([60, 80, 100, 200])("fits into %i columns", async (columns) => {
    for (const line of await printLines("timeline", FORKED_PLAN.id, { columns }))
      expect(countCells(line), line).toBeLessThanOrEqual(columns);
  });

  test("is ASCII where the terminal is, and colour changes nothing else", async () => {
    expect((await printLines("timeline", FORKED_PLAN.id, { unicode: false })).join("")).toMatch(
      /^[\x20-\x7e]+$/u,
    );
    const colour = await printLines("timeline", FORKED_PLAN.id, { colour: true });
    expect(colour.map((line) => stripVTControlCharacters(line))).toEqual(
      await printLines("timeline", FORKED_PLAN.id),
    );
  });

  test("as JSON has the source of the fork and of the row, which took no time", async () => {
    const timeline = await readJson<{ rows: object[] }>("timeline", FORKED_PLAN.id);
    expect(timeline).toMatchObject({ forkedFrom: { coordinationId: ENDED_PLAN.id, sequence: from } });
    expect(timeline.rows[0]).toMatchObject({
      stepId: "postgres",
      attempt: 0,
      carriedFrom: completedBy,
      durationMs: 0,
    });
    expect(timeline.rows[1]).not.toHaveProperty("carriedFrom");
  });

  test("of another plan says nothing of forks", async () => {
    expect((await printLines("timeline", RUNNING_PLAN.id)).join("\n")).not.toMatch(/fork of|kept/u);
    expect(await readJson("timeline", RUNNING_PLAN.id)).not.toHaveProperty("forkedFrom");
  });
});

describe("the list", () => {
  test("says of a fork what it is one of, and nothing of the kind of others", async () => {
    const { stdout } = await runPlanCli(["list"], { columns: 160 });
    const listed = stdout.split("\n");
    const lineOf = (owner: string): string => listed.find((line) => line.startsWith(owner)) ?? "";
    expect(lineOf(FORKED_PLAN.id)).toMatch(new RegExp(`  fork of ${ENDED_PLAN.id} from ${from}: \\S`, "u"));
    expect(lineOf(RUNNING_PLAN.id)).not.toContain("fork");
    expect(listed.join("")).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  test("as JSON has the source of the fork", async () => {
    const entries = JSON.parse((await runPlanCli(["list", "--json"])).stdout) as { coordinationId: string }[];
    const entryOf = (id: string) => entries.find(({ coordinationId }) => coordinationId === id);
    const forkedFrom = { coordinationId: ENDED_PLAN.id, sequence: from };
    expect(entryOf(FORKED_PLAN.id)).toMatchObject({ forkedFrom });
    expect(entryOf(ENDED_PLAN.id)).not.toHaveProperty("forkedFrom");
  });
});

test("the proof of a ledger holds forks against their sources", async () => {
  const { stdout } = await runPlanCli(["verify", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, problems: [] });
});

test.each(["show", "timeline"])("the id of a source cannot harm the terminal in %s", async (command) => {
  const message = (await printLines(command, NASTY_FORK.id)).join("|");
  expect(message).toContain("fork of plan-\ufffd[31m\ufffd from");
  expect(message).not.toMatch(/[\p{Cc}\u202e]/u);
});

test("a fork with a kept step comes out of a replay as it is recorded", async () => {
  expect(await readJson("replay", FORKED_PLAN.id)).toMatchObject({ equal: true });
});
