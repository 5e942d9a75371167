import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readVerificationBeside } from "../../src/plugins/verification-record.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { forge } from "./forge.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [RESEARCH, OPEN]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

describe("verify", () => {
  test("a sound ledger is ok", async () => {
    const all = await runCli(["events", "--ledger", nameLedger(), "--json"]);
    const events = JSON.parse(all.stdout) as unknown[];
    const { stdout, exitCode } = await runCli(["verify", "--ledger", nameLedger(), "--json"]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      problems: [],
      workflowRuns: 0,
      coordinations: 2,
      events: events.length,
      pruned: { runs: 0, events: 0 },
    });
  });

  test("a changed event is named with its place, and the exit code is 1", async () => {
    using damaged = createTempFolder();
    const path = damaged.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "drop trigger event_no_update; update event set timestamp_ms = 1 where sequence = 3");
    const { stdout, exitCode } = await runCli(["verify", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    const { ok, problems } = JSON.parse(stdout) as { ok: boolean; problems: object[] };
    expect(ok).toBe(false);
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "event_changed", runId: OPEN.id, sequence: 3 }),
    );
    const people = await runCli(["verify", "--ledger", path]);
    expect(people.stdout).toContain("DAMAGED");
    expect(people.stdout).toContain(`event_changed  ${OPEN.id}:3: `);
  });

  test.each([
    ["cut to a third", (path: string) => truncateSync(path, Math.floor(readFileSync(path).length / 3))],
    ["overwritten with text", (path: string) => writeFileSync(path, "this is not a ledger\n".repeat(400))],
    ["overwritten behind its header", (path: string) => overwrite(path, 100)],
  ])("a file that was %s is a damaged file, not an error", async (_, damage) => {
    using damaged = createTempFolder();
    const path = damaged.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    damage(path);
    const { stdout, exitCode } = await runCli(["verify", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, problems: [{ kind: "file_damaged" }] });
  });

  test("a damage that stops the proof hides nothing that was found before", async () => {
    using damaged = createTempFolder();
    const path = damaged.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "drop trigger event_no_update; update event set timestamp_ms = 1 where sequence = 3");
    forge(path, "drop table pruned_run");
    const { stdout, exitCode } = await runCli(["verify", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    const { problems, ...rest } = JSON.parse(stdout) as { problems: object[] };
    expect(rest).toMatchObject({ ok: false, coordinations: 1, truncated: true });
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "event_changed", runId: OPEN.id, sequence: 3 }),
    );
    expect(problems).toContainEqual(
      expect.objectContaining({
        kind: "file_damaged",
        message: expect.stringContaining("pruned_run") as string,
      }),
    );
  });

  test("a path that cannot be opened as a file is an error, not a damage", async () => {
    const { stdout, exitCode } = await runCli(["verify", "--ledger", folder.path, "--json"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "LEDGER_UNAVAILABLE" } });
  });

  test("a ledger of a newer release is an error, not a damage", async () => {
    using newer = createTempFolder();
    const path = newer.file("ledger.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "pragma user_version = 999");
    const { stdout, exitCode } = await runCli(["verify", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "LEDGER_TOO_NEW" } });
  });

  test("more problems than it lists are said to be at least so many, here, in the record and by `ledger anchor`", async () => {
    using damaged = createTempFolder();
    const path = damaged.file("coordination/ledger.sqlite");
    const store = await openTestLedger(path);
    const requests = Array.from({ length: 201 }, (_, index) => openRun(index).request);
    await Promise.all(requests.map((request) => store.append({ ...request, references: [] })));
    await store.close();
    const { stdout, exitCode } = await runCli(["verify"], { stateDir: damaged.path });
    expect(exitCode).toBe(1);
    const [verdict] = stdout.split("\n");
    expect(verdict?.trim()).toBe(
      "DAMAGED   at least 200 problems; stopped after 200 coordinations, 1,200 events",
    );
    expect(readVerificationBeside(path)).toMatchObject({ ok: false, problems: 200, isCut: true });
    const json = await runCli(["verify", "--ledger", path, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, truncated: true });
    const anchor = await runCli(["ledger", "anchor", damaged.file("anchor.json"), "--ledger", path]);
    expect(anchor.stderr).toContain("the ledger has at least 200 problems, first: ");
  });

  test("progress is told on a terminal only, and wiped off at the end", async () => {
    const onTerminal = { ticking: true, terminal: { isTTY: true } };
    const { stderr, stdout } = await runCli(["verify", "--ledger", nameLedger()], onTerminal);
    expect(stderr).toContain("\rchecked 2 coordinations, ");
    expect(stderr.endsWith("\r\u001b[K")).toBe(true);
    expect(stdout).toMatch(/^ok /);
    expect((await runCli(["verify", "--ledger", nameLedger()], { ticking: true })).stderr).toBe("");
  });
});

function overwrite(path: string, from: number): void {
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xa5, from));
}
