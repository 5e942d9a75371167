/** Owns: where a ledger is: in a file, or on a server by its URL, whose password is shown to nobody. */

/** True for the place of a ledger on a PostgreSQL server; any other one is a file. */
export function isPostgresUrl(place: string): boolean {
  return /^postgres(?:ql)?:\/\//u.test(place);
}

/** Returns a place as it may be shown: of a URL, without password and settings. */
export function formatLedgerPlace(place: string): string {
  if (!isPostgresUrl(place)) return place;
  const url = URL.parse(place);
  if (!url) return "postgres://";
  const user = url.username === "" ? "" : `${url.username}@`;
  return `postgres://${user}${url.host}${url.pathname}`;
}
