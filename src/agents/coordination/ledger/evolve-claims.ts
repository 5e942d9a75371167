/**
 * Owns: what each fact about claims, changes and conflicts means for the state. A2 every claim has a token of its own, greater
 * than all before it. A3 a conflict is resolved once.
 */
import { assertInvariant, assertNever } from "../contracts/errors.ts";
import { epochMsOf, OWNER_STEP_ID, type StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { formatHoldingKey, type OpenCoordination } from "./state.ts";

export type ClaimEvent = FactEvent & {
  type:
    | "claim.acquired"
    | "claim.renewed"
    | "claim.released"
    | "resource.changed"
    | "write.undetermined"
    | "conflict.detected"
    | "conflict.resolved";
};

/**
 * Returns the state of a coordination after a fact about a claim, a changed resource or a conflict; unchanged after an
 * undetermined write.
 */
export function evolveClaims(state: OpenCoordination, event: ClaimEvent): OpenCoordination {
  switch (event.type) {
    case "claim.acquired":
      return evolveClaimAcquired(state, event);
    case "claim.renewed":
      return evolveClaimRenewed(state, event);
    case "claim.released":
      return evolveClaimReleased(state, event);
    case "resource.changed":
      return evolveResourceChanged(state, event);
    case "write.undetermined":
      return state;
    case "conflict.detected":
      return evolveConflictDetected(state, event);
    case "conflict.resolved":
      return evolveConflictResolved(state, event);
    default:
      return assertNever(event, "claim fact");
  }
}

function evolveClaimAcquired(
  state: OpenCoordination,
  { eventId, timestamp, payload }: FactEvent & { type: "claim.acquired" },
): OpenCoordination {
  const { token, stepId, resource } = payload;
  assertInvariant(hasStep(state, stepId), `no step ${stepId} in ${state.coordinationId}: ${eventId}`);
  assertInvariant(
    token > state.newestToken,
    `A2: claim ${token} comes after ${state.newestToken}: ${eventId}`,
  );
  const claim = { ...payload, acquiredAtMs: epochMsOf(timestamp) };
  return {
    ...state,
    claims: state.claims.set(token, claim),
    claimCounts: state.claimCounts.update(stepId, 0, (count) => count + 1),
    newestToken: token,
    holdings: state.holdings.set(formatHoldingKey(stepId, resource), token),
  };
}

function evolveClaimReleased(
  state: OpenCoordination,
  event: FactEvent & { type: "claim.released" },
): OpenCoordination {
  const { token, stepId, resource } = requireClaim(state, event);
  const holding = formatHoldingKey(stepId, resource);
  const isNewest = state.holdings.get(holding) === token;
  return {
    ...state,
    claims: state.claims.remove(token),
    claimCounts: lowerClaimCount(state, stepId),
    holdings: isNewest ? state.holdings.remove(holding) : state.holdings,
  };
}

function lowerClaimCount({ claimCounts }: OpenCoordination, stepId: StepId): OpenCoordination["claimCounts"] {
  const left = claimCounts.get(stepId, 0) - 1;
  return left > 0 ? claimCounts.set(stepId, left) : claimCounts.remove(stepId);
}

function evolveClaimRenewed(
  state: OpenCoordination,
  event: FactEvent & { type: "claim.renewed" },
): OpenCoordination {
  const { token, expiresAtMs } = event.payload;
  const claim = requireClaim(state, event);
  return { ...state, claims: state.claims.set(token, { ...claim, expiresAtMs }) };
}

/** Returns the claim that a fact renews or releases; only the step that holds it may do so (A2). */
function requireClaim(
  { claims }: OpenCoordination,
  { eventId, payload }: FactEvent & { type: "claim.renewed" | "claim.released" },
) {
  const claim = claims.get(payload.token);
  assertInvariant(
    claim?.stepId === payload.stepId,
    `A2: claim ${payload.token} is not of step ${payload.stepId}: ${eventId}`,
  );
  return claim;
}

function evolveResourceChanged(
  state: OpenCoordination,
  { timestamp, payload }: FactEvent & { type: "resource.changed" },
): OpenCoordination {
  const { resource, stepId, version, token } = payload;
  const { other: earlier, ...last } = state.changes.get(resource) ?? {};
  const other = "stepId" in last && last.stepId !== stepId ? last : earlier;
  const change = {
    stepId,
    version,
    atMs: epochMsOf(timestamp),
    ...(token !== undefined && { token }),
    ...(other && { other }),
  };
  return { ...state, changes: state.changes.set(resource, change) };
}

function evolveConflictDetected(
  state: OpenCoordination,
  event: FactEvent & { type: "conflict.detected" },
): OpenCoordination {
  const { conflictId, contest } = event.payload;
  assertInvariant(
    state.conflicts.every((conflict) => conflict.conflictId !== conflictId),
    `A3: conflict ${conflictId} detected twice: ${event.eventId}`,
  );
  const { reviewByMs } = contest ?? {};
  return {
    ...state,
    conflicts: [...state.conflicts, { ...event.payload, detectedEventId: event.eventId }],
    ...(reviewByMs !== undefined && { reviews: state.reviews.set(conflictId, reviewByMs) }),
  };
}

function evolveConflictResolved(
  state: OpenCoordination,
  event: FactEvent & { type: "conflict.resolved" },
): OpenCoordination {
  const { conflictId } = event.payload;
  const index = state.conflicts.findLastIndex((conflict) => conflict.conflictId === conflictId);
  const conflict = state.conflicts[index];
  assertInvariant(
    conflict !== undefined && !conflict.resolution,
    `A3: resolution without an open conflict: ${event.eventId}`,
  );
  const resolvedAtMs = epochMsOf(event.timestamp);
  return {
    ...state,
    conflicts: state.conflicts.with(index, { ...conflict, resolution: event.payload, resolvedAtMs }),
    reviews: state.reviews.remove(conflictId),
  };
}

/** True for a step of the coordination; its owner counts as one. */
function hasStep({ steps }: OpenCoordination, stepId: StepId): boolean {
  return stepId === OWNER_STEP_ID || steps.has(stepId);
}
