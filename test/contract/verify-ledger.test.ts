import { readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import {
  answersOf,
  buildLedger,
  flipBitAt,
  forge,
  readKnown,
  placesOf,
  rehashRun,
  verify,
} from "../support/ledger-fixtures-damage.ts";
import { createRandom } from "../support/random.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";

const folder = createTempFolder();
const intact = folder.file("intact.sqlite");
const damaged = folder.file("damaged.sqlite");
let whole: Buffer;

beforeAll(async () => {
  await buildLedger(intact);
  whole = readFileSync(intact);
});

afterAll(() => folder[Symbol.dispose]());

async function verifyForged(damage: Parameters<typeof forge>[1]): Promise<Verification> {
  writeFileSync(damaged, whole);
  forge(damaged, damage);
  return verify(damaged);
}

/** The newest of the run's events. */
function lastOf(runId: CoordinationId): number {
  const database = new Database(intact, { readonly: true });
  const length = database
    .prepare<[string], number>("select length from run where run_id = ?")
    .pluck()
    .get(runId);
  database.close();
  return (length ?? 0) - 1;
}

/** The share of a file's bytes in which something is written. */
function measureUsedShare(file: string): number {
  const database = new Database(file, { readonly: true });
  const share = database
    .prepare<[], number>("select 1.0 - sum(unused) * 1.0 / sum(pgsize) from dbstat")
    .pluck()
    .get();
  database.close();
  return share ?? 1;
}

describe("a ledger that nobody touched", () => {
  it("is found in order, with all its coordinations and events", async () => {
    const places = placesOf(intact);
    expect(await verify(intact)).toEqual({ ok: true, coordinations: 4, events: places.length, problems: [] });
    expect(places.length).toBeGreaterThan(60);
  });

  it("is found in order again after a forger's tools ran without forging anything", async () => {
    expect(await verifyForged("select 1")).toMatchObject({ ok: true });
    expect(await verifyForged((database) => rehashRun(database, runIdOf(1)))).toMatchObject({ ok: true });
  });

  it("is found in order after its texts were deleted", async () => {
    writeFileSync(damaged, whole);
    const store = await openTestLedger(damaged);
    expect(await store.deleteBefore(Number.MAX_SAFE_INTEGER as never)).toBeGreaterThan(5);
    await store.close();
    expect(await verify(damaged)).toMatchObject({ ok: true });
  });
});

describe("a flipped bit", () => {
  const FLIPS_IN_EVENTS = 300;
  const FLIPS_ANYWHERE = 300;

  it("in any value of any event is reported at that event", { timeout: 60_000 }, async () => {
    const random = createRandom(20_261_122);
    const places = placesOf(intact);
    for (let flip = 0; flip < FLIPS_IN_EVENTS; flip += 1) {
      const place = places[Math.floor(random() * places.length)]!;
      const at = place.from + Math.floor(random() * place.length);
      const bit = Math.floor(random() * 8);
      flipBitAt(damaged, whole, { at, bit });
      const { ok, problems } = await verify(damaged);
      const { runId, sequence } = place;
      expect({ at, bit, ok }).toEqual({ at, bit, ok: false });
      expect(problems).toContainEqual(expect.objectContaining({ runId, sequence }));
    }
  });

  it(
    "anywhere in the file is reported, unless it changes no answer of the ledger",
    { timeout: 60_000 },
    async () => {
      const random = createRandom(7);
      const knownLedger = readKnown(intact);
      const answers = await answersOf(intact, knownLedger);
      let reported = 0;
      for (let flip = 0; flip < FLIPS_ANYWHERE; flip += 1) {
        const at = Math.floor(random() * whole.length);
        const bit = Math.floor(random() * 8);
        flipBitAt(damaged, whole, { at, bit });
        const noticed = await verify(damaged).then(
          ({ ok }) => !ok,
          () => true,
        );
        if (noticed) reported += 1;
        else
          expect({ at, bit, answers: await answersOf(damaged, knownLedger) }).toEqual({ at, bit, answers });
      }
      const share = reported / FLIPS_ANYWHERE;
      process.stdout.write(`flipped bits anywhere in the file: ${(share * 100).toFixed(1)} % reported\n`);
      // The rest lies in unused bytes of pages, of which a table without rows has a whole page.
      expect(share / measureUsedShare(intact)).toBeGreaterThan(0.9);
    },
  );
});

describe("damage to the events", () => {
  const first = runIdOf(1);
  const second = runIdOf(2);
  const selectRun = (runId: CoordinationId): string =>
    `run_key = (select run_key from run where run_id = '${runId}')`;
  const selectEvent = (runId: CoordinationId, sequence: number): string =>
    `${selectRun(runId)} and sequence = ${sequence}`;

  const places: readonly [string, string, Partial<StoredProblem>][] = [
    [
      "a changed payload",
      `update event set payload = replace(payload, 'step-1', 'step-2') where ${selectEvent(first, 3)}`,
      { kind: "event_changed", runId: first, sequence: 3 },
    ],
    [
      "a changed type",
      `update event set type = 'step.completed' where ${selectEvent(first, 4)}`,
      { kind: "event_changed", runId: first, sequence: 4 },
    ],
    [
      "a changed time",
      `update event set timestamp_ms = timestamp_ms + 1 where ${selectEvent(first, 5)}`,
      { kind: "event_changed", runId: first, sequence: 5 },
    ],
    [
      "a changed node",
      `update event set node_id = null where ${selectEvent(first, 4)}`,
      { kind: "event_changed", runId: first, sequence: 4 },
    ],
    [
      "a changed cause",
      `update event set causation_id = 'co-1:0' where ${selectEvent(first, 6)}`,
      { kind: "event_changed", runId: first, sequence: 6 },
    ],
    [
      "a changed hash",
      `update event set hash = zeroblob(32) where ${selectEvent(first, 7)}`,
      { kind: "event_changed", runId: first, sequence: 7 },
    ],
    [
      "an event removed from the middle",
      `delete from event where ${selectEvent(first, 8)}`,
      { kind: "event_missing", runId: first, sequence: 8 },
    ],
    [
      "the first event removed",
      `delete from event where ${selectEvent(first, 0)}`,
      { kind: "event_missing", runId: first, sequence: 0 },
    ],
    [
      "several events removed",
      `delete from event where ${selectRun(first)} and sequence between 4 and 9`,
      { kind: "event_missing", runId: first, sequence: 4 },
    ],
    [
      "two events swapped",
      `update event set sequence = 1000 where ${selectEvent(second, 4)};
       update event set sequence = 4 where ${selectEvent(second, 6)};
       update event set sequence = 6 where ${selectEvent(second, 1000)}`,
      { kind: "event_changed", runId: second, sequence: 4 },
    ],
    [
      "an event removed and the rest moved up",
      `delete from event where ${selectEvent(second, 5)};
       update event set sequence = sequence - 1 where ${selectRun(second)} and sequence > 5;
       update run set length = length - 1 where run_id = '${second}'`,
      { kind: "event_changed", runId: second, sequence: 5 },
    ],
    [
      "an event moved to another run",
      `update event set run_key = (select run_key from run where run_id = 'co-4'), sequence = 1000 where ${selectEvent(second, 5)}`,
      { kind: "event_missing", runId: second, sequence: 5 },
    ],
    [
      "a run renamed",
      `update run set run_id = 'co-x' where run_id = '${second}'`,
      { kind: "event_changed", runId: "co-x", sequence: 0 },
    ],
  ];

  it.each(places)("is reported at its place: %s", async (_, sql, problem) => {
    const { ok, problems } = await verifyForged(sql);
    expect(ok).toBe(false);
    expect(problems).toContainEqual(expect.objectContaining(problem));
  });

  it("is reported where the last event was removed, with and without the run's length", async () => {
    const sequence = lastOf(first);
    const remove = `delete from event where ${selectEvent(first, sequence)};`;
    expect((await verifyForged(remove)).problems).toContainEqual(
      expect.objectContaining({ kind: "event_missing", runId: first, sequence }),
    );
    const shorten = `${remove} update run set length = length - 1 where run_id = '${first}'`;
    expect((await verifyForged(shorten)).problems).toContainEqual(
      expect.objectContaining({ kind: "event_changed", runId: first, sequence: sequence - 1 }),
    );
  });

  it("is reported where the last event was removed by someone who knows the hash", async () => {
    const { problems } = await verifyForged((database) => {
      database.exec(`delete from event where ${selectEvent(runIdOf(4), lastOf(runIdOf(4)))}`);
      rehashRun(database, runIdOf(4));
    });
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_missing" }));
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "projection_differs", runId: "co-4", sequence: lastOf(runIdOf(4)) }),
    );
  });

  it.each([2, 4])(
    "is reported where the whole of run %i was removed, with all that was beside it",
    async (number) => {
      const { ok, problems } = await verifyForged((database) => {
        const key = database.prepare("select run_key from run where run_id = ?").pluck().get(runIdOf(number));
        for (const table of ["event", "reference", "claim", "run"])
          database.prepare(`delete from ${table} where run_key = ?`).run(key);
      });
      expect(ok).toBe(false);
      expect(problems.map(({ kind }) => kind)).toContain("event_missing");
      if (number === 2)
        expect(problems).toContainEqual(
          expect.objectContaining({ message: "between run number 1 and 3, all are missing" }),
        );
    },
  );

  it("is reported where a run was removed and left its references", async () => {
    const { problems } = await verifyForged(
      `delete from event where ${selectRun(second)}; delete from run where run_id = '${second}'`,
    );
    expect(problems.map(({ kind }) => kind)).toContain("index_differs");
  });
});

describe("a forged event", () => {
  const runId = runIdOf(2);
  /** A completion that never was, at the end of a run or in its middle. */
  const insert = (database: Database.Database, sequence: number): void => {
    const runKey = database.prepare("select run_key from run where run_id = ?").pluck().get(runId);
    database
      .prepare("update event set sequence = sequence + 1000 where run_key = ? and sequence >= ?")
      .run(runKey, sequence);
    database
      .prepare("update event set sequence = sequence - 999 where run_key = ? and sequence >= 1000")
      .run(runKey);
    database
      .prepare(
        `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
         values (?, ?, 'step.completed', 1767323045678, 'step-1', ?, ?, zeroblob(32))`,
      )
      .run(runKey, sequence, `${runId}:3`, JSON.stringify({ stepId: "step-1", attempt: 1, via: "hook" }));
  };

  it("at the end is reported at its place", async () => {
    const sequence = lastOf(runId) + 1;
    const { problems } = await verifyForged((database) => insert(database, sequence));
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_forged", runId, sequence }));
  });

  it("at the end, put in without dropping a trigger, is reported at its place", async () => {
    writeFileSync(damaged, whole);
    const database = new Database(damaged);
    insert(database, lastOf(runId) + 1);
    database.close();
    const { problems } = await verify(damaged);
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "event_forged", runId, sequence: lastOf(runId) + 1 }),
    );
  });

  it("in the middle is reported at its place", async () => {
    const { problems } = await verifyForged((database) => insert(database, 9));
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_changed", runId, sequence: 9 }));
  });

  it("with the right hashes is reported by what it should have brought with it", async () => {
    const sequence = lastOf(runId) + 1;
    const { problems } = await verifyForged((database) => {
      insert(database, sequence);
      rehashRun(database, runId);
    });
    expect(problems.map(({ kind }) => kind)).toEqual(["projection_differs", "index_differs"]);
    expect(problems[0]).toMatchObject({ runId, sequence: sequence + 1 });
  });

  it("in the middle with the right hashes is reported by what it should have brought with it", async () => {
    const { problems } = await verifyForged((database) => {
      insert(database, 9);
      rehashRun(database, runId);
    });
    expect(problems[0]).toMatchObject({ runId });
    expect(problems[0]?.sequence).toBeGreaterThanOrEqual(9);
  });

  it("of OpenWOP that follows from no fact is reported at its place, right hash or not", async () => {
    const { problems } = await verifyForged((database) => {
      const sequence = lastOf(runId) + 1;
      insert(database, sequence);
      database
        .prepare(
          "update event set type = 'run.completed', payload = '{}', node_id = null where type = 'step.completed' and run_key = (select run_key from run where run_id = ?)",
        )
        .run(runId);
      rehashRun(database, runId);
    });
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "projection_differs", runId, sequence: lastOf(runId) + 1 }),
    );
  });

  it("that changes a fact, with the right hashes, is reported by the projection behind it", async () => {
    const { problems } = await verifyForged((database) => {
      database.exec(
        "update event set payload = replace(payload, 'host-d', 'host-x') where type = 'step.acknowledged'",
      );
      rehashRun(database, runId);
    });
    expect(problems).toContainEqual(expect.objectContaining({ kind: "projection_differs", runId }));
  });

  it("that carries the right hash itself is reported at the event behind it, which hangs on the old one", async () => {
    const { problems } = await verifyForged((database) => {
      const before = database
        .prepare<[string], { event_key: number; hash: Buffer }>(
          "select event_key, hash from event join run using (run_key) where run_id = ? order by sequence",
        )
        .all(runId);
      database
        .prepare("update event set payload = replace(payload, '}', ' }') where event_key = ?")
        .run(before[6]?.event_key);
      rehashRun(database, runId);
      for (const { event_key: key, hash } of before.slice(7))
        database.prepare("update event set hash = ? where event_key = ?").run(hash, key);
      database.prepare("update run set head_hash = ? where run_id = ?").run(before.at(-1)?.hash, runId);
    });
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_changed", runId, sequence: 7 }));
  });

  it("is also one that is not there: a fact without its counterpart is reported where that is missing", async () => {
    const { problems } = await verifyForged((database) => {
      const runKey = database.prepare("select run_key from run where run_id = ?").pluck().get(runId);
      database.prepare("delete from event where run_key = ? and sequence = 1").run(runKey);
      database
        .prepare("update event set sequence = sequence - 1 where run_key = ? and sequence > 1")
        .run(runKey);
      rehashRun(database, runId);
    });
    expect(problems).toContainEqual({
      kind: "projection_differs",
      message: "L5: run.started is missing before co-2:1 (step.admitted)",
      runId,
      sequence: 1,
    });
  });

  it("of an unknown type, with the right hashes, is reported as unreadable", async () => {
    const { problems } = await verifyForged((database) => {
      database.exec("update event set type = 'step.teleported' where event_key = 4");
      rehashRun(database, runIdOf(1));
    });
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_unreadable", runId: "co-1" }));
  });
});
