import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { describeLedgerQueries } from "./ledger-queries.suite.ts";

describeLedgerQueries("PostgreSQL", async () => {
  const schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await schema[Symbol.asyncDispose]();
    },
  };
});
