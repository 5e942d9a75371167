/** Owns: where a ledger is: in a file, or on a server by its URL, whose password is shown to nobody. */

/** Returns whether a ledger's place is the URL of a PostgreSQL server; any other place is the path of a file. */
export function isPostgresUrl(place: string): boolean {
  return /^postgres(?:ql)?:\/\//u.test(place);
}

/** Returns a ledger's place as it may be shown: a URL without its password and settings, a path as it is. */
export function formatLedgerPlace(place: string): string {
  if (!isPostgresUrl(place)) return place;
  const url = URL.parse(place);
  if (!url) return "postgres://";
  const user = url.username === "" ? "" : `${url.username}@`;
  return `postgres://${user}${url.host}${url.pathname}`;
}
