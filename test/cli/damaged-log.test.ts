/** Owns: lists over all coordinations of a ledger in which the log of one is damaged: the rest is shown, and the gap is named. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { recordConflicts, STRANGERS, WRITERS } from "./recorded-conflicts.ts";
import { runCli, type CliResult } from "./run-cli.ts";

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  await recordConflicts(path, folder.path);
  forge(path, (database) => {
    database
      .prepare(
        "update event set payload = '{}' where sequence = 1 and run_key = (select run_key from run where run_id = ?)",
      )
      .run(WRITERS);
  });
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const run = (...args: readonly string[]): Promise<CliResult> =>
  runCli([...args, "--ledger", folder.file("ledger.sqlite")], {
    nowMs: TEST_EPOCH_MS + 30_000,
    terminal: { columns: 200 },
  });

const UNREADABLE =
  "The conflicts of at least 1 damaged coordination cannot be read: run `openclaw coordination verify`.\n";

test("conflicts lists those of the other coordinations, and says that some cannot be read", async () => {
  const { stdout, stderr, exitCode } = await run("conflicts", "--json");
  expect({ stderr, exitCode }).toEqual({ stderr: UNREADABLE, exitCode: 0 });
  const listed = JSON.parse(stdout) as { coordinationId: string }[];
  expect(new Set(listed.map(({ coordinationId }) => coordinationId))).toEqual(new Set([STRANGERS]));
});

test("conflicts --open does not pass a damaged log over in silence either", async () => {
  expect(await run("conflicts", "--open")).toMatchObject({ stderr: UNREADABLE, exitCode: 0 });
});

test("claims of a damaged log name their steps by id alone", async () => {
  const { stdout, stderr, exitCode } = await run("claims");
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  expect(stdout).toMatch(/^ +1 {2}co-1f0c7a52 {3}step-1 {2,}2026-01-02 03:04:15Z/mu);
});
