/** Owns: the SQL of the claims, prepared once per connection. */
import type { Database, Statement } from "better-sqlite3";
import type { ClaimHolder, ClaimRow } from "../../ledger/claim-rows.ts";

/** The names that a claim overlaps: those of a JSON array, and a range. */
export interface ReachValues {
  readonly names: string;
  readonly from: string;
  readonly before: string;
}

/** Not on schemas before `CLAIMS_SINCE_VERSION`. */
export interface ClaimReads {
  readonly newest: Statement<[], number>;
  readonly overlapping: Statement<
    [ReachValues & { readonly atMs: number; readonly limit: number }],
    ClaimRow
  >;
  readonly all: Statement<[after: number, limit: number], ClaimRow>;
  readonly ofRun: Statement<[runId: string, after: number, limit: number], ClaimRow>;
}

export interface ClaimWrites {
  readonly newest: Statement<[], number>;
  readonly holder: Statement<[token: number], ClaimHolder>;
  readonly acquire: Statement<[ClaimValues]>;
  readonly renew: Statement<[expiresAtMs: number, token: number]>;
  readonly release: Statement<[token: number]>;
}

export interface ClaimValues {
  readonly token: number;
  readonly resource: string;
  readonly runKey: number;
  readonly stepId: string;
  readonly priority: string;
  readonly acquiredAtMs: number;
  readonly expiresAtMs: number;
}

/** The schema that has claims. */
export const CLAIMS_SINCE_VERSION = 3;

const COLUMNS = "token, resource, run_id, step_id, priority, acquired_at_ms, expires_at_ms";

function prepareNewestToken(database: Database): Statement<[], number> {
  return database.prepare<[], number>("select newest from claim_token").pluck();
}

/** Prepares the SQLite statements that read claims. */
export function prepareClaimReads(database: Database): ClaimReads {
  return {
    newest: prepareNewestToken(database),
    // From the index alone first, and only the rows of those that are answered. `+` hides the names from the query planner
    // as in `find`.
    overlapping: database.prepare<[ReachValues & { atMs: number; limit: number }], ClaimRow>(
      `select ${COLUMNS}
       from claim
       join run using (run_key)
       where token in (
         select min(token) as earliest
         from (
           select token, run_key, step_id
           from claim
           where resource in (select value from json_each(@names)) and expires_at_ms > +@atMs
           union all
           select token, run_key, step_id
           from claim
           where resource >= +@from and resource < +@before and expires_at_ms > +@atMs
         )
         group by run_key, step_id
         order by earliest
         limit @limit
       )
       order by token`,
    ),
    all: database.prepare<[number, number], ClaimRow>(
      `select ${COLUMNS}
       from claim
       join run using (run_key)
       where token > ?
       order by token
       limit ?`,
    ),
    ofRun: database.prepare<[string, number, number], ClaimRow>(
      `select ${COLUMNS}
       from claim
       join run using (run_key)
       where run_key = (select run_key from run where run_id = ?) and token > ?
       order by token
       limit ?`,
    ),
  };
}

/** Prepares the SQLite statements with which an append checks and changes claims. */
export function prepareClaimWrites(database: Database): ClaimWrites {
  return {
    newest: prepareNewestToken(database),
    holder: database.prepare<[number], ClaimHolder>(
      "select run_id, expires_at_ms from claim join run using (run_key) where token = ?",
    ),
    acquire: database.prepare<[ClaimValues]>(
      `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
       values (@token, @resource, @runKey, @stepId, @priority, @acquiredAtMs, @expiresAtMs)`,
    ),
    renew: database.prepare<[number, number]>("update claim set expires_at_ms = ? where token = ?"),
    release: database.prepare<[number]>("delete from claim where token = ?"),
  };
}
