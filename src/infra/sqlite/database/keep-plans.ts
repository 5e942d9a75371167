/**
 * Owns: that SQLite plans a statement once. The driver's build looks at the values that are bound (`ENABLE_STAT4`, and limits), and
 * then plans the statement anew whenever it runs: for reading a few events that is three quarters of the time.
 */
import type { Database } from "better-sqlite3";

/** Text in quotes, or a variable. */
const QUOTED_OR_VARIABLE = /'[^']*'|\?|@\w+/g;

/**
 * Returns SQL with `+` before each bound variable, which hides the variable's value from SQLite's planner and changes
 * nothing of the result.
 */
export function hideBoundValues(sql: string): string {
  return sql.replaceAll(QUOTED_OR_VARIABLE, (found) => (found.startsWith("'") ? found : `+${found}`));
}

/**
 * Replaces the connection's `prepare`, so that each statement that is prepared from now on is planned once, and not
 * anew for other values.
 */
export function keepPlans(database: Database): void {
  const prepare = database.prepare.bind(database) as (sql: string) => ReturnType<Database["prepare"]>;
  Object.assign(database, { prepare: (sql: string) => prepare(hideBoundValues(sql)) });
}
