import { createTestSchema } from "../support/postgres-server.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { describeLedgerStore } from "./ledger-store.suite.ts";

describeLedgerStore("PostgreSQL", async () => {
  const schema = await createTestSchema();
  return {
    open: (clock) => openTestPostgres(schema.url, { clock }),
    appendUnknownEvent: async (runId) => {
      // As a release does that knows the type: the run grows with its event.
      await schema.query(
        `with grown as (
           update run
           set length = length + 1
           where run_id = $1
           returning run_key, length
         )
         insert into event (event_key, run_key, sequence, type, timestamp_ms, payload, hash)
         select events + 1, run_key, length - 1, 'step.teleported', 0, '{}', decode(repeat('00', 32), 'hex')
         from grown, ledger_count`,
        [runId],
      );
    },
    [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose](),
  };
});
