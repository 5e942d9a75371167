/** Owns: whether a log has as many events as the row of its run counts, also while the run grows. */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { StoredProblem } from "../../ports/ledger-store.ts";
import type { UnprovenRun } from "../../ports/run-store.ts";

interface CountedStore {
  read(
    runId: CoordinationId,
    range: { readonly from: number; readonly limit: number },
  ): Promise<readonly unknown[]>;
  findUnproven(runId: CoordinationId): Promise<UnprovenRun<unknown> | undefined>;
}

/**
 * Returns the problem of a log that has fewer or more events than its run counts, as a list of one; empty where there
 * is none. `found`: how many events it has up to that length. Events behind that length are no problem where the run
 * counts more by now. @throws CoordinationError as `RunStore.read`
 */
export async function checkLogLength(
  store: CountedStore,
  { runId, length }: Pick<UnprovenRun<unknown>, "runId" | "length">,
  found: number,
): Promise<StoredProblem[]> {
  if (found < length) {
    const message = `the log has ${found} events, its run counts ${length}`;
    return [{ kind: "event_missing", message, runId, sequence: found }];
  }
  const behind = await store.read(runId, { from: length, limit: 1 });
  if (behind.length === 0 || (await store.findUnproven(runId))?.length !== length) return [];
  const message = `the log goes on behind the ${length} events that its run counts`;
  return [{ kind: "event_forged", message, runId, sequence: length }];
}
