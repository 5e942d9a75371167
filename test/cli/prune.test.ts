import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contentOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { createOlderLedger } from "../contract/older-ledger.ts";
import { addCoordination, addWorkflow } from "../contract/prunable-ledger.ts";
import { createOkAnswer, gatewayOf, NOT_FOUND } from "./fake-gateway.ts";
import { createAskedByOwner, recordCommands } from "./recorded-questions.ts";
import { createMemoryConfig, runCli, type CliResult } from "./run-cli.ts";

const DAY_MS = 86_400_000;
const NOW_MS = TEST_EPOCH_MS + 100 * DAY_MS;

let folder: TempFolder;
let ledgers = 0;

beforeAll(() => {
  folder = createTempFolder();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function recordPrunable(): Promise<string> {
  const path = folder.file(`ledger-${(ledgers += 1)}.sqlite`);
  const store = await openTestLedger(path);
  await addCoordination(store, "old");
  await addWorkflow(store, "old");
  await addWorkflow(store, "remembers", { hasMemory: true });
  await addCoordination(store, "running", { isOpen: true });
  await store.close();
  return path;
}

const run = (...args: readonly string[]): Promise<CliResult> => runCli(args, { nowMs: NOW_MS });

describe("ledger prune", () => {
  test("removes what ended before, says what is kept and why, and the ledger verifies", async () => {
    const path = await recordPrunable();
    const { stdout, stderr, exitCode } = await run("ledger", "prune", "--before", "90d", "--ledger", path);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toContain("2 runs with 15 events were removed");
    expect(stdout).toContain("1 run kept: still open");
    expect(stdout).toContain("1 run kept: memory, files or claims still name its events");
    const verified = await run("verify", "--ledger", path);
    expect(verified).toMatchObject({ exitCode: 0 });
    expect(verified.stdout).toContain("and the traces of 2 pruned runs");
  });

  test("says of a ledger of an older release, which knew no exports, why a dry run cannot look at it", async () => {
    using older = createTempFolder();
    const { path, database } = createOlderLedger(older, 8);
    database.close();
    const { stderr } = await run("ledger", "prune", "--before", "90d", "--dry-run", "--ledger", path);
    expect(stderr).toContain("older release, which knew no pruning");
  });

  describe("of the gateway's own ledger", () => {
    /** Prunes it where texts are kept for so many days, and counts those that are left of a removed and of an open run. */
    async function pruneOwn(keptDays: number | undefined, ...more: string[]): Promise<object> {
      const stateDir = folder.file(`gateway-${(ledgers += 1)}`);
      const path = join(stateDir, "coordination", "ledger.sqlite");
      const store = await openTestLedger(path);
      await addCoordination(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      await addWorkflow(store, "newest");
      await store.close();
      const phase1 = { contentRetentionDays: keptDays };
      const config = { plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } } };
      const result = await runCli(["ledger", "prune", "--before", "90d", ...more], {
        nowMs: NOW_MS,
        stateDir,
        ...(keptDays !== undefined && { config: createMemoryConfig(config) }),
      });
      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      const left = await openTestLedger(path, { mode: "read" });
      const [old, open] = ["task of old", "task of running"].map((text) => contentOf(text).ref.sha256);
      const counts = { old: await left.get(old ?? ""), open: await left.get(open ?? "") };
      await left.close();
      return { ...counts, stdout: result.stdout };
    }
    const BOTH = { old: "task of old", open: "task of running" };

    test("deletes the texts that are no longer kept, and none that an open run keeps", async () => {
      expect(await pruneOwn(7)).toEqual({
        old: undefined,
        open: "task of running",
        stdout: expect.stringContaining("1 expired text was deleted") as string,
      });
    });

    test.each<[string, number | undefined, string[]]>([
      ["are kept for longer", 3_650, []],
      ["are kept for nobody knows how long", undefined, []],
      ["would be deleted by no dry run", 7, ["--dry-run"]],
    ])("leaves texts that %s", async (_, keptDays, more) => {
      expect(await pruneOwn(keptDays, ...more)).toMatchObject(BOTH);
    });
  });

  test("says of the newest run of the file, which stays, that it may have ended long ago", async () => {
    const path = folder.file("newest.sqlite");
    const store = await openTestLedger(path);
    await addCoordination(store, "old");
    await store.close();
    const { stdout } = await run("ledger", "prune", "--before", "90d", "--ledger", path);
    expect(stdout).toContain("1 run kept: ended later, or the newest run of the ledger file");
  });

  test("only says what it would remove in a dry run", async () => {
    const path = await recordPrunable();
    const args = ["ledger", "prune", "--before", "90d", "--ledger", path];
    expect((await run(...args, "--dry-run")).stdout).toContain("2 runs with 15 events would be removed");
    const planned = JSON.parse((await run(...args, "--dry-run", "--json")).stdout) as object;
    const removed = JSON.parse((await run(...args, "--json")).stdout) as object;
    expect(planned).toMatchObject({ dryRun: true, runs: 2, kept: { open: 1, used: 1 } });
    expect({ ...removed, bytes: 0 }).toEqual({ ...planned, dryRun: false, bytes: 0 });
  });

  test("has the commands say of a removed run when it was removed", async () => {
    const path = await recordPrunable();
    await run("ledger", "prune", "--before", "90d", "--ledger", path);
    for (const args of [
      ["show", "co-old"],
      ["events", "co-old"],
      ["runs", "run-old"],
    ]) {
      const { stderr, exitCode } = await run(...args, "--ledger", path);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/(co|run)-old was pruned from the ledger at 2026-.*; it had \d+ events/u);
    }
  });

  describe("of a run whose id others begin with", () => {
    async function recordNamesakes(): Promise<string> {
      const path = await recordPrunable();
      await run("ledger", "prune", "--before", "90d", "--ledger", path);
      const store = await openTestLedger(path);
      const runId = await addCoordination(store, "old-2", { isOpen: true });
      await recordCommands(store, runId, [createAskedByOwner(0, { text: "Which?", answerMs: DAY_MS })]);
      await addWorkflow(store, "old-2", { isOpen: true });
      await store.close();
      return path;
    }

    test.each([
      ["co-old", ["show", "co-old"]],
      ["co-old", ["events", "co-old"]],
      ["run-old", ["runs", "run-old"]],
      ["co-old", ["replay", "co-old"]],
      ["run-old", ["replay", "run-old"]],
      ["co-old", ["questions", "--coordination", "co-old"]],
      ["co-old", ["questions", "show", "co-old"]],
      ["co-old", ["questions", "show", "co-old:escalation-1"]],
      ["co-old", ["conflicts", "co-old"]],
      ["co-old", ["conflicts", "co-old:1"]],
    ])("has the commands say that %s was removed: %j", async (id, args) => {
      const path = await recordNamesakes();
      const { stdout, stderr, exitCode } = await run(...args, "--ledger", path);
      expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
      expect(stderr).toContain(`error COORDINATION_NOT_FOUND: ${id} was pruned from the ledger at `);
    });

    test("lets a shorter prefix be one of those that are there", async () => {
      expect((await run("show", "co-ol", "--ledger", await recordNamesakes())).stdout).toContain("co-old-2");
    });

    test.each([["cancel"], ["retry"], ["fork"]])("has %s ask for no other coordination", async (command) => {
      const stateDir = folder.file(`namesakes-${(ledgers += 1)}`);
      cpSync(await recordNamesakes(), join(stateDir, "coordination", "ledger.sqlite"));
      const gateway = gatewayOf(NOT_FOUND, createOkAnswer({ coordinationId: "co-old-2" }));
      const { exitCode } = await runCli([command, "co-old"], { stateDir, gateway: gateway.call });
      expect(exitCode).toBe(1);
      expect(gateway.calls.map(({ params }) => params)).toEqual([
        expect.objectContaining({ coordinationId: "co-old" }),
      ]);
    });
  });

  test.each([
    ["2h", "less than one day ago"],
    ["2099-01-01", "less than one day ago"],
    ["soon", "expected a time such as"],
  ])("refuses --before %s", async (before, reason) => {
    const path = await recordPrunable();
    const { stderr, exitCode } = await run("ledger", "prune", "--before", before, "--ledger", path);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(reason);
  });

  test("creates no ledger where there is none", async () => {
    const path = folder.file("none.sqlite");
    const { stderr, exitCode } = await run("ledger", "prune", "--before", "90d", "--ledger", path);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("none.sqlite");
    expect((await run("list", "--ledger", path)).exitCode).toBe(1);
  });
});
