/**
 * Owns: everything that holds a session, from its own step up to the owner. H3 what works for what is the ledger's record for the
 * session keys, across coordinations; for a session that the ledger does not know it is the host's own record of who spawned it.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import { CoordinationError } from "../../contracts/errors.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import {
  listBoundsOfStep,
  type MergedTree,
  type PrivilegeBound,
  type PrivilegedStep,
} from "../../privileges/privilege-bound.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { RunLog } from "../log/run-log.ts";
import { findWorktreeOfStep } from "../attempts/worktree-name.ts";
import { findStepOfChild, type StepOfChild } from "../log/step-of-child.ts";

export interface SessionBounds {
  /** The nearest step first. */
  readonly bounds: readonly PrivilegeBound[];
  /** The step that the session works on, or else the nearest one above it; absent for an owner. */
  readonly step?: PrivilegedStep;
  /** The ledger has a step of this very session. */
  readonly isKnown: boolean;
  /** Privileges of a pruned run held the session or one above it, or a gate the session: nobody can tell what it may do. */
  readonly isPruned?: true;
  /** The worktrees of the isolated steps on the way up. */
  readonly worktrees: readonly MergedTree[];
}

export interface BoundsDependencies {
  readonly store: Pick<LedgerStore, "find" | "pruned">;
  readonly runs: Pick<RunLog, "state">;
  /** Absent: worktrees are not asked for. */
  readonly refOf?: Parameters<typeof findWorktreeOfStep>[0]["refOf"];
}

/** The host's record of who spawned a session; `undefined` where nobody did. */
export type ParentOf = (session: SessionKey) => SessionKey | undefined;

/**
 * Returns the privileges that bind a session: those of its own step and of the steps of all sessions above it, with
 * whether a pruned run still holds it. @throws CoordinationError where the ledger cannot be read, or the way up has no
 * end: then nothing is known.
 */
export async function findBoundsOfSession(
  dependencies: BoundsDependencies,
  session: SessionKey,
  parentOf: ParentOf,
): Promise<SessionBounds> {
  const steps: PrivilegedStep[] = [];
  let isKnown = false;
  let above: SessionKey | undefined = session;
  for (let depth = 0; above !== undefined; depth += 1) {
    if (depth >= BOUNDS.privilegeDepthMax)
      throw new CoordinationError(
        "INVARIANT_VIOLATED",
        `more than ${BOUNDS.privilegeDepthMax} sessions above ${session}`,
      );
    const childStep = await findStepOfChild(dependencies, above);
    const step = childStep && createPrivilegedStep(dependencies, childStep, above);
    if (step) steps.push(step);
    if (depth === 0) isKnown = step !== undefined;
    if (!childStep && (await isBoundByPrunedRun(dependencies, above, depth)))
      return { ...combineSteps(steps), isKnown, isPruned: true };
    above = childStep ? childStep.step.spec.sourceSession : parentOf(above);
  }
  return { ...combineSteps(steps), isKnown };
}

/**
 * True where a pruned run still holds the session: by privileges or, for the session asked about (`depth` 0), by a
 * gate, which does not hold the sessions that its own session spawned.
 */
async function isBoundByPrunedRun(
  { store }: BoundsDependencies,
  session: SessionKey,
  depth: number,
): Promise<boolean> {
  const bindings = await store.pruned.listBindings(session);
  return bindings.includes("privilege") || (depth === 0 && bindings.length > 0);
}

/** Combines the steps from a session up to its owner. */
function combineSteps(steps: readonly PrivilegedStep[]): Omit<SessionBounds, "isKnown"> {
  const [nearest] = steps;
  return {
    bounds: steps.flatMap(listBoundsOfStep),
    worktrees: steps.flatMap(({ worktree }) => worktree ?? []),
    ...(nearest && { step: nearest }),
  };
}

function createPrivilegedStep(
  { refOf }: BoundsDependencies,
  { state, step }: StepOfChild,
  session: SessionKey,
): PrivilegedStep {
  const { spec } = step;
  const worktree = refOf && findWorktreeOfStep({ refOf }, state, step);
  const { stepId, agentId, planned, privilege } = spec;
  const { coordinationId } = state;
  return {
    coordinationId,
    stepId,
    agentId,
    session,
    isPlanned: planned !== undefined,
    ...(privilege && { privilege }),
    ...(worktree && { worktree }),
  };
}
