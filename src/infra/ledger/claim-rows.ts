/**
 * Owns: how a claim lies in a row, what an append may change in the claims, and which names a resource overlaps.
 *
 * S5 a claim is acquired with the token after the newest one of the ledger. The database refuses any other; here it is told
 * before anything is written.
 */
import type { ClaimEntry } from "../../agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId, EpochMs, StepId } from "../../agents/coordination/contracts/ids.ts";
import { isFileResource } from "../../agents/coordination/contracts/resource-names.ts";
import type { AppendRequest } from "../../agents/coordination/ports/ledger-store.ts";

export interface ClaimRow {
  readonly token: number;
  readonly resource: string;
  readonly run_id: string;
  readonly step_id: string;
  readonly priority: string;
  readonly acquired_at_ms: number;
  readonly expires_at_ms: number;
}

/** The names that a claim on one resource overlaps: those, and a range. */
export interface ClaimReach {
  readonly names: readonly string[];
  readonly from: string;
  readonly before: string;
}

/** The claims as they are before an append. */
export interface ClaimState {
  /** The token of the newest claim ever acquired. */
  readonly newest: number;
  readonly now: number;
  /** The claim with a token, where it is there. */
  readonly holderOf: (token: number) => ClaimHolder | undefined;
}

export interface ClaimHolder {
  readonly run_id: string;
  readonly expires_at_ms: number;
}

/**
 * Returns the error for which the claim changes of an append, made one after the other, are not possible; `undefined`
 * where they are. A claim that has run out is not renewed: another process may have taken it for ended and acquired
 * one of its own.
 */
export function findClaimConflict(
  { runId, claims = [] }: AppendRequest,
  { newest: newestBefore, now, holderOf }: ClaimState,
): CoordinationError | undefined {
  let newest = newestBefore;
  /** When the claims that this append names end, as it leaves them so far; 0 for those that it releases. */
  const ends = new Map<number, number>();
  for (const claim of claims) {
    const { kind, token } = claim;
    if (kind === "acquired") {
      if (token !== newest + 1)
        return createClaimConflictError(`${runId} cannot acquire token ${token}: the newest is ${newest}`);
      newest = token;
    } else if ((ends.get(token) ?? findClaimEnd(holderOf(token), runId)) <= (kind === "renewed" ? now : 0)) {
      return createClaimConflictError(`${runId} has no claim with token ${token} any more`);
    }
    ends.set(token, kind === "released" ? 0 : Math.max(1, claim.expiresAtMs));
  }
  return undefined;
}

/** Returns when a run's claim ends in epoch milliseconds; 0 for a claim that is not there, or of another run. */
function findClaimEnd(holder: ClaimHolder | undefined, runId: string): number {
  return holder?.run_id === runId ? Math.max(1, holder.expires_at_ms) : 0;
}

function createClaimConflictError(detail: string): CoordinationError {
  return new CoordinationError("CLAIM_CONFLICT", detail);
}

/**
 * Returns the resources that a claim on a resource overlaps, as names and a range of names. A file covers what is
 * below it by path: `/` is the byte before `0`, so what begins with `file:/a/` lies between `file:/a/` and `file:/a0`.
 * Only roots end in `/`, such as `file:/` and `file:c:/`.
 */
export function computeReach(resource: string): ClaimReach {
  if (!isFileResource(resource)) return { names: [resource], from: "", before: "" };
  const above = listNamesAbove(resource);
  const isRoot = resource.endsWith("/");
  const from = isRoot ? resource : `${resource}/`;
  // Names that lie in the range are not listed again.
  const names = isRoot ? above : [resource, ...above];
  return { names, from, before: `${from.slice(0, -1)}0` };
}

/** Lists the names of the folders above a file, each with and without a slash at its end. */
function listNamesAbove(resource: string): string[] {
  const names: string[] = [];
  for (let at = resource.indexOf("/"); at !== -1; at = resource.indexOf("/", at + 1))
    names.push(resource.slice(0, at), resource.slice(0, at + 1));
  return names.filter((name) => name !== resource);
}

/** Returns the claim that a row of the ledger's table holds. */
export function readClaimRow(row: ClaimRow): ClaimEntry {
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
