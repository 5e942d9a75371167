/** Owns: whether the logs of a ledger hold as many claims as the ledger has counted. */
import { isLedgerOutage } from "../../contracts/errors.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import type { LedgerStore, StoredProblem } from "../../ports/ledger-store.ts";
import { describeError } from "../../std/describe-error.ts";
import { ignoreDamage } from "./ignore-damage.ts";

/** The count of claims by their tokens, log after log. */
export interface TokenCount {
  /** The tokens of a run's log; absent where it could not be read to its end. */
  add(tokens: readonly number[] | undefined): void;
  problems(): Promise<StoredProblem[]>;
}

/**
 * Begins the count. S5: as many claims as the ledger had counted before its logs were read are in them or were
 * pruned, and none is beyond its count.
 */
export async function createTokenCount(store: LedgerStore, problems: StoredProblem[]): Promise<TokenCount> {
  const before = await store.pruned.counts().catch(ignoreDamage);
  const readLastToken = async (): Promise<number> => {
    const query = { resource: "", atMs: 0 as EpochMs, limit: 0 };
    return (await store.overlapping(query)).lastToken;
  };
  const counted = await readLastToken().catch((error: unknown) => {
    if (isLedgerOutage(error)) throw error;
    problems.push({ kind: "index_differs", message: `the claims are unreadable: ${describeError(error)}` });
    return undefined;
  });
  let isWhole = counted !== undefined && before !== undefined;
  let found = 0;
  let newest = 0;
  return {
    add: (tokens) => {
      if (!tokens) isWhole = false;
      for (const token of tokens ?? []) {
        if (token <= (counted ?? 0)) found += 1;
        newest = Math.max(newest, token);
      }
    },
    problems: async () => {
      if (!isWhole) return [];
      const last = await readLastToken();
      const createIndexProblem = (message: string): StoredProblem[] => [{ kind: "index_differs", message }];
      if (newest > last)
        return createIndexProblem(`claim ${newest} was acquired, but the ledger counts ${last}`);
      const pruned = await store.pruned.counts();
      // Those of runs that were removed meanwhile may have been counted twice.
      if (found + pruned.claims === counted || pruned.runs !== before?.runs) return [];
      return createIndexProblem(
        `the ledger counts ${String(counted)} claims, its logs hold ${found + pruned.claims} of them`,
      );
    },
  };
}
