/** Owns: SQL with named values (`@runId`), as the other ledger has it. PostgreSQL itself numbers them. */
import { encodeStoredText } from "./stored-text.ts";

export type SqlValue = string | number | Buffer | null | readonly (string | number | Buffer | null)[];
export type SqlValues = Readonly<Record<string, SqlValue>>;

interface NumberedSql {
  readonly text: string;
  /** Given to statements that are sent often, so that a connection may keep their plans. */
  readonly name?: string;
  readonly names: readonly string[];
}

const NAME = /@(\w+)/gu;
/** Each connection keeps so many plans at most; the first statements of a process are those that it sends all the time. */
const NAMES_MAX = 100;
/** There are as many texts as places in this code, and some for each combination of filters. */
const NUMBERED_MAX = 1_000;
const numbered = new Map<string, NumberedSql>();

/**
 * Returns an SQL statement with named values (`@name`) as the driver takes it: with numbered values, and with a name
 * where the server may keep its plan.
 */
export function bindValues(
  sql: string,
  values: SqlValues,
): { readonly text: string; readonly name?: string; readonly values: unknown[] } {
  const { names, ...statement } = numberNamedValues(sql);
  return { ...statement, values: names.map((name) => encodeValue(values[name])) };
}

/**
 * Returns the SQL with `$1` in the place of the first name, and so on, and a name for its plan where it is one of the
 * first texts. Up to `NUMBERED_MAX` texts are kept, and worked out once.
 */
function numberNamedValues(sql: string): NumberedSql {
  const before = numbered.get(sql);
  if (before) return before;
  const names: string[] = [];
  const text = sql.replaceAll(NAME, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  // A statement without values may be several, which cannot be prepared.
  const isNamed = names.length > 0 && numbered.size < NAMES_MAX;
  const statement = { text, names, ...(isNamed && { name: `s${numbered.size}` }) };
  if (numbered.size < NUMBERED_MAX) numbered.set(sql, statement);
  return statement;
}

function encodeValue(value: SqlValue | undefined): unknown {
  if (typeof value === "string") return encodeStoredText(value);
  if (Array.isArray(value)) return value.map((each) => encodeValue(each as SqlValue));
  return value;
}
