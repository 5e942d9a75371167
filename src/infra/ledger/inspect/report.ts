/**
 * Owns: where an inspection reports damage, and the damage that the numbers of a ledger and the hashes of its migrations show when they
 * are held against what they should be.
 */
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";

/** Takes a problem that was found in a ledger. */
export type ProblemReporter = (problem: StoredProblem) => void;

/** Enough to see the extent of a damage; a report of a million lines helps nobody. */
const PROBLEMS_MAX = 200;

/**
 * Returns a function that appends each problem it is given to `problems`, and drops it once `PROBLEMS_MAX` are there.
 */
export function createReport(problems: StoredProblem[]): ProblemReporter {
  return (problem) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
}

interface NumberedMigration {
  readonly number: number;
  readonly sha256: string;
}

/**
 * Reports one problem for each expected migration that the ledger has not recorded, or has recorded with another hash.
 */
export function reportMigrations(
  recorded: readonly NumberedMigration[],
  expected: readonly NumberedMigration[],
  report: ProblemReporter,
): void {
  const hashes = new Map(recorded.map(({ number, sha256 }) => [number, sha256]));
  for (const { number, sha256 } of expected)
    if (hashes.get(number) !== sha256)
      report({ kind: "schema_changed", message: `migration ${number} is recorded with another hash` });
}

export interface LedgerCounts {
  /** How many events there are. */
  readonly stored: number;
  /** How many were removed with their runs. */
  readonly pruned: number;
  /** How many were ever appended. */
  readonly appended: number;
  /** By the rows of the runs. */
  readonly counted: number;
  /** The number of the newest event, also of a removed run. */
  readonly last: number;
}

/**
 * Reports each contradiction between the events that are stored, those that were pruned, and those that the ledger and
 * its runs have counted; so what was removed without a trace shows.
 */
export function reportCounts(counts: LedgerCounts, report: ProblemReporter): void {
  const { stored, pruned, appended, counted, last } = counts;
  if (stored + pruned !== appended) {
    const kind = stored + pruned < appended ? "event_missing" : "event_forged";
    const besides = pruned > 0 ? ` and ${pruned} were pruned` : "";
    report({ kind, message: `the file holds ${stored} events${besides}, but ${appended} were appended` });
  }
  if (last < appended)
    report({ kind: "event_missing", message: `the last ${appended - last} events are missing` });
  if (stored !== counted)
    report({
      kind: stored < counted ? "event_missing" : "event_forged",
      message: `the runs count ${counted} events, the file holds ${stored}`,
    });
}

/** Rows that are numbered without gaps. `rows` is a table, or a query in brackets. */
export interface NumberedRows {
  readonly subject: string;
  readonly rows: string;
  readonly key: string;
}

/** The numbers on both sides of a gap. */
export interface NumberGap {
  readonly before: number;
  readonly after: number;
}

/**
 * Returns the SQL that finds the first 20 gaps in the numbering of a table's rows, each as the numbers before and
 * after it.
 */
export function formatGapsQuery({ rows, key }: NumberedRows): string {
  return `
    select before, after
    from (
      select ${key} as after, lag(${key}, 1, cast(0 as bigint)) over (order by ${key}) as before
      from ${rows} as counted
    ) as numbered
    where after <> before + 1
    order by after
    limit 20`;
}

/** Reports one problem (`event_missing`) for each gap that `formatGapsQuery` found. */
export function reportGaps(
  { subject }: NumberedRows,
  gaps: readonly NumberGap[],
  report: ProblemReporter,
): void {
  for (const { before, after } of gaps)
    report({ kind: "event_missing", message: `between ${subject} ${before} and ${after}, all are missing` });
}

/**
 * Reports a problem where the ledger's counter of claim tokens is not a single row, or is lower than the newest
 * claim's token: then a token would be given twice. `counted`: the rows of the counter.
 */
export function reportClaimCount(counted: readonly number[], newest: number, report: ProblemReporter): void {
  if (counted.length !== 1)
    report({ kind: "index_differs", message: "the newest token of claims is not one number" });
  else if (newest > Math.max(...counted))
    report({ kind: "index_differs", message: `claim ${newest} is newer than the newest that was counted` });
}
