/**
 * Owns: the claims that lie beside the log: what is asked of them. Does not own: what an append changes in them
 * (`write-group.ts`), what an event means for them (`listClaimChanges`), or who may have a claim (`arbitration/`).
 */
import type { ClaimEntry } from "../../../agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ClaimIndex } from "../../../agents/coordination/ports/claim-index.ts";
import type { AppendRequest } from "../../../agents/coordination/ports/ledger-store.ts";
import { readClaimRow, findClaimConflict, computeReach, type ClaimRow } from "../../ledger/claim-rows.ts";
import type { SendQuery } from "./connect.ts";
import type { GroupState, NeededRows } from "./group.ts";

/** The argument of a query on claims. */
type ClaimQuery<K extends keyof ClaimIndex> = Parameters<ClaimIndex[K]>[0];

const COLUMNS = "token, resource, run_id, step_id, priority, acquired_at_ms, expires_at_ms";

/**
 * Returns the oldest of each step's unexpired claims that overlap a resource, by age, at most `limit`, and the newest
 * token given. @throws CoordinationError `LEDGER_CORRUPT` without the counter of tokens
 */
export async function listOverlappingClaims(
  query: SendQuery,
  { resource, atMs, limit }: ClaimQuery<"overlapping">,
): Promise<Awaited<ReturnType<ClaimIndex["overlapping"]>>> {
  // Asked first: a claim that another process acquires in between makes the append of who ruled without it fail (S5).
  const [newest] = await query<{ token: number }>("select claim_token as token from ledger_count");
  if (!newest) throw new CoordinationError("LEDGER_CORRUPT", "the newest token of claims is gone");
  const rows = await query<ClaimRow>(
    `select ${COLUMNS}
     from claim
     join run using (run_key)
     where token in (
       select min(token) as earliest
       from (
         select token, run_key, step_id
         from claim
         where resource = any (@names::text[]) and expires_at_ms > @atMs
         union all
         select token, run_key, step_id
         from claim
         where resource >= @from and resource < @before and expires_at_ms > @atMs
       ) as overlapping
       group by run_key, step_id
       order by earliest
       limit @limit
     )
     order by token`,
    { ...computeReach(resource), atMs, limit },
  );
  return { claims: rows.map(readClaimRow), lastToken: newest.token };
}

/** Returns a page of the claims, expired ones too, in the order of their tokens; with `runId` those of one run. */
export async function listClaims(
  query: SendQuery,
  { after, limit, runId }: ClaimQuery<"claims">,
): Promise<readonly ClaimEntry[]> {
  const isOfRun = runId === undefined ? "true" : "run_key = (select run_key from run where run_id = @runId)";
  const rows = await query<ClaimRow>(
    `select ${COLUMNS}
     from claim
     join run using (run_key)
     where ${isOfRun} and token > @after
     order by token
     limit @limit`,
    { after, limit, ...(runId !== undefined && { runId }) },
  );
  return rows.map(readClaimRow);
}

/**
 * Adds the tokens of the claims that an append renews or releases to `Wanted`, so that they are read before the append
 * is decided.
 */
export function addWantedClaims({ claims = [] }: AppendRequest, { claimTokens }: NeededRows): void {
  for (const { kind, token } of claims) if (kind !== "acquired") claimTokens.add(token);
}

/**
 * Returns the error of an append whose changes of claims cannot be made after the writes before it in its group;
 * `undefined` where they can. Does not throw.
 */
export function findClaimChangeConflict(
  request: AppendRequest,
  { claims, newest, now }: GroupState,
): CoordinationError | undefined {
  return findClaimConflict(request, { newest: newest.claim, now, holderOf: (token) => claims.get(token) });
}

/**
 * Adds the claim changes of an append to the rows that its group will write, and to what later appends of the group
 * see. Only to be called where `findClaimChangeConflict` found nothing.
 */
export function addClaimChanges(
  { runId, claims = [] }: AppendRequest,
  runKey: number,
  group: GroupState,
): void {
  for (const claim of claims) {
    group.rows.claims.push({ runKey, claim });
    if (claim.kind === "released") group.claims.delete(claim.token);
    else group.claims.set(claim.token, { run_id: runId, expires_at_ms: claim.expiresAtMs });
    if (claim.kind === "acquired") group.newest.claim = claim.token;
  }
}
