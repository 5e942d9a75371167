/**
 * Owns: everything that holds a session, from its own step up to the owner. H3 what works for what is the ledger's record for the
 * session keys, across coordinations; for a session that the ledger does not know it is the host's own record of who spawned it.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import { CoordinationError } from "../../contracts/errors.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import {
  listBoundsOfStep,
  type PrivilegeBound,
  type PrivilegedStep,
} from "../../privileges/privilege-bound.ts";
import { stepOfChild, type StepOfChild } from "../log/step-of-child.ts";

export interface SessionBounds {
  /** The nearest step first. */
  readonly bounds: readonly PrivilegeBound[];
  /** The step that the session works on, or else the nearest one above it; absent for an owner. */
  readonly step?: PrivilegedStep;
  /** The ledger has a step of this very session. */
  readonly isKnown: boolean;
}

export type BoundsDependencies = Parameters<typeof stepOfChild>[0];

/** The host's record of who spawned a session; `undefined` where nobody did. */
export type ParentOf = (session: SessionKey) => SessionKey | undefined;

/** @throws CoordinationError where the ledger cannot be read, or the way up has no end: then nothing is known. */
export async function findBoundsOfSession(
  dependencies: BoundsDependencies,
  session: SessionKey,
  parentOf: ParentOf,
): Promise<SessionBounds> {
  const bounds: PrivilegeBound[] = [];
  let nearest: PrivilegedStep | undefined;
  let isKnown = false;
  let above: SessionKey | undefined = session;
  for (let depth = 0; above !== undefined; depth += 1) {
    if (depth >= BOUNDS.privilegeDepthMax)
      throw new CoordinationError(
        "INVARIANT_VIOLATED",
        `more than ${BOUNDS.privilegeDepthMax} sessions above ${session}`,
      );
    const found = await stepOfChild(dependencies, above);
    const step = found && createPrivilegedStep(found, above);
    if (step) bounds.push(...listBoundsOfStep(step));
    nearest ??= step;
    if (depth === 0) isKnown = step !== undefined;
    above = found ? found.step.spec.sourceSession : parentOf(above);
  }
  return { bounds, isKnown, ...(nearest && { step: nearest }) };
}

function createPrivilegedStep({ state, step: { spec } }: StepOfChild, session: SessionKey): PrivilegedStep {
  const { stepId, agentId, planned, privilege } = spec;
  const { coordinationId } = state;
  return {
    coordinationId,
    stepId,
    agentId,
    session,
    isPlanned: planned !== undefined,
    ...(privilege && { privilege }),
  };
}
