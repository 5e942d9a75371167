/**
 * Owns: as whom a gateway appends to a coordination (O2): as its owner, or as somebody who asks its owner for something.
 */
import { isRequest, type Command } from "../../contracts/commands.ts";
import { isCoordinationError } from "../../contracts/errors.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { OwnerToken } from "../../ports/run-owners.ts";
import { createLostRunError, FIRST_TOKEN, type OwnRuns } from "./own-runs.ts";

export interface SigningRuns extends Pick<OwnRuns, "tokenOf" | "add" | "settle" | "remove" | "lose"> {
  /** This process, as the owner of coordinations. */
  readonly ownerId: string;
}

/** The name under which an append is made: the run owner's token, or none for a request. */
export interface AppendSignature {
  /** Absent for a request to whoever drives the coordination. */
  readonly owner?: OwnerToken;
  /** Notes what an append with this signature says of who the owner is. @throws what `append` does */
  attend(append: () => Promise<void>): Promise<void>;
}

/**
 * Returns the owner and token to append to a coordination with, and a wrapper of the append that gives the run up
 * where the ledger refuses them. An unopened coordination becomes one of the own runs. @throws CoordinationError
 * `NOT_OWNER` for what only the gateway that drives the coordination may append
 */
export function signAppend(
  ownRuns: SigningRuns,
  { coordinationId: runId, kind }: Coordination,
  commands: readonly Command[],
): AppendSignature {
  const token = ownRuns.tokenOf(runId);
  const isBeginning = token === undefined && kind === "unopened";
  // Its first append makes this gateway its owner.
  if (isBeginning) ownRuns.add(runId, FIRST_TOKEN, { isBeginning });
  else if (token === undefined && kind === "open" && !commands.every(isRequest))
    throw createLostRunError(runId);
  const ownToken = isBeginning ? FIRST_TOKEN : token;
  return {
    ...(ownToken !== undefined && { owner: { id: ownRuns.ownerId, token: ownToken } }),
    attend: async (append) => {
      try {
        await append();
      } catch (error) {
        const code = isCoordinationError(error) ? error.code : undefined;
        // It may have been given back since, under a later token.
        if (code === "NOT_OWNER" && ownRuns.tokenOf(runId) === ownToken) ownRuns.lose(runId);
        // Somebody else began it.
        if (code === "LEDGER_CONFLICT" && isBeginning) ownRuns.remove(runId);
        throw error;
      } finally {
        ownRuns.settle(runId);
      }
    },
  };
}
