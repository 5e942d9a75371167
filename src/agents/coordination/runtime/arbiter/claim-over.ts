/** Owns: claiming what people let a requester have: whoever else holds it loses it first, in whatever coordination. */
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { ResourceRequest, SettleReview } from "../../contracts/commands.ts";
import { CoordinationError } from "../../contracts/errors.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../contracts/ids.ts";
import { listApprovedReviews } from "../../dispatch/conflict-questions.ts";
import { canStepWrite } from "../../dispatch/decide-claims.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import type { AssessedTarget } from "./assessed-target.ts";
import { findClaimOfRequester, findHolders, type OppositionDependencies } from "./find-opposition.ts";
import type { Participant } from "./participants.ts";
import { ruleAgainAfterRace } from "../log/ruling-again.ts";

type ClaimOverDependencies = Pick<ArbiterState, "runs" | "store" | "clock" | "conflicts">;

const CLAIMS_MAX = 1_024;

/** A claim that people let a requester have, before it has a token. */
interface WantedClaim {
  readonly resource: string;
  readonly expiresAtMs: EpochMs;
  readonly now: EpochMs;
}

interface PreparedClaim {
  readonly fresh: NonNullable<SettleReview["claim"]>;
  /** The requester's claim in force on the resource or on a folder above it. */
  readonly held?: ClaimEntry;
}

/**
 * Ends the claims of others on the resource, and returns the new claim that the requester can get and the one that it
 * has already.
 */
async function prepareClaimOverOthers(
  arbiter: ClaimOverDependencies,
  { runId, stepId }: Pick<Participant, "runId" | "stepId">,
  { resource, expiresAtMs, now }: WantedClaim,
): Promise<PreparedClaim> {
  const { claims, lastToken } = await arbiter.store.overlapping({ resource, atMs: now, limit: CLAIMS_MAX });
  const others = claims.filter((claim) => claim.runId !== runId || claim.stepId !== stepId);
  // Also who claimed it while people thought about it.
  await endOverlappingClaims(arbiter, { claims: others, resource, because: "preempted" });
  const state = await arbiter.runs.state(runId);
  const claimed =
    state.kind === "open"
      ? await findClaimOfRequester(arbiter, { runId, stepId, state }, { resource, now })
      : undefined;
  const fresh = { token: lastToken + 1, expiresAtMs };
  return { fresh, ...(claimed && { held: claimed }) };
}

/**
 * True when the ruling on an assessed target gives it to the requester although others hold it. They lose their claims
 * only when the call happens.
 */
export function isWonOverHolders({ ruling, holders }: AssessedTarget): boolean {
  return ruling?.kind === "granted" && holders.length > 0;
}

interface ApprovedTarget {
  readonly one: AssessedTarget;
  /** Absent where people were not asked about it. */
  readonly conflictId: string | undefined;
}

/**
 * Records the requester's claim on a target of a call that people approved through the host, which makes the call
 * whatever is returned, and returns the claim's token. `undefined` where the requester gets no claim: its question was
 * closed before they answered, or a step that has not lost it by the rules holds what they were not asked about.
 * @throws CoordinationError `CLAIM_CONFLICT` where the token is stale, so that the caller rules again
 */
export async function claimForApproved(
  arbiter: ClaimOverDependencies & OppositionDependencies & Pick<ArbiterState, "logger">,
  participant: Participant,
  target: ApprovedTarget,
): Promise<number | undefined> {
  const { one, conflictId } = target;
  const { resource } = one.request;
  const { runId, stepId } = participant;
  const now = arbiter.clock.now();
  if (await canClaim(arbiter, participant, { ...target, now })) {
    const expiresAtMs = addMs(now, arbiter.conflicts.leaseMs);
    const wanted = { resource, expiresAtMs, now };
    const prepared = await prepareClaimOverOthers(arbiter, participant, wanted);
    const claim = chooseClaim(prepared, target);
    const request = {
      resource,
      ...claim,
      ...(prepared.held && { held: prepared.held.token }),
      ...pickUnrecordedContest(one),
    };
    const submitted = await arbiter.runs.submit(runId, [
      conflictId === undefined
        ? { type: "requestResources", stepId, requests: [request] }
        : createApproval(conflictId, claim),
    ]);
    if (submitted.kind === "refused" && submitted.code === "STALE_TOKEN")
      throw new CoordinationError("CLAIM_CONFLICT", submitted.reason);
    const { state } = submitted;
    if (state.kind === "open" && state.claims.get(claim.token)?.stepId === stepId) return claim.token;
  }
  arbiter.logger.warn({ runId, stepId }, "an approved write happens without a claim on what it changes");
  return undefined;
}

/**
 * Returns the claim that the requester has already, else the new one. An approval has a claim of its own: one on a
 * folder above the resource does not do.
 */
function chooseClaim(
  { fresh, held: renewed }: PreparedClaim,
  { one, conflictId }: ApprovedTarget,
): PreparedClaim["fresh"] {
  const isRenewed = renewed && (conflictId === undefined || renewed.resource === one.request.resource);
  return isRenewed ? { ...fresh, token: renewed.token } : fresh;
}

/** Picks the conflict that the requester wins by the rules over holders. Any other is recorded already. */
function pickUnrecordedContest(one: AssessedTarget): Pick<ResourceRequest, "contest"> {
  const { contest } = one.request;
  return isWonOverHolders(one) && contest ? { contest } : {};
}

/**
 * True where the requester can still get its claim. Looked at before others' claims end: they keep what it cannot get.
 */
async function canClaim(
  arbiter: ClaimOverDependencies & OppositionDependencies,
  participant: Participant,
  { one, conflictId, now }: ApprovedTarget & { readonly now: EpochMs },
): Promise<boolean> {
  const state = await arbiter.runs.state(participant.runId);
  if (state.kind !== "open" || !canStepWrite(state, participant.stepId)) return false;
  if (conflictId !== undefined) return state.reviews.has(conflictId);
  const losers = isWonOverHolders(one) ? one.holders : [];
  const holders = await findHolders(arbiter, participant, { resource: one.request.resource, now });
  return holders.every((holder) => losers.some((loser) => isOfSameStep(loser, holder)));
}

function isOfSameStep(one: ClaimEntry, other: ClaimEntry): boolean {
  return one.runId === other.runId && one.stepId === other.stepId;
}

function createApproval(conflictId: string, claim: NonNullable<SettleReview["claim"]>): SettleReview {
  return { type: "settleReview", conflictId, answer: "approved", claim };
}

/** Claims on a resource that are to end, and why. */
interface ClaimsToEnd {
  readonly claims: readonly ClaimEntry[];
  readonly resource: string;
  readonly because: "preempted" | "delegated";
}

/**
 * Records the end of all claims of the given claims' holders that overlap the resource, also those that there was no
 * room to list. A holder whose log is damaged is passed over: its claims run out.
 */
export async function endOverlappingClaims(
  arbiter: Pick<ArbiterState, "runs">,
  { claims, resource, because }: ClaimsToEnd,
): Promise<void> {
  const holders = new Map(claims.map(({ runId, stepId }) => [`${runId}\n${stepId}`, { runId, stepId }]));
  for (const { runId, stepId } of holders.values()) {
    // Nothing can be recorded in a damaged log: its claims run out.
    if (!(await arbiter.runs.state(runId).catch(ignoreDamage))) continue;
    await arbiter.runs.submit(runId, [{ type: "releaseClaims", because, stepId, within: resource }]);
  }
}

/**
 * Records a claim for each requester of the coordination whose change people approved, and ends the claims of others
 * on it; one that can write no more has its review withdrawn. A claim that could not be given is given at the
 * requester's next call.
 */
export async function claimApprovedChanges(
  arbiter: ClaimOverDependencies,
  runId: CoordinationId,
): Promise<void> {
  const state = await arbiter.runs.state(runId);
  if (state.kind !== "open") return;
  for (const { conflictId, resource, contest } of listApprovedReviews(state)) {
    if (!contest) continue;
    const { requester: stepId } = contest;
    if (!canStepWrite(state, stepId)) {
      // Its command overwrote the file after its step had ended: whoever holds the file keeps it.
      await arbiter.runs.submit(runId, [{ type: "settleReview", conflictId, answer: "withdrawn" }]);
      continue;
    }
    await ruleAgainAfterRace(async () => {
      const now = arbiter.clock.now();
      const expiresAtMs = addMs(now, arbiter.conflicts.leaseMs);
      const wanted = { resource, expiresAtMs, now };
      const { fresh } = await prepareClaimOverOthers(arbiter, { runId, stepId }, wanted);
      const submitted = await arbiter.runs.submit(runId, [createApproval(conflictId, fresh)]);
      if (submitted.kind === "refused") throw new CoordinationError("CLAIM_CONFLICT", submitted.reason);
    });
  }
}
