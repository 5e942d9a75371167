/** Owns: copies of ledgers that are interrupted, whose source changes meanwhile, or whose target is not for them. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { migrateSchema } from "../../src/infra/sqlite/database/migrate.ts";
import { APPLICATION_ID } from "../../src/infra/sqlite/database/open-database.ts";
import {
  copyLedgerBetween,
  type CopyProgress,
  type LedgerCopy,
} from "../../src/plugins/copy-ledger-between.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { openRun, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { fillLedger } from "./filled-ledger.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import { createOlderLedger, createOlderServerLedger } from "./older-ledger.ts";
import { NOW } from "./workflow-store-tested.ts";

/** A source with something in every table, and an empty place for its copy. */
interface Scene extends AsyncDisposable {
  readonly from: string;
  readonly to: string;
}

type Kind = "file" | "server";

async function createScene(from: Kind, to: Kind): Promise<Scene> {
  await using created = new AsyncDisposableStack();
  const folder = created.use(createTempFolder());
  const createPlace = async (kind: Kind, name: string): Promise<string> =>
    kind === "file" ? folder.file(name) : created.use(await createTestSchema()).url;
  const places = { from: await createPlace(from, "from.sqlite"), to: await createPlace(to, "to.sqlite") };
  await change(places.from, (store) => fillLedger(store));
  const owned = created.move();
  return { ...places, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function change(place: string, work: (store: OpenedLedger) => Promise<unknown>): Promise<void> {
  const store = await openAnyLedger(place);
  await work(store);
  await store.close();
}

async function prune({ pruning }: OpenedLedger, name: string): Promise<void> {
  const page = await pruning.page({
    before: Number.MAX_SAFE_INTEGER,
    limit: 100,
    beforeMs: (NOW + 1) as EpochMs,
  });
  const { runs } = await pruning.remove(
    page.filter(({ runId }) => runId === runIdOf(name)),
    { newest: page[0]?.ordinal ?? 0, familyOf: (runId) => runId },
  );
  expect(runs).toBe(1);
}

const ignoreProgress = (): void => undefined;

function copy(
  { from, to }: Pick<Scene, "from" | "to">,
  onProgress: (progress: CopyProgress) => void = ignoreProgress,
): Promise<LedgerCopy> {
  const gateway = [from, to].some(isPostgresUrl) ? "home" : undefined;
  return copyLedgerBetween({ from, to, gateway }, onProgress);
}

/** Copies until this step, counted from 1, and no further. True when there was such a step. */
async function interruptCopy(scene: Pick<Scene, "from" | "to">, step: number): Promise<boolean> {
  const interruption = new CoordinationError("LEDGER_CLOSED", "interrupted");
  let steps = 0;
  try {
    await copy(scene, () => {
      steps += 1;
      if (steps === step) throw interruption;
    });
    return false;
  } catch (error) {
    if (error !== interruption) throw error;
    return true;
  }
}

/** A second copy compares all rows of both. */
async function expectEqual({ from, to }: Pick<Scene, "from" | "to">): Promise<void> {
  using folder = createTempFolder();
  const files = [folder.file("from"), folder.file("to")] as const;
  const [expected, actual] = [await copy({ from, to: files[0] }), await copy({ from: to, to: files[1] })];
  expect(actual).toEqual(expected);
  const store = await openAnyLedger(to);
  expect(await store.inspect()).toEqual([]);
  await fillLedger(store, "later");
  expect(await store.inspect()).toEqual([]);
  await store.close();
}

/** With the step at which the first try is interrupted. */
const DIRECTIONS: readonly [Kind, Kind, number][] = [
  ["file", "server", 1],
  ["server", "file", 2],
  ["file", "file", 3],
  ["server", "server", 4],
];

describe.each(DIRECTIONS)("a copy from a %s to a %s", (fromKind, toKind, firstStep) => {
  it("that is interrupted again and again goes on where it was, and nobody else opens it until then", async () => {
    await using scene = await createScene(fromKind, toKind);
    let step = firstStep;
    while (await interruptCopy(scene, step)) {
      for (const mode of ["read", "write"] as const)
        await expect(openAnyLedger(scene.to, { mode })).rejects.toMatchObject({ code: "LEDGER_INCOMPLETE" });
      step += DIRECTIONS.length;
    }
    // One step for each table at least, and one on each side when they are compared.
    expect(step).toBeGreaterThan(28);
    await expectEqual(scene);
  });

  it("takes what was appended between two tries, what was changed and what was removed", async () => {
    await using scene = await createScene(fromKind, toKind);
    expect(await interruptCopy(scene, 25)).toBe(true);
    await change(scene.from, async (store) => {
      await fillLedger(store, "between");
      await store.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs);
      await store.workflows.requests.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs, 1);
      await store.workflows.memory.deleteExpired((TEST_EPOCH_MS + 10) as EpochMs, 10);
    });
    const made = await copy(scene);
    expect(made.isResumed).toBe(true);
    expect(made.grownBy).toBeGreaterThan(0);
    await expectEqual(scene);
  });

  it("takes changes between two tries that brought no event", async () => {
    await using scene = await createScene(fromKind, toKind);
    // All tables are there, and the comparison has begun.
    expect(await interruptCopy(scene, 20)).toBe(true);
    await change(scene.from, async (store) => {
      await store.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs);
      await store.workflows.requests.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs, 1);
    });
    expect(await copy(scene)).toMatchObject({ isResumed: true, grownBy: 0 });
    await expectEqual(scene);
  });

  it("is not completed while its source is written to, and goes on afterwards", async () => {
    await using scene = await createScene(fromKind, toKind);
    const writer = await openAnyLedger(scene.from);
    const { author, request } = openRun("meanwhile");
    await writer.append(request);
    let pending: Promise<unknown> | undefined;
    const changing = copy(scene, () => {
      pending ??= writer.append(author.append(spawnOf("meanwhile")));
    });
    await expect(changing).rejects.toMatchObject({
      code: "LEDGER_BUSY",
      message: expect.stringContaining("run the same command again") as string,
    });
    await pending;
    await writer.close();
    await expect(openAnyLedger(scene.to)).rejects.toMatchObject({ code: "LEDGER_INCOMPLETE" });
    expect((await copy(scene)).isResumed).toBe(true);
    await expectEqual(scene);
  });

  it.each([
    ["its first run", "first"],
    ["a run between others", "ended-one"],
  ])("cannot go on where its source was pruned of %s since, and says so", async (_what, name) => {
    await using scene = await createScene(toKind, fromKind);
    await using target = await createScene(fromKind, toKind);
    // The place of the one that is still empty.
    const copied = { from: scene.to, to: target.to };
    await change(copied.from, async (store) => {
      const { author, request } = openRun("first");
      await store.append(request);
      await store.append(appendEnd(author));
      await fillLedger(store);
    });
    expect(await interruptCopy(copied, 3)).toBe(true);
    await change(copied.from, (store) => prune(store, name));
    await expect(copy(copied)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(/was pruned since .+ copy into an empty place$/u) as string,
    });
    using folder = createTempFolder();
    expect((await copy({ from: copied.from, to: folder.file("fresh") })).isResumed).toBe(false);
  });

  it("cannot be appended to by a process that had opened the empty place before", async () => {
    await using scene = await createScene(fromKind, toKind);
    const store = await openAnyLedger(scene.to);
    expect(await interruptCopy(scene, 1)).toBe(true);
    await expect(store.append(openRun("early").request)).rejects.toThrow(
      "a copy that has not been completed",
    );
    await store.close();
    await copy(scene);
    await expectEqual(scene);
  });

  it("goes into no ledger that has something, and into no copy of another ledger", async () => {
    await using scene = await createScene(fromKind, toKind);
    await using other = await createScene(fromKind, toKind);
    await change(other.from, (store) => store.append(openRun("other").request));
    await expect(copy({ from: scene.from, to: other.from })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("not empty") as string,
    });
    await using foreign = await createScene("file", "file");
    await change(foreign.to, (store) => store.append(openRun("of another").request));
    expect(await interruptCopy(scene, 3)).toBe(true);
    await expect(copy({ from: foreign.to, to: scene.to })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("does not begin with the same events") as string,
    });
    await copy(scene);
    // A complete copy is a ledger like any other.
    await expect(copy(scene)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expectEqual(scene);
  });
});

describe("a copy", () => {
  it("has a source: where there is none, and where it is a half copy, nothing is created", async () => {
    using folder = createTempFolder();
    const to = folder.file("to.sqlite");
    await expect(copy({ from: folder.file("none"), to })).rejects.toMatchObject({ code: "LEDGER_NOT_FOUND" });
    await using scene = await createScene("file", "file");
    await interruptCopy(scene, 2);
    await expect(copy({ from: scene.to, to })).rejects.toMatchObject({ code: "LEDGER_INCOMPLETE" });
    await expect(copy({ from: scene.from, to: scene.from })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    const older = createOlderLedger(folder, 4);
    older.database.close();
    await expect(copy({ from: older.path, to })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("schema 4 of an older release") as string,
    });
    expect(existsSync(to)).toBe(false);
  });

  it("leaves a ledger of an older release that is not empty as it is", async () => {
    await using scene = await createScene("file", "file");
    using folder = createTempFolder();
    const older = createOlderLedger(folder, 4);
    older.database.close();
    chmodSync(older.path, 0o644);
    const before = readFileSync(older.path);
    await expect(copy({ from: scene.from, to: older.path })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("not empty") as string,
    });
    expect(readFileSync(older.path).equals(before)).toBe(true);
    expect(statSync(older.path).mode & 0o777).toBe(0o644);
  });

  it("leaves a ledger of an older release on a server as it is where that is not empty", async () => {
    await using scene = await createScene("file", "file");
    await using schema = await createTestSchema();
    await createOlderServerLedger(schema, 1);
    await schema.query("insert into content values ($1, 0, 'theirs')", ["0".repeat(64)]);
    await expect(copy({ from: scene.from, to: schema.url })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("not empty") as string,
    });
    expect(await schema.query("select number from migration")).toEqual([{ number: 1 }]);
  });

  it("goes into an empty file, and into an empty ledger of an older release", async () => {
    await using scene = await createScene("file", "file");
    writeFileSync(scene.to, "");
    await copy(scene);
    await expectEqual(scene);
    using folder = createTempFolder();
    const to = folder.file("older.sqlite");
    const older = new Database(to);
    migrateSchema(older, { path: to, applicationId: APPLICATION_ID, version: 4 });
    older.close();
    await copy({ from: scene.from, to });
    await expectEqual({ from: scene.from, to });
  });

  it("goes into no file and no schema of another program", async () => {
    await using scene = await createScene("file", "file");
    using folder = createTempFolder();
    const text = folder.file("notes.txt");
    writeFileSync(text, "mine ".repeat(100));
    await expect(copy({ from: scene.from, to: text })).rejects.toMatchObject({ code: "LEDGER_CORRUPT" });
    await using schema = await createTestSchema();
    await schema.query("create table theirs (id integer)");
    await expect(copy({ from: scene.from, to: schema.url })).rejects.toMatchObject({
      code: "LEDGER_CORRUPT",
      message: expect.stringContaining("tables of another program") as string,
    });
  });

  it("says so where something else wrote to its target, and does not complete it", async () => {
    await using scene = await createScene("file", "file");
    expect(await interruptCopy(scene, 14)).toBe(true);
    const database = new Database(scene.to);
    database.exec("drop trigger event_no_update; update event set payload = '{}' where event_key = 1");
    database.close();
    await expect(copy(scene)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("(event)") as string,
    });
    await expect(openAnyLedger(scene.to)).rejects.toMatchObject({ code: "LEDGER_INCOMPLETE" });
  });

  it("names its source without the password", async () => {
    await using scene = await createScene("server", "file");
    const { password } = new URL(scene.from);
    expect(await interruptCopy(scene, 1)).toBe(true);
    const refusal = await openAnyLedger(scene.to).catch((error: unknown) => error as Error);
    expect(refusal).toMatchObject({
      message: expect.stringMatching(/is a copy of postgres:\/\//u) as string,
    });
    expect(JSON.stringify(refusal) + (refusal as Error).message).not.toContain(password);
  });
});
