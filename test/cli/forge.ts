/** Owns: changing a ledger behind the store's back. */
import BetterSqlite3 from "better-sqlite3";

export function forge(path: string, sql: string): void {
  const database = new BetterSqlite3(path);
  database.exec(sql);
  database.close();
}
