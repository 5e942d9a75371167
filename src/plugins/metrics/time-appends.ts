/** Owns: telling how long appends to a store take. Made only where somebody wants to know. */
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";

/** `refused`: another writer was first, which is no fault of the ledger. */
export type AppendOutcome = "written" | "refused" | "failed";
export type NoteAppend = (seconds: number, outcome: AppendOutcome) => void;

/** A store that appends. */
interface AppendingStore<Request> {
  append(request: Request): Promise<void>;
}

const MS_PER_SECOND = 1_000;

/**
 * Returns a copy of the store whose `append` also passes to `note` how long it took and whether it was written,
 * refused by a conflict, or failed; errors are thrown on.
 */
export function timeAppends<Request, Store extends AppendingStore<Request>>(
  store: Store,
  note: NoteAppend,
): Store {
  const append = async (request: Request): Promise<void> => {
    const beganAtMs = performance.now();
    const tell = (outcome: AppendOutcome): void =>
      note((performance.now() - beganAtMs) / MS_PER_SECOND, outcome);
    try {
      await store.append(request);
    } catch (error) {
      tell(isWriteConflict(error) ? "refused" : "failed");
      throw error;
    }
    tell("written");
  };
  return { ...store, append };
}

function isWriteConflict(error: unknown): boolean {
  return isCoordinationError(error) && (error.code === "LEDGER_CONFLICT" || error.code === "CLAIM_CONFLICT");
}
