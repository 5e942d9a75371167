/** Owns: reading what the writes of a group must know, behind the lock of the ledger. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ClaimHolder } from "../../ledger/claim-rows.ts";
import { PRUNED_KIND } from "../../ledger/log-conflict.ts";
import type { SendQuery } from "./connect.ts";
import { lockLedger } from "./lock-ledger.ts";
import {
  createGroupRows,
  formatEventKey,
  formatFileKey,
  formatScopeKey,
  type GroupState,
  type LogHead,
  type NeededRows,
  type WorkspaceHead,
} from "./group.ts";

/**
 * Begins a transaction, locks the ledger until its end, and returns what the writes of a group must know before they
 * are decided. @throws CoordinationError `LEDGER_CORRUPT` without the ledger's counts. Among two groups, one sees all
 * of the other. It would be enough to lock the runs, but then events would be committed in another order than that of
 * their numbers, and a reader that goes on behind the newest one it saw would pass over some (style rule 18). The
 * others wait shortly: a group is two round trips and one flush.
 */
export async function readGroup(
  query: SendQuery,
  wanted: NeededRows,
  { busyTimeoutMs, now }: { readonly busyTimeoutMs: number; readonly now: () => number },
): Promise<GroupState> {
  const [, , counts, heads, hashes, claims, files, fileCounts] = await Promise.all([
    ...lockLedger(query, { busyTimeoutMs, statementTimeout: "30s" }),
    readRunHeads(query, wanted),
    readEventHashes(query, wanted),
    readClaimHolders(query, wanted),
    readFileHeads(query, wanted),
    countFilesByScope(query, wanted),
  ]);
  const [newest] = counts;
  if (!newest) throw new CoordinationError("LEDGER_CORRUPT", "the count of the ledger is gone");
  return {
    now: now(),
    heads,
    hashes,
    claims,
    files,
    fileCounts,
    newest: { event: newest.events, run: newest.runs, claim: newest.claim_token },
    rows: createGroupRows(),
  };
}

async function readRunHeads(query: SendQuery, { runIds }: NeededRows): Promise<Map<string, LogHead>> {
  if (runIds.size === 0) return new Map();
  const rows = await query<LogHead & { readonly run_id: string }>(
    `select run_id, run_key, length, head_hash, kind, origin, owner_id, owner_token
     from run
     where run_id = any (@runIds::text[])
     union all
     select run_id, run_key, length, head_hash, '${PRUNED_KIND}', null, '', 0
     from pruned_run
     where run_id = any (@runIds::text[])`,
    { runIds: [...runIds] },
  );
  return new Map(rows.map(({ run_id, ...head }) => [run_id, head]));
}

async function readEventHashes(query: SendQuery, { events }: NeededRows): Promise<Map<string, Buffer>> {
  if (events.size === 0) return new Map();
  const places = [...events.values()];
  const rows = await query<{ run_id: string; sequence: number; hash: Buffer }>(
    `select run_id, sequence, hash
     from unnest(@runIds::text[], @sequences::bigint[]) as wanted (run_id, sequence)
     join run using (run_id)
     join event using (run_key, sequence)`,
    { runIds: places.map(({ runId }) => runId), sequences: places.map(({ sequence }) => sequence) },
  );
  return new Map(
    rows.map(({ run_id, sequence, hash }) => [formatEventKey({ runId: run_id, sequence }), hash]),
  );
}

async function readClaimHolders(
  query: SendQuery,
  { claimTokens }: NeededRows,
): Promise<Map<number, ClaimHolder>> {
  if (claimTokens.size === 0) return new Map();
  const rows = await query<ClaimHolder & { readonly token: number }>(
    `select token, run_id, expires_at_ms
     from claim
     join run using (run_key)
     where token = any (@tokens::bigint[])`,
    { tokens: [...claimTokens] },
  );
  return new Map(rows.map(({ token, ...holder }) => [token, holder]));
}

async function readFileHeads(query: SendQuery, { files }: NeededRows): Promise<Map<string, WorkspaceHead>> {
  if (files.size === 0) return new Map();
  const places = [...files.values()];
  const rows = await query<WorkspaceHead & { tenant: string; scope: string; path: string }>(
    `select tenant, scope, path, version, file.is_removed, sha256
     from workspace_file as file
     join workspace_version using (tenant, scope, path, version)
     where (tenant, scope, path) in (
       select * from unnest(@tenants::text[], @scopes::text[], @paths::text[])
     )`,
    {
      tenants: places.map(({ tenant }) => tenant),
      scopes: places.map(({ scope }) => scope),
      paths: places.map(({ path }) => path),
    },
  );
  return new Map(rows.map((row) => [formatFileKey(row), row]));
}

async function countFilesByScope(query: SendQuery, { files }: NeededRows): Promise<Map<string, number>> {
  if (files.size === 0) return new Map();
  const scopes = [...new Map([...files.values()].map((place) => [formatScopeKey(place), place])).values()];
  const rows = await query<{ tenant: string; scope: string; count: number }>(
    `select tenant, scope, count(*) as count
     from workspace_file
     where is_removed = 0
       and (tenant, scope) in (select * from unnest(@tenants::text[], @scopes::text[]))
     group by tenant, scope`,
    { tenants: scopes.map(({ tenant }) => tenant), scopes: scopes.map(({ scope }) => scope) },
  );
  return new Map(rows.map((row) => [formatScopeKey(row), row.count]));
}
