/** Owns: whether an append goes on where the log of its run ends (S1). */
import { createPrunedRunError, CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { AppendBasis } from "../../agents/coordination/ports/run-store.ts";
import type { StorableEvent } from "./event-row.ts";
import type { RunKind } from "./stored-run.ts";

export interface Continuation {
  readonly runId: string;
  readonly kind: RunKind;
  readonly events: readonly StorableEvent[];
  readonly basis?: AppendBasis | undefined;
}

/** The kind that the head of a removed run has. */
export const PRUNED_KIND = "pruned";

/**
 * Returns the error of an append to a run whose log is not as the append expects (another kind or length, or an
 * earlier append that it was decided on has failed); `undefined` where nothing is wrong. Does not throw.
 */
export function findLogConflict(
  { runId, kind, events, basis }: Continuation,
  head: { readonly kind: string; readonly length: number } | undefined,
): CoordinationError | undefined {
  if (head && head.kind !== kind) return createWrongKindError(runId, kind, head.kind);
  if (basis?.isVoid)
    return new CoordinationError(
      "LEDGER_CONFLICT",
      `${runId}: an append that this one was decided on failed`,
    );
  const length = head?.length ?? 0;
  const expected = events[0]?.sequence;
  if (expected === length) return undefined;
  return new CoordinationError(
    "LEDGER_CONFLICT",
    `${runId} has ${length} events; the append expected ${expected}`,
  );
}

function createWrongKindError(runId: string, kind: RunKind, actual: string): CoordinationError {
  if (actual === PRUNED_KIND) return createPrunedRunError(runId);
  return new CoordinationError("LEDGER_CONFLICT", `${runId} is not the log of a ${kind}`);
}

/**
 * Returns the conflict of an append unchanged, and where there is one, marks the append's basis as void, so that the
 * appends that were decided on it fail, too.
 */
export function failDependentAppends(
  { basis }: Pick<Continuation, "basis">,
  conflict: Error | undefined,
): Error | undefined {
  if (conflict && basis) basis.isVoid = true;
  return conflict;
}
