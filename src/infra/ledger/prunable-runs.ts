/** Owns: how a row of a run is read by pruning, whatever the ledger is kept in. */
import type { PrunableRun } from "../../agents/coordination/ports/run-store.ts";
import type { RunKind } from "./stored-run.ts";

export interface PrunableRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly kind: RunKind;
  readonly length: number;
  readonly state: PrunableRun["state"];
  /** JSON. */
  readonly summary: string;
  /** JSON; null for a run that is no fork. */
  readonly origin: string | null;
  /** JSON, of the run's first event. */
  readonly payload: string;
}

/** Returns the run that a row tells of. One that cannot be read is kept, so that it can be looked into. */
export function createPrunableRun(row: PrunableRow): PrunableRun {
  const { run_key: ordinal, run_id: runId, kind, length, state } = row;
  const relatives = listRelatives(row);
  const identity = { ordinal, runId, kind, length };
  return relatives
    ? { ...identity, state, relatives: relatives.filter((id) => id !== runId) }
    : { ...identity, state: "used", relatives: [] };
}

/** The paths to ids of other runs, by the kind of run. */
const PATHS: Readonly<
  Record<RunKind, readonly (readonly ["summary" | "origin" | "payload", ...string[]])[]>
> = {
  coordination: [
    ["payload", "parent", "coordinationId"],
    ["payload", "forkedFrom", "coordinationId"],
  ],
  workflow: [
    ["payload", "memoryHome"],
    ["summary", "parent", "runId"],
    ["summary", "root", "runId"],
    ["origin", "sourceRunId"],
  ],
};

function listRelatives(row: PrunableRow): string[] | undefined {
  try {
    const documents = {
      summary: JSON.parse(row.summary) as unknown,
      origin: JSON.parse(row.origin ?? "null") as unknown,
      payload: JSON.parse(row.payload) as unknown,
    };
    return PATHS[row.kind].flatMap(([document, ...path]) => {
      const id = path.reduce<unknown>(
        (value, key) => (value as Readonly<Record<string, unknown>> | null | undefined)?.[key],
        documents[document],
      );
      return typeof id === "string" ? [id] : [];
    });
  } catch {
    return undefined;
  }
}
