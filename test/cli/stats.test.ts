import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

const DAY_MS = 86_400_000;
let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  const createShort = (id: number) => ({
    id: `co-${String(id).padStart(8, "0")}`,
    objective: "Do one thing",
    trace: `short-${id}`,
    settledAtMs: 10_000,
    spawns: [{ name: "only", atMs: 0, ends: { atMs: 2_000 + id, outcome: "completed" as const } }],
  });
  await recordLedger(nameLedger(), [
    RESEARCH,
    OPEN,
    ...Array.from({ length: 30 }, (_, id) => createShort(id)),
  ]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const runStats = (args: readonly string[], phase1 = {}) =>
  runCli(["stats", "--ledger", nameLedger(), ...args], {
    nowMs: TEST_EPOCH_MS + DAY_MS,
    config: createMemoryConfig({
      plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } },
    }),
  });

describe("stats", () => {
  test("measures what was opened since, and says which target is met", async () => {
    const { stdout, exitCode } = await runStats([]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("32 coordinations since 7d:");
    expect(stdout).toMatch(
      /^ {2}coordinations that succeeded +96\.8 % {2}at least 95\.0 % +met +31 that ended$/mu,
    );
    expect(stdout).toMatch(/^ {2}time people take to answer, p95 +- {2}at most 1 ?h.* too few to tell/mu);
  });

  test("fails where a target of the configuration is missed", async () => {
    const { stdout, exitCode } = await runStats(["--json"], { stats: { successMin: 1, firstResultMs: 1 } });
    expect(exitCode).toBe(1);
    const { measures, coordinations } = JSON.parse(stdout) as {
      measures: { name: string; verdict: string; value: number }[];
      coordinations: number;
    };
    expect(coordinations).toBe(32);
    expect(measures.filter(({ verdict }) => verdict === "missed").map(({ name }) => name)).toEqual([
      "success",
      "firstResult",
    ]);
  });

  test("counts nothing of before", async () => {
    const { stdout, exitCode } = await runStats(["--since", "1h"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("0 coordinations since 1h:");
  });

  const RUN_KEY = `(select run_key from run where run_id = '${OPEN.id}')`;

  test.each([
    [
      "has an unreadable event",
      `update event set payload = '{}' where sequence = 1 and run_key = ${RUN_KEY}`,
    ],
    ["lacks an event", `delete from event where sequence = 3 and run_key = ${RUN_KEY}`],
    ["lacks its end", `delete from event where sequence > 4 and run_key = ${RUN_KEY}`],
    ["lacks all events", `delete from event where run_key = ${RUN_KEY}`],
  ])("goes on past a coordination whose log %s, and names it", async (_, damage) => {
    using damagedFolder = createTempFolder();
    const ledger = damagedFolder.file("ledger.sqlite");
    await recordLedger(ledger, [RESEARCH, OPEN]);
    forge(ledger, damage);
    const { stdout, stderr } = await runStats(["--ledger", ledger]);
    expect(stderr).toBe("");
    expect(stdout).toContain("1 coordination since 7d:");
    expect(stdout).toContain(`Left out, because their logs are damaged: ${OPEN.id}.`);
    const { stdout: json } = await runStats(["--ledger", ledger, "--json"]);
    expect(JSON.parse(json)).toMatchObject({ coordinations: 1, unreadable: [OPEN.id] });
  });

  test("refuses what is no time", async () => {
    const { stderr, exitCode } = await runStats(["--since", "soon"]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("--since");
  });
});
