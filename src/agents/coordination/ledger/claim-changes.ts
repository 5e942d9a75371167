/** Owns: which events change the claims that a ledger keeps beside the log, and how. */
import { epochMsOf } from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { ClaimChange } from "../contracts/claim-entry.ts";

/**
 * Lists the changes that an event makes to the table of claims that a ledger keeps beside the log; none for an event
 * about anything else. `verify` computes the same again.
 */
export function listClaimChanges(event: RunEvent): ClaimChange[] {
  switch (event.type) {
    case "claim.acquired": {
      const { token, resource, stepId, priority, expiresAtMs } = event.payload;
      const acquiredAtMs = epochMsOf(event.timestamp);
      return [{ kind: "acquired", token, resource, stepId, priority, acquiredAtMs, expiresAtMs }];
    }
    case "claim.renewed":
      return [{ kind: "renewed", token: event.payload.token, expiresAtMs: event.payload.expiresAtMs }];
    case "claim.released":
      return [{ kind: "released", token: event.payload.token }];
    default:
      return [];
  }
}
