/**
 * Owns: the claims that lie beside the log: what an append changes in them and what is asked of them. Does not own: what
 * an event means for them (`listClaimChanges`), or who may have a claim (`arbitration/`).
 * S5 is enforced by the triggers of `000003_claims.sql`.
 */
import type BetterSqlite3 from "better-sqlite3";
import type { ClaimEntry } from "../../../agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ClaimIndex } from "../../../agents/coordination/ports/claim-index.ts";
import type { AppendRequest } from "../../../agents/coordination/ports/ledger-store.ts";
import { readClaimRow, findClaimConflict, computeReach } from "../../ledger/claim-rows.ts";
import {
  CLAIMS_SINCE_VERSION,
  prepareClaimReads,
  type ClaimReads,
  type ClaimWrites,
} from "./claim-statements.ts";
import { createSchemaStatements } from "./schema-statements.ts";

/** The argument of a query on claims. */
type ClaimQuery<K extends keyof ClaimIndex> = Parameters<ClaimIndex[K]>[0];

/**
 * Returns a function that gives the prepared statements that read claims, or `undefined` while the ledger's schema is
 * too old to have claims.
 */
export function createClaimReads(database: BetterSqlite3.Database): () => ClaimReads | undefined {
  return createSchemaStatements(database, CLAIMS_SINCE_VERSION, (version) =>
    version < CLAIMS_SINCE_VERSION ? undefined : prepareClaimReads(database),
  );
}

/**
 * Returns the oldest of each step's unexpired claims that overlap a resource, by age, at most `limit`, and the newest
 * token given; no claims and 0 in a schema without claims. Throws where the counter of tokens is gone.
 */
export function listOverlappingClaims(
  reads: ClaimReads | undefined,
  { resource, atMs, limit }: ClaimQuery<"overlapping">,
): Awaited<ReturnType<ClaimIndex["overlapping"]>> {
  if (!reads) return { claims: [], lastToken: 0 };
  // Asked first: a claim that another process acquires in between makes the append of who ruled without it fail (S5).
  const lastToken = reads.newest.get();
  if (lastToken === undefined) throw createLostCounterError();
  const reach = computeReach(resource);
  const rows = reads.overlapping.all({ ...reach, names: JSON.stringify(reach.names), atMs, limit });
  return { claims: rows.map(readClaimRow), lastToken };
}

/**
 * Returns a page of the claims, expired ones too, in the order of their tokens; with `runId` those of one run; empty
 * in a schema without claims.
 */
export function listClaims(
  reads: ClaimReads | undefined,
  { after, limit, runId }: ClaimQuery<"claims">,
): readonly ClaimEntry[] {
  if (!reads) return [];
  const rows = runId === undefined ? reads.all.all(after, limit) : reads.ofRun.all(runId, after, limit);
  return rows.map(readClaimRow);
}

/**
 * Returns the error of an append whose changes of claims cannot be made; `undefined` where they can. Where the counter of
 * tokens is gone nothing can be claimed, and claims can end all the same. Writes nothing.
 */
export function findClaimChangeConflict(
  statements: ClaimWrites,
  request: AppendRequest,
  now: number,
): CoordinationError | undefined {
  if (!request.claims?.length) return undefined;
  const newest = statements.newest.get();
  if (newest === undefined && request.claims.some(({ kind }) => kind === "acquired"))
    return createLostCounterError();
  const holderOf = (token: number) => statements.holder.get(token);
  return findClaimConflict(request, { newest: newest ?? 0, now, holderOf });
}

/**
 * Inserts, extends and deletes the claims that an append acquires, renews and releases. Only to be called where
 * `findClaimChangeConflict` found nothing.
 */
export function writeClaimChanges(
  statements: ClaimWrites,
  runKey: number,
  { claims = [] }: AppendRequest,
): void {
  for (const claim of claims) {
    if (claim.kind === "acquired") {
      const { kind: _, ...values } = claim;
      statements.acquire.run({ ...values, runKey });
    } else if (claim.kind === "renewed") statements.renew.run(claim.expiresAtMs, claim.token);
    else statements.release.run(claim.token);
  }
}

function createLostCounterError(): CoordinationError {
  return new CoordinationError("LEDGER_CORRUPT", "the newest token of claims is gone");
}
