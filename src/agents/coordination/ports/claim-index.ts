/** Owns: the port that reads the claims of all coordinations of a ledger. */
import type { ClaimEntry } from "../contracts/claim-entry.ts";
import type { CoordinationId, EpochMs } from "../contracts/ids.ts";

/**
 * The claims of all coordinations of a ledger, kept beside the log so that one can be ruled on without reading the
 * others. Part of the ledger store: an append changes the log and the claims together.
 */
export interface ClaimIndex {
  /**
   * Who has claims on a resource, on what it is below of or on what is below it, whose lease has not ended at `atMs`: of each
   * step the earliest such claim, by token, at most `limit`; and the token of the newest claim ever acquired, 0 before the
   * first.
   */
  overlapping(query: {
    readonly resource: string;
    readonly atMs: EpochMs;
    readonly limit: number;
  }): Promise<{ readonly claims: readonly ClaimEntry[]; readonly lastToken: number }>;
  /** All claims that were not released, by token, after one and at most `limit`; of one coordination where it is named. */
  claims(query: {
    readonly after: number;
    readonly limit: number;
    readonly runId?: CoordinationId;
  }): Promise<readonly ClaimEntry[]>;
}
