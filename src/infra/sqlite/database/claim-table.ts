/**
 * Owns: the claims that lie beside the log: what an append changes in them and what is asked of them. Does not own: what
 * an event means for them (`claimChangesOf`), or who may have a claim (`arbitration/`).
 * S5 is enforced by the triggers of `000003_claims.sql`.
 */
import type BetterSqlite3 from "better-sqlite3";
import type { ClaimEntry } from "../../../agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ClaimIndex } from "../../../agents/coordination/ports/claim-index.ts";
import type { AppendRequest } from "../../../agents/coordination/ports/ledger-store.ts";
import { claimFromRow, findClaimConflict, reachOf } from "../../ledger/claim-rows.ts";
import {
  CLAIMS_SINCE_VERSION,
  prepareClaimReads,
  type ClaimReads,
  type ClaimWrites,
} from "./claim-statements.ts";
import { createSchemaStatements } from "./schema-statements.ts";

type Query<K extends keyof ClaimIndex> = Parameters<ClaimIndex[K]>[0];

export function claimReadsOf(database: BetterSqlite3.Database): () => ClaimReads | undefined {
  return createSchemaStatements(database, CLAIMS_SINCE_VERSION, (version) =>
    version < CLAIMS_SINCE_VERSION ? undefined : prepareClaimReads(database),
  );
}

export function listOverlappingClaims(
  reads: ClaimReads | undefined,
  { resource, atMs, limit }: Query<"overlapping">,
): Awaited<ReturnType<ClaimIndex["overlapping"]>> {
  if (!reads) return { claims: [], lastToken: 0 };
  // Asked first: a claim that another process acquires in between makes the append of who ruled without it fail (S5).
  const lastToken = newestOf(reads);
  const reach = reachOf(resource);
  const rows = reads.overlapping.all({ ...reach, names: JSON.stringify(reach.names), atMs, limit });
  return { claims: rows.map(claimFromRow), lastToken };
}

export function listClaims(
  reads: ClaimReads | undefined,
  { after, limit, runId }: Query<"claims">,
): readonly ClaimEntry[] {
  if (!reads) return [];
  const rows = runId === undefined ? reads.all.all(after, limit) : reads.ofRun.all(runId, after, limit);
  return rows.map(claimFromRow);
}

/** Returns why the changes of an append cannot be made, with nothing written yet. */
export function claimConflict(
  statements: ClaimWrites,
  request: AppendRequest,
  now: number,
): CoordinationError | undefined {
  if (!request.claims?.length) return undefined;
  const holderOf = (token: number) => statements.holder.get(token);
  return findClaimConflict(request, { newest: newestOf(statements), now, holderOf });
}

/** Writes claims, after `claimConflict` found none in the way. */
export function writeClaims(statements: ClaimWrites, runKey: number, { claims = [] }: AppendRequest): void {
  for (const claim of claims) {
    if (claim.kind === "acquired") {
      const { kind: _, ...values } = claim;
      statements.acquire.run({ ...values, runKey });
    } else if (claim.kind === "renewed") statements.renew.run(claim.expiresAtMs, claim.token);
    else statements.release.run(claim.token);
  }
}

function newestOf({ newest }: Pick<ClaimReads, "newest">): number {
  const token = newest.get();
  if (token === undefined)
    throw new CoordinationError("LEDGER_CORRUPT", "the newest token of claims is gone");
  return token;
}
