import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import { drawBar, placeTicks } from "../../src/plugins/cli/timeline/time-axis.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

const NASTY = "\u001b[31mred\u0007\u202Eevil\nline";

beforeAll(async () => {
  folder = createTempFolder();
  const nasty = {
    id: "co-nasty",
    objective: `Do ${NASTY}`,
    trace: "nasty",
    spawns: [{ name: NASTY, atMs: 0 }],
  };
  const wide = {
    id: "co-wide",
    objective: "幅の広い文字",
    trace: "wide",
    spawns: [{ name: "調査する🚀", atMs: 0 }],
  };
  const spawns = [
    { name: "root", atMs: 0 },
    { name: "first", under: "root", atMs: 1_000 },
    { name: "second", under: "root", atMs: 2_000 },
    { name: "inner", under: "first", atMs: 3_000 },
    { name: "last", under: "second", atMs: 4_000 },
  ];
  const deep = { id: "co-deep", objective: "Nest", trace: "deep", spawns };
  await recordLedger(nameLedger(), [RESEARCH, OPEN, nasty, wide, deep]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function draw(
  id: string,
  { nowMs = 80_000, ...terminal }: Partial<Terminal> & { nowMs?: number } = {},
) {
  const result = await runCli(["timeline", id, "--ledger", nameLedger()], {
    terminal,
    nowMs: TEST_EPOCH_MS + nowMs,
  });
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  return result.stdout.trimEnd().split("\n");
}

function rowOf(lines: readonly string[], name: string): string {
  return lines.find((line) => line.includes(name)) ?? `no row for ${name}`;
}

/** Where the bar of a row begins and ends, in cells. */
function findBar(line: string, sign = /[█▐▏▎▍▌▋▊▉]/g): { from: number; to: number } {
  const cells = [...line.matchAll(sign)].map(({ index }) => index);
  return { from: Math.min(...cells), to: Math.max(...cells) };
}

describe("the file", () => {
  const LONG_NAME = "a".repeat(300);

  test.each([
    ["", "--html: expected the path of a file, got nothing"],
    [".", "--html .: this is a folder; name a file in it"],
    ["no/such/folder.html", "--html no/such/folder.html: its folder does not exist"],
    [LONG_NAME, `--html ${LONG_NAME}: it cannot be written (ENAMETOOLONG)`],
  ])("is refused where it can be none: %j", async (file, message) => {
    const args = ["timeline", OPEN.id, "--html", file, "--ledger", nameLedger(), "--json"];
    const { stdout } = await runCli(args);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID", message } });
  });
});

describe("the picture", () => {
  test("children stand under their parents, the last one on the last branch", async () => {
    const lines = await draw("co-1f0c");
    const names = lines.slice(lines.findIndex((line) => line.startsWith("STEP")) + 1, -2);
    expect(names.map((line) => line.split(/\s{2,}/)[0])).toEqual([
      "survey",
      "├╴read-docs",
      "├╴read-issues",
      "└╴read-changelog",
      "benchmark",
      "├╴run-1k",
      "└╴run-1m",
    ]);
  });

  test("a branch runs on beside the grandchildren of a step that has later siblings", async () => {
    const names = (await draw("co-deep")).map((line) => line.split(/\s{2,}main/)[0]);
    expect(names.slice(names.indexOf("root"), -2)).toEqual([
      "root",
      "├╴first",
      "│ └╴inner",
      "└╴second",
      "  └╴last",
    ]);
  });

  test("the header tells the objective, the outcome, the duration and the ids", async () => {
    const head = (await draw("co-1f0c")).slice(0, 4).join("\n");
    expect(head).toContain("Compare the three candidate queue libraries and recommend one");
    expect(head).toContain("◐ partial 47.0s · 7 steps, 1 failed");
    expect(head).toContain("co-1f0c7a52-9e4b-4d6f-8a21-5b3c9d7e0f14");
    expect(head).toContain("trace 8d18117895fdfe83fe614bb1360e9344");
  });

  test("bars share one axis: what began later begins further right, what took longer is longer", async () => {
    const lines = await draw("co-1f0c", { columns: 140 });
    const survey = findBar(rowOf(lines, "survey"));
    const late = findBar(rowOf(lines, "read-changelog"));
    const early = findBar(rowOf(lines, "read-docs"));
    const longest = findBar(rowOf(lines, "benchmark"));
    expect(early.from).toBeGreaterThan(survey.from);
    expect(late.from).toBeGreaterThanOrEqual(early.to);
    expect(longest.to - longest.from).toBeGreaterThan(survey.to - survey.from);
  });

  test("a step that took 21.4 of 47 seconds has 21.4 of 47 of the axis", async () => {
    const lines = await draw("co-1f0c", { columns: 200 });
    const { from, to } = findBar(rowOf(lines, "survey"));
    const axisFrom = (lines.find((line) => line.startsWith("STEP")) ?? "").indexOf("0");
    const axisCells = rowOf(lines, "survey").lastIndexOf("  ", 193) - axisFrom;
    expect(from).toBe(axisFrom);
    expect((to - from + 1) / axisCells).toBeCloseTo(21.4 / 47, 1);
  });

  test("a failed step has a sign and a duration of its own, and the legend explains both", async () => {
    const lines = await draw("co-1f0c");
    expect(rowOf(lines, "read-issues")).toMatch(/reader\s+data {2}✗ .* 15\.5s$/);
    expect(lines.at(-1)).toContain("✓ completed  ✗ failed");
    expect(lines.at(-1)).toContain("█ data 7");
  });

  test("a running step is drawn up to now and fades; its wait for the host is thin", async () => {
    const lines = await draw(OPEN.id);
    const row = rowOf(lines, "long-job");
    expect(row).toMatch(/● ┄+█+▓▒░ {2}\s*20\.0s$/);
    expect(findBar(row, /┄/g).to - findBar(row, /┄/g).from).toBeGreaterThan(5);
    expect(rowOf(lines, "just-asked")).toMatch(/◌ [ ┊]+┄+ {2}\s*12\.0s$/);
  });

  test("a running step grows with the clock", async () => {
    expect(rowOf(await draw(OPEN.id, { nowMs: 130_000 }), "long-job")).toMatch(/1m 10s$/);
  });

  test("a reader whose clock is behind the gateway's still draws what is there", async () => {
    const lines = await draw(OPEN.id, { nowMs: 0 });
    expect(rowOf(lines, "long-job")).toMatch(/8\.0s$/);
  });

  test.each([60, 80, 100, 132, 200])("every row fits into %i columns", async (columns) => {
    for (const id of ["co-1f0c", OPEN.id, "co-nasty", "co-wide", "co-deep"]) {
      const lines = await draw(id, { columns });
      const rows = lines.filter((line) => / data /.test(line) && !line.startsWith("lanes"));
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(countCells(row)).toBe(columns);
      for (const line of lines) expect(countCells(line)).toBeLessThanOrEqual(columns);
    }
  });

  test("a terminal narrower than 60 columns gets the picture for 60", async () => {
    expect(await draw("co-1f0c", { columns: 20 })).toEqual(await draw("co-1f0c", { columns: 60 }));
  });

  test("a terminal that is not UTF-8 gets ASCII only", async () => {
    for (const id of ["co-1f0c", OPEN.id, "co-nasty", "co-wide", "co-deep"]) {
      const lines = await draw(id, { unicode: false });
      expect(lines.join("")).toMatch(/^[\x20-\x7e]+$/);
    }
    expect(rowOf(await draw("co-1f0c", { unicode: false }), "read-docs")).toMatch(/^\|-read-docs.*\+ : =+/);
  });

  test("a name cannot colour the terminal, move the cursor or turn the line around", async () => {
    const lines = await draw("co-nasty");
    expect(lines.join("")).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(lines[0]).toBe("Do \ufffd[31mred\ufffd\ufffdevil line");
    expect(lines.at(-3)).toMatch(/^\ufffd\[31mred\ufffd\ufffdevil line {2}main /);
  });

  test("colour distinguishes lanes and statuses and changes nothing else", async () => {
    const colour = await draw("co-1f0c", { colour: true });
    expect(colour.map((line) => stripVTControlCharacters(line))).toEqual(await draw("co-1f0c"));
    expect(rowOf(colour, "read-issues")).toContain("\u001b[31m");
    expect(rowOf(colour, "read-docs")).toContain("\u001b[32m");
    const legend = colour.at(-1) ?? "";
    const styles = ["control", "data", "escalation"].map(
      (lane) => new RegExp(`\\u001b\\[(\\d+)m█\\u001b\\[39m ${lane}`).exec(legend)?.[1],
    );
    expect(new Set(styles).size).toBe(3);
    expect(styles).not.toContain(undefined);
  });
});

describe("as JSON", () => {
  test("rows carry offsets and depths in tree order", async () => {
    const { stdout } = await runCli(["timeline", "co-1f0c", "--ledger", nameLedger(), "--json"]);
    const timeline = JSON.parse(stdout) as { rows: object[] };
    expect(timeline).toMatchObject({
      coordinationId: RESEARCH.id,
      status: "partial",
      startedAtMs: TEST_EPOCH_MS,
      endedAtMs: TEST_EPOCH_MS + 47_000,
      durationMs: 47_000,
    });
    expect(timeline.rows).toHaveLength(7);
    expect(timeline.rows[1]).toMatchObject({
      stepId: "step-3",
      parentStepId: "step-1",
      depth: 1,
      name: "read-docs",
      agentId: "reader",
      lane: "data",
      status: "completed",
      startMs: 1_900,
      durationMs: 9_300,
    });
  });

  test("a running coordination has no end, and durations until now", async () => {
    const { stdout } = await runCli(["timeline", OPEN.id, "--ledger", nameLedger(), "--json"], {
      nowMs: TEST_EPOCH_MS + 70_000,
    });
    const timeline = JSON.parse(stdout) as Record<string, unknown>;
    expect(timeline).toMatchObject({
      status: "running",
      durationMs: 10_000,
      rows: [
        { startMs: 0, durationMs: 10_000 },
        { startMs: 8_000, durationMs: 2_000 },
      ],
    });
    expect(timeline).not.toHaveProperty("endedAtMs");
  });
});

describe("the axis", () => {
  test("a bar is never empty and never leaves the axis", () => {
    const axis = { totalMs: 1_000, cells: 10 };
    for (const fromMs of [0, 1, 499, 999, 1_000, 5_000]) {
      for (const toMs of [fromMs, fromMs + 1, 1_000, 9_000]) {
        for (const unicode of [true, false]) {
          const { cell, text } = drawBar({ fromMs, toMs }, axis, unicode);
          expect(text.length).toBeGreaterThan(0);
          expect(cell + text.length).toBeLessThanOrEqual(axis.cells);
        }
      }
    }
  });

  test("a bar ends within an eighth of a cell of its time", () => {
    const axis = { totalMs: 80, cells: 10 };
    expect(drawBar({ fromMs: 0, toMs: 19 }, axis, true)).toEqual({ cell: 0, text: "██▍" });
    expect(drawBar({ fromMs: 16, toMs: 32 }, axis, true)).toEqual({ cell: 2, text: "██" });
    expect(drawBar({ fromMs: 20, toMs: 32 }, axis, true)).toEqual({ cell: 2, text: "▐█" });
  });

  test.each([1, 7, 950, 47_000, 3_600_000, 90_000_000, 9_000_000_000])(
    "labels over %i ms start at 0, rise and do not touch",
    (totalMs) => {
      for (const cells of [16, 40, 120]) {
        const ticks = placeTicks({ totalMs, cells });
        expect(ticks[0]).toEqual({ cell: 0, label: "0" });
        for (const [index, tick] of ticks.entries()) {
          const next = ticks[index + 1];
          if (next) expect(next.cell).toBeGreaterThan(tick.cell + tick.label.length);
          expect(tick.cell + tick.label.length).toBeLessThanOrEqual(cells);
        }
      }
    },
  );
});
