import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import { step } from "../core/plan-scene.ts";
import { lend } from "../core/planned-scene.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN, type PlanScript } from "./recorded-plan.ts";
import { runCli } from "./run-cli.ts";

const NASTY = "\u001b[31mred\u202e 幅広 it's";
const NASTY_PLAN: PlanScript = {
  id: "plan-nasty",
  objective: "Nothing good",
  failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" },
  atMs: 200_000,
  steps: [step(NASTY, [], { retry: { budget: 0 } }), step("after", [NASTY])],
  acts: [
    [200_000, "dispatch", NASTY, 1],
    [200_200, "ack", NASTY, 1],
    [201_000, "fail", NASTY, 1],
  ],
};

/** The agent of `first` has submitted a plan, which may use all that is left. */
const LENDING_PLAN: PlanScript = {
  id: "plan-lending",
  objective: "Share",
  budget: { spawns: 6, tokens: 40_000 },
  steps: [step("first"), step("second")],
  acts: [
    [0, "dispatch", "first", 1],
    [100, "ack", "first", 1],
    [200, "command", lend("first", 1, { budget: { tokens: 30_000 } })],
  ],
};

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");
const nowOf = (id: string): number => (id === RUNNING_PLAN.id ? 60_000 : 230_000);

beforeAll(async () => {
  folder = createTempFolder();
  await recordPlans(nameLedger(), [RUNNING_PLAN, ENDED_PLAN, NASTY_PLAN]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function printLines(command: string, id: string, terminal: Partial<Terminal> = {}): Promise<string[]> {
  const nowMs = TEST_EPOCH_MS + nowOf(id);
  const { stdout, stderr, exitCode } = await runCli([command, id, "--ledger", nameLedger()], {
    nowMs,
    terminal,
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout.trimEnd().split("\n");
}

/** The fields that `show` has of one step, from its title to the next empty line. */
function stepIn(shown: readonly string[], title: RegExp): string {
  const from = shown.findIndex((line) => title.test(line));
  expect(from).toBeGreaterThanOrEqual(0);
  const to = shown.indexOf("", from);
  return shown.slice(from, to === -1 ? undefined : to).join("\n");
}

const findRow = (drawn: readonly string[], name: string): string =>
  drawn.find((line) => line.startsWith(`${name} `)) ?? `no row ${name}`;

describe("the timeline of a plan", () => {
  test("draws failed attempts apart from the one that completed, with a gap between them", async () => {
    expect(findRow(await printLines("timeline", RUNNING_PLAN.id), "fetch")).toMatch(
      /✓ ▒{9,} +[ ┊]*▐█+ *┊.* 10\.0s$/u,
    );
  });

  test("a waiting step has a thin line and no duration, a skipped one no line at all", async () => {
    expect(findRow(await printLines("timeline", RUNNING_PLAN.id), "report")).toMatch(/○ ┄{50,} +-$/u);
    expect(findRow(await printLines("timeline", ENDED_PLAN.id), "compare")).toMatch(/⊖ [ ┊]+ -$/u);
  });

  test("says when the next attempt is due, and for which step people are asked until when", async () => {
    const drawn = (await printLines("timeline", RUNNING_PLAN.id)).join("\n");
    expect(drawn).toMatch(/↻ slow: attempt 2 at 2026-01-02 03:05:\d\dZ/u);
    expect(drawn).toContain("◆ audit: waits for people until 2026-01-02 04:04:14Z; try it again with\n");
    expect(drawn).toContain(`\n  openclaw coordination retry ${RUNNING_PLAN.id} audit\n`);
    expect(drawn).toContain("▒ failed attempt");
  });

  test("of a plan that ended has nothing to wait for", async () => {
    const drawn = (await printLines("timeline", ENDED_PLAN.id)).join("\n");
    expect(drawn).not.toMatch(/retry|failed attempt/u);
  });

  test("shows how the owner was told, and does not count that as a step", async () => {
    const drawn = await printLines("timeline", ENDED_PLAN.id);
    expect(findRow(drawn, "delivery")).toMatch(/control +✓ .*800ms$/u);
    expect(drawn.join("\n")).not.toContain("@delivery");
    expect(drawn[1]).toContain("3 steps, 1 failed");
  });

  test.each([60, 80, 100, 200])("fits into %i columns, ids apart", async (columns) => {
    for (const { id } of [RUNNING_PLAN, ENDED_PLAN, NASTY_PLAN]) {
      for (const line of await printLines("timeline", id, { columns }))
        if (!line.includes(id)) expect(countCells(line), line).toBeLessThanOrEqual(columns);
    }
  });

  test("is ASCII where the terminal is, and colour changes nothing else", async () => {
    for (const { id } of [RUNNING_PLAN, NASTY_PLAN]) {
      expect((await printLines("timeline", id, { unicode: false })).join("")).toMatch(/^[\x20-\x7e]+$/u);
      const colour = await printLines("timeline", id, { colour: true });
      expect(colour.map((line) => stripVTControlCharacters(line))).toEqual(await printLines("timeline", id));
    }
  });

  test("a step's id cannot harm the terminal, nor end the word of the command that is shown", async () => {
    const drawn = (await printLines("timeline", NASTY_PLAN.id)).join("|");
    expect(drawn).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(drawn).toContain(`'\ufffd[31mred\ufffd 幅広 it'\\''s'`);
  });

  test("as JSON has the attempts before the newest one, dependencies and due times", async () => {
    const { stdout } = await runCli(["timeline", RUNNING_PLAN.id, "--ledger", nameLedger(), "--json"], {
      nowMs: TEST_EPOCH_MS + 60_000,
    });
    const { rows } = JSON.parse(stdout) as { rows: { stepId: string }[] };
    const findRowOfStep = (stepId: string) => rows.find((each) => each.stepId === stepId);
    expect(findRowOfStep("fetch")).toMatchObject({
      attempt: 2,
      startMs: 20_000,
      earlier: [{ attempt: 1, status: "failed", startMs: 0, durationMs: 10_000 }],
    });
    expect(findRowOfStep("report")).toMatchObject({
      status: "waiting",
      dependsOn: ["audit", "slow", "parse"],
    });
    expect(findRowOfStep("audit")).toMatchObject({
      status: "blocked",
      answerByMs: TEST_EPOCH_MS + 3_609_000,
    });
    expect(findRowOfStep("slow")).toHaveProperty("retryAtMs");
    expect(findRowOfStep("parse")).not.toHaveProperty("earlier");
  });
});

describe("show of a plan", () => {
  test("says what is set aside for plans inside, for which its own steps may wait", async () => {
    const ledger = folder.file("lending.sqlite");
    await recordPlans(ledger, [LENDING_PLAN]);
    const { stdout: shown } = await runCli(["show", LENDING_PLAN.id, "--ledger", ledger]);
    expect(shown).toMatch(/^ *lent +30,000 tokens, 5 spawns to inside \(first\)$/mu);
    const { stdout: json } = await runCli(["show", LENDING_PLAN.id, "--ledger", ledger, "--json"]);
    expect((JSON.parse(json) as CoordinationView).plan).toMatchObject({
      loans: [{ stepId: "first", attempt: 1, to: "inside", budget: { spawns: 5, tokens: 30_000 } }],
    });
    expect((await printLines("show", RUNNING_PLAN.id)).join("\n")).not.toMatch(/^ *lent /mu);
  });

  test("names dependencies, with how many of them are needed where not all are", async () => {
    const shown = await printLines("show", RUNNING_PLAN.id);
    expect(stepIn(shown, /○ report {2}waiting/u)).toContain("depends on  2 of audit, slow, parse");
    expect(stepIn(shown, /● parse {2}running/u)).toMatch(/depends on {2}fetch$/mu);
    expect(shown.join("\n")).toContain("  plan        5 steps");
  });

  test("tells attempts, the next try, and until when people may answer", async () => {
    const shown = await printLines("show", RUNNING_PLAN.id);
    expect(stepIn(shown, /✓ fetch/u)).toMatch(/completed {2}10\.0s {2}attempt 2 of 3\n[^]*output {6}11 B/u);
    expect(stepIn(shown, /↻ slow {2}backoff/u)).toMatch(/next try {4}2026-01-02 03:0\d:\d\dZ/u);
    expect(stepIn(shown, /◆ audit {2}blocked/u)).toContain(
      "answer by   2026-01-02 04:04:14Z (in 59m 09s): retry or cancel the step",
    );
  });

  test("says why a step was skipped, and calls the delivery by its name", async () => {
    const shown = await printLines("show", ENDED_PLAN.id);
    expect(stepIn(shown, /⊖ compare {2}skipped \(dependency\)/u)).toContain("postgres, sqlite");
    expect(stepIn(shown, /✓ delivery {2}completed/u)).toContain("main (owner)");
    expect(shown.join("\n")).not.toMatch(/✓ @delivery/u);
  });

  test("as JSON keeps the ids of the ledger", async () => {
    const { stdout } = await runCli(["show", ENDED_PLAN.id, "--ledger", nameLedger(), "--json"]);
    const { steps } = JSON.parse(stdout) as CoordinationView;
    expect(steps.map(({ stepId }) => stepId)).toEqual(["postgres", "sqlite", "compare", "@delivery"]);
  });
});

test("list and status count the steps of plans", async () => {
  const { stdout: listed } = await runCli(["list", "--ledger", nameLedger()]);
  expect(listed).toMatch(/plan-6f1c00 +● running +\S+ +5 \(4 open\)/u);
  const { stdout: status } = await runCli(["status", "--ledger", nameLedger()]);
  expect(status).toContain("running       2 coordinations, 6 open steps");
});
