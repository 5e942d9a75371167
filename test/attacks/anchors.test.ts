/** Owns: attacks on the ledger by somebody who can write the file and knows how it is hashed: an anchor finds them. */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import type Database from "better-sqlite3";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "../contract/workflow-store-tested.ts";
import { runCli } from "../cli/run-cli.ts";
import { OPEN, recordLedger } from "../cli/recorded-ledger.ts";
import { buildLedger, forge, rehashRun } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";

const folder = createTempFolder();
const sound = folder.file("sound.sqlite");
const ledger = folder.file("ledger.sqlite");
const anchor = folder.file("anchor.json");
const signedAnchor = folder.file("signed.json");
const key = folder.file("key");
const otherKey = folder.file("other-key");

interface Report {
  readonly ok: boolean;
  readonly problems: readonly { readonly kind: string; readonly runId?: string; readonly message: string }[];
  readonly error?: { readonly code: string; readonly message: string };
}

async function verify(...args: string[]): Promise<Report & { readonly exitCode: number }> {
  const { stdout, exitCode } = await runCli(["verify", "--ledger", ledger, "--json", ...args]);
  return { ...(JSON.parse(stdout) as Report), exitCode };
}

async function run(...args: string[]): Promise<void> {
  const { exitCode, stderr } = await runCli(args);
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
}

beforeAll(async () => {
  await buildLedger(sound);
  copyFileSync(sound, ledger);
  await run("ledger", "key", key);
  await run("ledger", "key", otherKey);
  await run("ledger", "anchor", anchor, "--ledger", ledger);
  await run("ledger", "anchor", signedAnchor, "--ledger", ledger, "--sign", key);
});

beforeEach(() => {
  copyFileSync(sound, ledger);
});

afterAll(() => folder[Symbol.dispose]());

async function appendYoungerRun(): Promise<void> {
  const store = await openTestLedger(ledger);
  const { summary, ...request } = createWorkflowAuthor("younger").append([createRunStarted("wf-0")]);
  await store.workflows.append({ ...request, summary: { ...summary, workflowId: "wf-0" } });
  await store.close();
}

const FORKED = nameWorkflowRun("fork");

/** Removes what a run of the end of the ledger has from a sequence on, in every place that counts it. */
function cutRun(database: Database.Database, runId: string, from: number): void {
  const runKey = database.prepare("select run_key from run where run_id = ?").pluck().get(runId);
  database.prepare("delete from event where run_key = ? and sequence >= ?").run(runKey, from);
  if (from === 0) database.prepare("delete from run where run_key = ?").run(runKey);
  else rehashRun(database, runId as never);
  database.exec("update sqlite_sequence set seq = (select max(event_key) from event) where name = 'event'");
}

describe("whoever writes the ledger file", () => {
  it("who rewrites an event and chains all hashes anew passes verify, and not the anchor", async () => {
    const runId = nameWorkflowRun("7");
    forge(ledger, (database) => {
      database.exec(
        `update event set timestamp_ms = timestamp_ms - 1
         where sequence = 1 and run_key = (select run_key from run where run_id = '${runId}')`,
      );
      rehashRun(database, runId);
    });
    expect(await verify()).toMatchObject({ ok: true, exitCode: 0 });
    expect(await verify("--anchor", anchor)).toMatchObject({
      ok: false,
      exitCode: 1,
      problems: [{ kind: "anchor_run_rewritten", runId }],
    });
  });

  it("who cuts the end of a run off passes verify, and not the anchor", async () => {
    forge(ledger, (database) => {
      cutRun(database, FORKED, 2);
    });
    expect(await verify()).toMatchObject({ ok: true });
    const { ok, problems } = await verify("--anchor", anchor);
    expect(ok).toBe(false);
    expect(problems).toContainEqual(expect.objectContaining({ kind: "anchor_run_shortened", runId: FORKED }));
  });

  it("who removes a run passes verify, and not the anchor", async () => {
    forge(ledger, (database) => {
      cutRun(database, FORKED, 0);
    });
    expect(await verify()).toMatchObject({ ok: true });
    const { ok, problems } = await verify("--anchor", anchor);
    expect(ok).toBe(false);
    expect(problems).toContainEqual(expect.objectContaining({ kind: "anchor_run_missing", runId: FORKED }));
  });

  it("who gives a younger event the number of an anchored one passes verify, and not the anchor", async () => {
    await appendYoungerRun();
    expect(await verify("--anchor", anchor)).toMatchObject({ ok: true });
    forge(ledger, (database) => {
      const newest = database.prepare("select max(event_key) from event").pluck().get() as number;
      const swap = database.prepare("update event set event_key = ? where event_key = ?");
      swap.run(-1, newest);
      swap.run(newest, newest - 1);
      swap.run(newest - 1, -1);
    });
    expect(await verify()).toMatchObject({ ok: true });
    expect(await verify("--anchor", anchor)).toMatchObject({
      ok: false,
      problems: [{ kind: "anchor_ledger_differs" }],
    });
  });

  it("who puts an older copy of it in its place passes verify, and not a younger anchor", async () => {
    await appendYoungerRun();
    const younger = folder.file("younger.json");
    await run("ledger", "anchor", younger, "--ledger", ledger);
    copyFileSync(sound, ledger);
    expect(await verify()).toMatchObject({ ok: true });
    const { problems } = await verify("--anchor", younger);
    expect(problems.map(({ kind }) => kind)).toEqual(["anchor_ledger_differs", "anchor_run_missing"]);
  });

  it("who puts another sound ledger in its place is found", async () => {
    const other = folder.file("other.sqlite");
    await recordLedger(other, [OPEN]);
    copyFileSync(other, ledger);
    expect(await verify()).toMatchObject({ ok: true });
    const { ok, problems } = await verify("--anchor", anchor);
    expect(ok).toBe(false);
    expect(problems.map(({ kind }) => kind)).toContain("anchor_ledger_differs");
    expect(problems.some(({ message }) => message.includes("another ledger"))).toBe(true);
  });
});

describe("whoever writes the anchor", () => {
  const change = (
    path: string,
    edit: (value: { heads: { hash: string }[]; events: number }) => void,
  ): string => {
    const value = JSON.parse(readFileSync(path, "utf8")) as { heads: { hash: string }[]; events: number };
    edit(value);
    const changed = folder.file("changed.json");
    writeFileSync(changed, JSON.stringify(value));
    return changed;
  };

  it("is found by the digest where only a run is changed", async () => {
    const changed = change(anchor, ({ heads }) => heads.pop());
    expect(await verify("--anchor", changed)).toMatchObject({
      exitCode: 1,
      error: {
        code: "INPUT_INVALID",
        message: expect.stringContaining("was changed after it was made") as string,
      },
    });
  });

  it("is found by the signature where anything is changed", async () => {
    const changed = change(signedAnchor, (value) => {
      value.events -= 1;
    });
    const { error } = await verify("--anchor", changed, "--public-key", `${key}.pub`);
    expect(error?.message).toContain("was changed after it was signed");
  });

  it("is found by the key where all is signed anew with another one", async () => {
    const forged = folder.file("forged.json");
    await run("ledger", "anchor", forged, "--ledger", ledger, "--sign", otherKey);
    const { error } = await verify("--anchor", forged, "--public-key", `${key}.pub`);
    expect(error?.message).toContain("is signed with another key");
  });

  it("is found by the missing signature where it was taken away", async () => {
    const { error } = await verify("--anchor", anchor, "--public-key", `${key}.pub`);
    expect(error?.message).toContain("is not signed");
  });
});
