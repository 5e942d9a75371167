/** Owns: which claims of others stand against a requester, and which are of those that it works for: what they hold, they had it work on. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { OWNER_STEP_ID, type CoordinationId, type StepId } from "../../contracts/ids.ts";
import type { Coordination, KnownCoordination } from "../../ledger/state.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { Participant, Participants } from "./participants.ts";

export interface SuperiorDependencies extends Pick<ArbiterDependencies, "runs"> {
  readonly participants: Pick<Participants, "ownedBy">;
}

export interface SplitClaims {
  /** Claims of those that stand against the requester. */
  readonly holders: readonly ClaimEntry[];
  /** Claims of those that the requester works for. */
  readonly delegated: readonly ClaimEntry[];
}

/**
 * Splits claims of others into those whose holders the requester works for (`delegated`) and those that stand against
 * it (`holders`). Its own claims are left out.
 */
export async function splitClaims(
  dependencies: SuperiorDependencies,
  participant: Participant,
  claims: readonly ClaimEntry[],
): Promise<SplitClaims> {
  const { runId, stepId } = participant;
  const others = claims.filter((claim) => claim.runId !== runId || claim.stepId !== stepId);
  // Mostly there are none; then the coordinations around this one need not be read.
  if (others.length === 0) return { holders: [], delegated: [] };
  const isSuperior = await createSuperiorCheck(dependencies, participant);
  return {
    holders: others.filter((claim) => !isSuperior(claim)),
    delegated: others.filter(isSuperior),
  };
}

/**
 * Returns the check whether a claim is of somebody who has the requester work. These are the steps that it descends
 * from and the owner in whatever it owns. The same holds for the step whose child submitted its plan, and so on
 * outwards.
 */
async function createSuperiorCheck(
  { participants, runs }: SuperiorDependencies,
  { stepId, state }: Participant,
): Promise<(claim: ClaimEntry) => boolean> {
  const owned = new Set<CoordinationId>();
  const steps = new Set<string>();
  let around: Coordination = state;
  let worker = stepId;
  for (let plans = 0; plans <= BOUNDS.planNestingMax && around.kind !== "unopened"; plans += 1) {
    const { coordinationId, created }: KnownCoordination = around;
    for (const runId of [coordinationId, ...participants.ownedBy(created.ownerSession)]) owned.add(runId);
    for (const superior of listSuperiors(around, worker)) steps.add(nameStepInRun(coordinationId, superior));
    if (!created.parent) break;
    worker = created.parent.stepId;
    // Also where nothing more can be read of the outer plan.
    steps.add(nameStepInRun(created.parent.coordinationId, worker));
    const outer: Coordination | undefined = await runs
      .state(created.parent.coordinationId)
      .catch(ignoreDamage);
    if (!outer) break;
    around = outer;
  }
  return ({ runId, stepId: holder }) =>
    holder === OWNER_STEP_ID ? owned.has(runId) : steps.has(nameStepInRun(runId, holder));
}

/** Lists the steps of the plan that a step works for: whoever spawned it, and so on. */
export function listSuperiors({ steps }: Pick<KnownCoordination, "steps">, stepId: StepId): StepId[] {
  const superiors: StepId[] = [];
  let superior = steps.get(stepId)?.spec.parentStepId;
  while (superior !== undefined) {
    superiors.push(superior);
    superior = steps.get(superior)?.spec.parentStepId;
  }
  return superiors;
}

function nameStepInRun(runId: CoordinationId, stepId: StepId): string {
  return `${runId}\n${stepId}`;
}
