import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import type { PostgresDatabase } from "../database/connect.ts";

export function inspectDatabase(_database: PostgresDatabase): Promise<StoredProblem[]> {
  return Promise.resolve([]);
}
