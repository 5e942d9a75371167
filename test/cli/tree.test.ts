import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger, type CoordinationScript } from "./recorded-ledger.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

const BILLED: CoordinationScript = {
  id: "co-billed",
  objective: "Find out what it costs",
  trace: "billed",
  settledAtMs: 30_000,
  ownerCalls: 2,
  spawns: [
    {
      name: "survey",
      agent: "research",
      atMs: 0,
      calls: 3,
      ends: { atMs: 21_000, outcome: "completed" },
    },
    {
      name: "read-docs",
      agent: "reader",
      under: "survey",
      atMs: 2_000,
      calls: 40,
      ends: { atMs: 11_000, outcome: "completed" },
    },
    { name: "silent", atMs: 3_000, ends: { atMs: 4_000, outcome: "failed", message: "it went wrong" } },
  ],
};

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  const budget = { spawns: 50, agents: { ["reader" as AgentId]: { tokens: 1_000_000 } } };
  await recordLedger(nameLedger(), [BILLED, OPEN], { budget });
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function run(args: readonly string[], setting: CliSetting = {}): Promise<string> {
  const result = await runCli([...args, "--ledger", nameLedger()], {
    nowMs: TEST_EPOCH_MS + 80_000,
    ...setting,
  });
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  return result.stdout;
}

const draw = async (id: string, terminal: Partial<Terminal> = {}): Promise<string[]> =>
  (await run(["tree", id], { terminal })).trimEnd().split("\n");

describe("the picture of a tree", () => {
  test("has the owner, children and grandchildren, each with what it used and cost, and the sum", async () => {
    const lines = await draw("co-billed", { columns: 120 });
    expect(lines.slice(0, 4)).toEqual([
      "Find out what it costs",
      "◐ partial 30.0s · 456k tokens, $1.50 · started 2026-01-02 03:04:05Z",
      "budget 50 spawns; reader: 1.00M tokens",
      "co-billed",
    ]);
    expect(lines.slice(5).map((line) => line.split(/\s{2,}/u).map((cell) => cell.trim()))).toEqual([
      ["", "SESSION", "AGENT", "LANE", "STATE", "MODEL", "TOKENS", "COST", "TIME"],
      ["◐ agent:main:main", "partial", "mock/scripted", "20,300", "$0.0666", "30.0s"],
      ["✓ ├╴survey", "research", "data", "completed", "mock/scripted", "30,450", "$0.0999", "21.0s"],
      ["✓ │ └╴read-docs", "reader", "data", "completed", "mock/scripted", "406k", "$1.33", "9.0s"],
      ["✗ └╴silent", "main", "data", "failed", "-", "-", "-", "1.0s"],
    ]);
  });

  test("fits terminals of any width", async () => {
    for (const columns of [60, 79, 80, 100, 110, 200]) {
      const lines = await draw("co-billed", { columns });
      for (const line of lines.slice(5)) expect(countCells(line)).toBeLessThanOrEqual(columns);
      expect(lines.join("\n")).toContain("406k");
    }
  });

  test("is plain where the terminal cannot show more", async () => {
    const [lines, coloured] = [
      await draw("co-billed", { unicode: false }),
      await draw("co-billed", { colour: true }),
    ];
    expect(lines.join("\n")).toMatch(/^[\x20-\x7e\n]*$/u);
    expect(lines.join("\n")).toContain("| `-read-docs");
    expect(coloured.map(stripVTControlCharacters)).toEqual(await draw("co-billed"));
  });
});

test("--json has the whole tree, with every figure", async () => {
  const { tree, ...rest } = JSON.parse(await run(["tree", "co-billed", "--json"])) as {
    tree: { children: readonly object[] };
  };
  expect(rest).toMatchObject({
    coordinationId: "co-billed",
    status: "partial",
    objective: "Find out what it costs",
    usage: { tokens: 45 * 10_150, costMicroUsd: 45 * 33_300 },
    budget: { spawns: 50 },
  });
  expect(tree).toMatchObject({
    name: "agent:main:main",
    usage: { calls: 2, inputTokens: 16_000, cacheReadTokens: 4_000, tokens: 20_300, costMicroUsd: 66_600 },
    children: [
      { name: "survey", usage: { calls: 3 }, children: [{ name: "read-docs", usage: { calls: 40 } }] },
      { name: "silent", status: "failed", children: [] },
    ],
  });
});

describe("--watch", () => {
  const waitTwice = () => {
    let pauses = 0;
    return {
      isInterrupted: () => pauses >= 2,
      pause: () => Promise.resolve(void (pauses += 1)),
      [Symbol.dispose]: () => undefined,
    };
  };

  test("draws over itself on a terminal until Ctrl-C", async () => {
    const shown = await run(["tree", "co-9a3b", "--watch"], {
      terminal: { isTTY: true },
      ticking: true,
      waiting: waitTwice,
    });
    expect(shown.split("\u001b[H\u001b[2J")).toHaveLength(3);
  });

  test("prints elsewhere only what changed, and ends with the coordination", async () => {
    const shown = await run(["tree", "co-9a3b", "--watch", "--json"], { ticking: true, waiting: waitTwice });
    expect(shown.trimEnd().split("\n")).toHaveLength(1);
    expect(await run(["tree", "co-billed", "--watch"])).toContain("$1.50");
  });
});

test("show, timeline, list and status have tokens and cost where there is room", async () => {
  const show = await run(["show", "co-billed"]);
  expect(show).toMatch(/used +456k tokens, \$1\.50\n/u);
  expect(show).toMatch(/used +406k tokens, \$1\.33, 40 model calls, mock\/scripted\n/u);
  expect(JSON.parse(await run(["show", "co-billed", "--json"]))).toMatchObject({
    usage: { tokens: 456_750, costMicroUsd: 1_498_500 },
    ownerUsage: { calls: 2 },
    steps: [{ usage: { calls: 3 } }, { usage: { calls: 40 } }, {}],
  });
  expect(await run(["timeline", "co-billed"])).toContain("456k tokens, $1.50");
  expect(JSON.parse(await run(["list", "--json"]))).toMatchObject([
    { coordinationId: OPEN.id },
    { coordinationId: "co-billed", usage: { tokens: 456_750 } },
  ]);
  expect(await run(["list"], { terminal: { columns: 140 } })).toMatch(
    /TOKENS +COST .*\n.*\n.* 456k +\$1\.50 /u,
  );
});
