/** Owns: that what the triggers check costs the same however long the ledger is. */
import pg from "pg";
import { expect, it } from "vitest";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";

const RUNS = 20;

it.each([
  ["was empty", "select 1"],
  ["had few events", "analyze event, run"],
])("events are checked by index in a session that began when the ledger %s", async (_, prepare) => {
  await using schema = await createTestSchema();
  await (await openTestPostgres(schema.url)).close();
  // One session: the server keeps its plans.
  const client = new pg.Client({ connectionString: schema.url });
  await client.connect();
  await client.query(
    `insert into run (run_key, run_id, kind, length, head_hash, ended, summary)
     select number, 'r' || number, 'coordination', 100, decode(repeat('00', 32), 'hex'), 0, '{}'
     from generate_series(1, ${RUNS}) as number`,
  );
  const appendToEach = (sequence: number) =>
    client.query(
      `insert into event (event_key, run_key, sequence, type, timestamp_ms, payload, hash)
       select ${RUNS * sequence} + number, number, ${sequence}, 't', 0, '{}', decode(repeat('00', 32), 'hex')
       from generate_series(1, ${RUNS}) as number`,
    );
  for (let sequence = 0; sequence < 3; sequence += 1) await appendToEach(sequence);
  await client.query(prepare);
  for (let sequence = 3; sequence < 6; sequence += 1) await appendToEach(sequence);
  await client.query("begin");
  await appendToEach(6);
  const { rows } = await client.query(
    `select relname, seq_scan
     from pg_stat_xact_user_tables
     where schemaname = current_schema() and relname in ('event', 'run')
     order by relname`,
  );
  await client.query("rollback");
  await client.end();
  expect(rows).toEqual([
    { relname: "event", seq_scan: "0" },
    { relname: "run", seq_scan: "0" },
  ]);
});

it.each([
  ["behind a gap", "(41, 1, 3)"],
  ["with a gap between them", "(41, 1, 2), (42, 1, 4)"],
  ["at a place that is taken", "(41, 1, 1)"],
  ["before the first", "(41, 1, -1)"],
  ["behind the length of their run", "(41, 2, 2), (42, 2, 3), (43, 2, 4)"],
  ["of a run that is not there", "(41, 77, 0)"],
  ["of one run in order beside those of another behind a gap", "(41, 1, 2), (42, 2, 3)"],
  ["with numbers behind a gap", "(42, 1, 2)"],
])("events are refused %s", async (_, places) => {
  await using schema = await createTestSchema();
  await (await openTestPostgres(schema.url)).close();
  await schema.query(
    `insert into run (run_key, run_id, kind, length, head_hash, ended, summary)
     select number, 'r' || number, 'coordination', 4, decode(repeat('00', 32), 'hex'), 0, '{}'
     from generate_series(1, 20) as number`,
  );
  const append = (values: string) =>
    schema.query(
      `insert into event (event_key, run_key, sequence, type, timestamp_ms, payload, hash)
       select event_key, run_key, sequence, 't', 0, '{}', decode(repeat('00', 32), 'hex')
       from (${values}) as added (event_key, run_key, sequence)`,
    );
  await append(
    "select 2 * run_key + sequence - 1, run_key, sequence from generate_series(1, 20) as run_key, generate_series(0, 1) as sequence",
  );
  await expect(append(`values ${places}`)).rejects.toMatchObject({
    code: expect.stringMatching(/^23/u) as string,
  });
  await append("values (41, 2, 2), (42, 1, 2), (43, 2, 3)");
});
