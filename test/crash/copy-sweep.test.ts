/** Owns: that a copy of a ledger whose process is killed at any moment is gone on with, and ends with equal rows. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { fillLedger } from "../contract/filled-ledger.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { createRandom } from "../support/random.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

/** `COPY_KILLS=1000` for a night. */
const KILLS = chooseCampaignSize("COPY_KILLS", { short: 12, long: 100 });
const TEST_TIMEOUT_MS = 120_000 + KILLS * 5_000;
/** Several batches of events. */
const RUNS = 2_500;
/** A process is killed after so many batches at most, and then so many milliseconds later at most. */
const BATCHES_MAX = 30;
const DELAY_MS_MAX = 25;

const program = fileURLToPath(new URL("copy-process.ts", import.meta.url));

/** Returns what the process printed last where it completed the copy; `undefined` where it was killed. */
async function copyAndKill(
  from: string,
  to: string,
  { afterBatches, delayMs }: { readonly afterBatches: number; readonly delayMs: number },
): Promise<string | undefined> {
  const child = spawn(process.execPath, [program, from, to], { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  let killing: NodeJS.Timeout | undefined;
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
    if (printed.split("\n").length > afterBatches)
      killing ??= setTimeout(() => child.kill("SIGKILL"), delayMs);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  clearTimeout(killing);
  expect(code === 0 || signal === "SIGKILL").toBe(true);
  return /^completed (?<result>.*)$/mu.exec(printed)?.groups?.["result"];
}

async function isHalf(place: string): Promise<boolean> {
  try {
    await (await openAnyLedger(place, { mode: "read" })).close();
    return false;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    expect(["LEDGER_INCOMPLETE", "LEDGER_NOT_FOUND"]).toContain(code);
    return true;
  }
}

interface Target {
  readonly place: string;
  /** Removes what is there, so that the next copy begins anew. */
  removeAll(): Promise<void>;
}

async function sweep(from: string, target: Target, seed: number): Promise<void> {
  const random = createRandom(seed);
  using folder = createTempFolder();
  const { sha256 } = await hashRows(from, folder.file("expected"));
  let kills = 0;
  let completions = 0;
  while (kills < KILLS || completions === 0) {
    const isLast = kills >= KILLS;
    const afterBatches = isLast ? Number.POSITIVE_INFINITY : Math.floor(random() * BATCHES_MAX);
    const result = await copyAndKill(from, target.place, { afterBatches, delayMs: random() * DELAY_MS_MAX });
    if (result === undefined) kills += 1;
    // A process may be killed between its last transaction and its last line.
    if (await isHalf(target.place)) continue;
    completions += 1;
    const store = await openAnyLedger(target.place);
    expect(await store.inspect()).toEqual([]);
    await store.close();
    expect((await hashRows(target.place, folder.file(`copy-${completions}`))).sha256).toBe(sha256);
    await target.removeAll();
  }
  expect(kills).toBeGreaterThanOrEqual(KILLS);
}

/** A copy into a file compares all rows; its hash is over the heads of all runs. */
async function hashRows(place: string, file: string): Promise<{ readonly sha256: string }> {
  const gateway = isPostgresUrl(place) ? "home" : undefined;
  const { headsSha256, tables } = await copyLedgerBetween(
    { from: place, to: file, gateway },
    () => undefined,
  );
  return { sha256: `${headsSha256} ${JSON.stringify(tables)}` };
}

async function fillSource(place: string): Promise<void> {
  const store = await openAnyLedger(place);
  await fillLedger(store);
  await Promise.all(Array.from({ length: RUNS }, (_, index) => store.append(openRun(index).request)));
  await store.close();
}

it(
  `a copy from a file to a server that is killed ${KILLS} times ends with equal rows`,
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await fillSource(from);
    const name = new URL(schema.url).searchParams.get("options")?.split("=")[1] ?? "";
    const removeAll = async (): Promise<void> => {
      await schema.query(`drop schema ${name} cascade`);
      await schema.query(`create schema ${name}`);
    };
    await sweep(from, { place: schema.url, removeAll }, 1);
  },
);

it(
  `a copy from a server to a file that is killed ${KILLS} times ends with equal rows`,
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    await fillSource(schema.url);
    const place = folder.file("to.sqlite");
    const removeAll = (): Promise<void> => {
      for (const end of ["", "-wal", "-shm"]) rmSync(`${place}${end}`, { force: true });
      return Promise.resolve();
    };
    await sweep(schema.url, { place, removeAll }, 2);
  },
);
