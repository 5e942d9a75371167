/**
 * Copies of a ledger that is written all the while, by its own backup and by SQLite's `vacuum into`, which OpenClaw's backup uses: each
 * verifies, and has all that was acknowledged before the copy began. `BACKUP_ROUNDS` sets how many.
 */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { backUpLedger } from "../../src/infra/sqlite/back-up-ledger.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

const ROUNDS = chooseCampaignSize("BACKUP_ROUNDS", { short: 16, long: 200 });
const WRITERS = 4;
const STEPS_EACH = 3;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VACUUM = `
  const database = require("better-sqlite3")(process.argv[1], { timeout: 5000 });
  database.prepare("vacuum into ?").run(process.argv[2]);
`;

type Copy = (path: string, target: string) => Promise<unknown>;

const COPIES: readonly (readonly [name: string, copy: Copy])[] = [
  [
    "the ledger's own backup",
    (path, target) => backUpLedger({ path, target, busyTimeoutMs: 5_000, onProgress: () => undefined }),
  ],
  [
    "vacuum into",
    // In a process of its own, as the host is.
    (path, target) => promisify(execFile)(process.execPath, ["-e", VACUUM, path, target], { cwd: ROOT }),
  ],
];

interface Load {
  /** How many events of each run were acknowledged. */
  readonly lengths: ReadonlyMap<CoordinationId, number>;
  stop(): Promise<void>;
}

/** Opens runs and lets each grow, over and over. */
function putLoadOn(store: SqliteLedger): Load {
  const lengths = new Map<CoordinationId, number>();
  let isStopped = false;
  const write = async (writer: number): Promise<void> => {
    for (let run = 0; !isStopped; run += 1) {
      const { author, request } = openRun(`${writer}-${run}`);
      await store.append(request);
      lengths.set(author.runId, author.state.nextSequence);
      for (let step = 0; step < STEPS_EACH; step += 1) {
        await store.append(author.append(spawnOf(`call-${writer}-${run}-${step}`)));
        lengths.set(author.runId, author.state.nextSequence);
      }
    }
  };
  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  return {
    lengths,
    stop: async () => {
      isStopped = true;
      await writing;
    },
  };
}

async function listLosses(
  target: string,
  acknowledged: ReadonlyMap<CoordinationId, number>,
): Promise<string[]> {
  const copy = await openTestLedger(target, { mode: "read" });
  try {
    const { problems } = await verifyLedger(copy);
    const losses = problems.map((problem) => JSON.stringify(problem));
    for (const [runId, length] of acknowledged) {
      const found = (await copy.entry(runId))?.length ?? 0;
      if (found < length) losses.push(`${runId} has ${found} events of ${length}`);
    }
    return losses;
  } finally {
    await copy.close();
  }
}

it.each(COPIES)(
  `%s of a ledger under load has all that was acknowledged (${ROUNDS} rounds)`,
  { timeout: 3_600_000 },
  async (_, copy) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const load = putLoadOn(store);
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        const target = folder.file(`copy-${round}.sqlite`);
        const acknowledged = new Map(load.lengths);
        await copy(path, target);
        expect(await listLosses(target, acknowledged), `round ${round}`).toEqual([]);
        rmSync(target);
      }
      expect(load.lengths.size).toBeGreaterThan(ROUNDS);
    } finally {
      await load.stop();
      await store.close();
    }
  },
);
