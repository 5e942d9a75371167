/** Owns: whether an append goes on where the log of its run ends (S1). */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { StorableEvent } from "./event-row.ts";
import type { RunKind } from "./stored-run.ts";

export interface Continuation {
  readonly runId: string;
  readonly kind: RunKind;
  readonly events: readonly StorableEvent[];
}

/** The kind that the head of a removed run has. */
export const PRUNED_KIND = "pruned";

/** Returns the conflict where the log is not as the append expects. */
export function findLogConflict(
  { runId, kind, events }: Continuation,
  head: { readonly kind: string; readonly length: number } | undefined,
): CoordinationError | undefined {
  if (head?.kind === PRUNED_KIND) return createPrunedError(runId);
  if (head && head.kind !== kind)
    return new CoordinationError("LEDGER_CONFLICT", `${runId} is not the log of a ${kind}`);
  const length = head?.length ?? 0;
  const expected = events[0]?.sequence;
  if (expected === length) return undefined;
  return new CoordinationError(
    "LEDGER_CONFLICT",
    `${runId} has ${length} events; the append expected ${expected}`,
  );
}

/** Returns the error of an id whose run was removed. */
export function createPrunedError(runId: string): CoordinationError {
  return new CoordinationError("RUN_PRUNED", `${runId} has ended and was pruned from the ledger`);
}
