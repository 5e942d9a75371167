/** Owns: how a run lies in a row, and what a listing says of it. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { terminalStatusSchema } from "../../agents/coordination/contracts/facts.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { WORKFLOW_STATUSES } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type { StoredRun, UnprovenRun } from "../../agents/coordination/ports/run-store.ts";
import type { EventRow } from "./event-row.ts";
import { parseStoredOrigin } from "./stored-origin.ts";

export type RunKind = "coordination" | "workflow";

export interface RunRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
  /** JSON. */
  readonly summary: string;
  /** JSON; null for a run that is no fork. */
  readonly origin: string | null;
}

/** The row that the chain of a run is held against. */
export interface HeadRow {
  readonly length: number;
  readonly head_hash: Buffer;
  readonly origin: string | null;
}

export type HashedRow = EventRow & { readonly hash: Buffer };

export interface RunCounts {
  readonly coordinations: number;
  readonly workflowRuns: number;
}

/** Returns the upper bound of a search by prefix: a text that sorts behind every text that begins with the prefix. */
export function computePrefixEnd(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

const STATUSES: Readonly<Record<RunKind, ReadonlySet<unknown>>> = {
  coordination: new Set(["running", ...terminalStatusSchema.options]),
  workflow: new Set(WORKFLOW_STATUSES),
};

/**
 * Returns the summary that is stored with a run. @throws CoordinationError `LEDGER_CORRUPT` where it is not one of a
 * run of that kind: somebody edited the ledger
 */
export function parseRunSummary(
  { run_id: runId, summary: text }: Pick<RunRow, "run_id" | "summary">,
  kind: RunKind,
): unknown {
  const summary = readSummaryOfKind(text, kind);
  if (summary !== undefined) return summary;
  throw new CoordinationError("LEDGER_CORRUPT", `the summary of ${runId} is not one of a ${kind}`);
}

/** Returns the summary of a run; `undefined` where the text is not the summary of a run of this kind. */
function readSummaryOfKind(text: string, kind: RunKind): unknown {
  const summary = parseJson(text) as
    { readonly kind?: unknown; readonly status?: unknown } | null | undefined;
  const isOfKind = (summary?.kind ?? "coordination") === kind;
  return summary && isOfKind && STATUSES[kind].has(summary.status) ? summary : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the run that a row of the run table stores, with its summary; without origin where that cannot be read.
 * @throws CoordinationError `LEDGER_CORRUPT` where the summary is not one of its kind
 */
export function createStoredRun<Summary>(row: RunRow, kind: RunKind): StoredRun<Summary> {
  const summary = parseRunSummary(row, kind) as Summary;
  return { ...createUnprovenRun<Summary>(row, kind), summary };
}

/**
 * Returns the run that a row of the run table stores; without summary or origin where one of them cannot be read. Does
 * not throw.
 */
export function createUnprovenRun<Summary>(row: RunRow, kind: RunKind): UnprovenRun<Summary> {
  const summary = readSummaryOfKind(row.summary, kind) as Summary | undefined;
  const stored = parseStoredOrigin(row.origin);
  return {
    runId: row.run_id as CoordinationId,
    ordinal: row.run_key,
    length: row.length,
    ...(summary !== undefined && { summary }),
    ...(stored.kind === "known" && { origin: stored.origin }),
  };
}
