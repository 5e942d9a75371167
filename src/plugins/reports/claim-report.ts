/** Owns: a claim as `claims --json` shows it. */
import type { ClaimEntry } from "../../agents/coordination/contracts/claim-entry.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";

export interface ClaimReport extends Omit<ClaimEntry, "runId"> {
  readonly coordinationId: CoordinationId;
  readonly expired: boolean;
}

/** Returns a claim as reports show it, with whether it has expired by `now`. */
export function createClaimReport(
  { token, resource, runId, stepId, priority, acquiredAtMs, expiresAtMs }: ClaimEntry,
  now: number,
): ClaimReport {
  const expired = expiresAtMs <= now;
  return { token, resource, coordinationId: runId, stepId, priority, acquiredAtMs, expiresAtMs, expired };
}
