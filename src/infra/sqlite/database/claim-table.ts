/**
 * Owns: the claims that lie beside the log: what an append changes in them and what is asked of them. Does not own: what
 * an event means for them (`claimChangesOf`), or who may have a claim (`arbitration/`).
 *
 * S5 a claim is acquired with the token after the newest one of the ledger. The database refuses any other (triggers of
 * `000003_claims.sql`); here it is told before anything is written.
 */
import type BetterSqlite3 from "better-sqlite3";
import type { ClaimEntry } from "../../../agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId, EpochMs, StepId } from "../../../agents/coordination/contracts/ids.ts";
import { isFile } from "../../../agents/coordination/contracts/resource-names.ts";
import type { ClaimIndex } from "../../../agents/coordination/ports/claim-index.ts";
import type { AppendRequest } from "../../../agents/coordination/ports/ledger-store.ts";
import {
  CLAIMS_SINCE_VERSION,
  prepareClaimReads,
  type ClaimReads,
  type ClaimRow,
  type ClaimWrites,
  type Reach,
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
  const rows = reads.overlapping.all({ ...reachOf(resource), atMs, limit });
  return { claims: rows.map(entryOf), lastToken };
}

export function listClaims(
  reads: ClaimReads | undefined,
  { after, limit, runId }: Query<"claims">,
): readonly ClaimEntry[] {
  if (!reads) return [];
  const rows = runId === undefined ? reads.all.all(after, limit) : reads.ofRun.all(runId, after, limit);
  return rows.map(entryOf);
}

/**
 * Why the changes of an append cannot be made, one after the other, with nothing written yet. A claim that has run out is
 * not renewed: another process may have taken it for ended and acquired one of its own.
 */
export function claimConflict(
  statements: ClaimWrites,
  { runId, claims = [] }: AppendRequest,
  now: number,
): CoordinationError | undefined {
  if (claims.length === 0) return undefined;
  let newest = newestOf(statements);
  /** When the claims that this append names end, as it leaves them so far; 0 for those that it releases. */
  const ends = new Map<number, number>();
  for (const claim of claims) {
    const { kind, token } = claim;
    if (kind === "acquired") {
      if (token !== newest + 1)
        return createConflictError(`${runId} cannot acquire token ${token}: the newest is ${newest}`);
      newest = token;
    } else if ((ends.get(token) ?? endOf(statements, runId, token)) <= (kind === "renewed" ? now : 0)) {
      return createConflictError(`${runId} has no claim with token ${token} any more`);
    }
    ends.set(token, kind === "released" ? 0 : Math.max(1, claim.expiresAtMs));
  }
  return undefined;
}

/** 0 for a claim that is not there, or of another run. */
function endOf({ holder }: ClaimWrites, runId: string, token: number): number {
  const row = holder.get(token);
  return row?.run_id === runId ? Math.max(1, row.expires_at_ms) : 0;
}

function createConflictError(detail: string): CoordinationError {
  return new CoordinationError("CLAIM_CONFLICT", detail);
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

/**
 * A file covers what is below it by path: `/` is the byte before `0`, so what begins with `file:/a/` lies between
 * `file:/a/` and `file:/a0`. Only roots end in `/`, such as `file:/` and `file:c:/`.
 */
function reachOf(resource: string): Reach {
  if (!isFile(resource)) return { names: JSON.stringify([resource]), from: "", before: "" };
  const above = listNamesAbove(resource);
  const isRoot = resource.endsWith("/");
  const from = isRoot ? resource : `${resource}/`;
  // What lies in the range is not named again.
  const names = isRoot ? above : [resource, ...above];
  return { names: JSON.stringify(names), from, before: `${from.slice(0, -1)}0` };
}

function listNamesAbove(resource: string): string[] {
  const names: string[] = [];
  for (let at = resource.indexOf("/"); at !== -1; at = resource.indexOf("/", at + 1))
    names.push(resource.slice(0, at), resource.slice(0, at + 1));
  return names.filter((name) => name !== resource);
}

function entryOf(row: ClaimRow): ClaimEntry {
  return {
    token: row.token,
    resource: row.resource,
    runId: row.run_id as CoordinationId,
    stepId: row.step_id as StepId,
    priority: row.priority as ClaimEntry["priority"],
    acquiredAtMs: row.acquired_at_ms as EpochMs,
    expiresAtMs: row.expires_at_ms as EpochMs,
  };
}
