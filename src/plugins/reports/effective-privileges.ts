/** Owns: everything that holds each step of a coordination, its own privilege and those of the steps above it, read from a ledger. */
import type { CoordinationId, SessionKey, StepId } from "../../agents/coordination/contracts/ids.ts";
import type { Privilege } from "../../agents/coordination/contracts/privilege.ts";
import {
  listBoundsOfStep,
  type PrivilegeBound,
} from "../../agents/coordination/privileges/privilege-bound.ts";
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import { readStoredState } from "../../agents/coordination/runtime/log/read-state.ts";
import { findBoundsOfSession } from "../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

/** By step, the nearest first; steps that nothing holds are left out. */
export type EffectivePrivileges = ReadonlyMap<StepId, readonly PrivilegeBound[]>;

/**
 * Reads the bounds on the privileges of each step of a coordination, its own and those of the sessions above it, the
 * nearest first; steps without bounds are left out. @throws CoordinationError as `LedgerStore.find` and
 * `readStoredState`
 */
export async function readEffectivePrivileges(
  reader: ReportedLedger,
  { coordinationId, steps }: CoordinationView,
): Promise<EffectivePrivileges> {
  const states = new Map<CoordinationId, ReturnType<typeof readStoredState>>();
  const state = (runId: CoordinationId): ReturnType<typeof readStoredState> => {
    const reading = states.get(runId) ?? readStoredState(reader, runId);
    states.set(runId, reading);
    return reading;
  };
  const above = new Map<SessionKey, readonly PrivilegeBound[]>();
  const effective = new Map<StepId, readonly PrivilegeBound[]>();
  for (const step of steps) {
    const { sourceSession: source } = step;
    const dependencies = { store: reader, runs: { state } };
    const inherited =
      above.get(source) ?? (await findBoundsOfSession(dependencies, source, () => undefined)).bounds;
    above.set(source, inherited);
    const bounds = [...listOwnBounds(coordinationId, step), ...inherited];
    if (bounds.length > 0) effective.set(step.stepId, bounds);
  }
  return effective;
}

function listOwnBounds(coordinationId: CoordinationId, step: StepView): PrivilegeBound[] {
  const { stepId, agentId, childSessionKey, sourceSession, fanIn, privilege } = step;
  return listBoundsOfStep({
    coordinationId,
    stepId,
    agentId,
    session: childSessionKey ?? sourceSession,
    isPlanned: fanIn !== undefined,
    ...(privilege && { privilege }),
  });
}

/** The bounds on a step, as the commands print them with `--json`. */
export interface EffectivePrivilege extends Privilege {
  readonly by: PrivilegeBound["by"];
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
}

/**
 * Returns the steps, each with the bounds that hold its privileges, the nearest first; a step without any stays as it
 * is.
 */
export function addEffectivePrivileges(
  steps: readonly StepView[],
  effective: EffectivePrivileges,
): (StepView & { readonly effectivePrivilege?: readonly EffectivePrivilege[] })[] {
  return steps.map((step) => {
    const bounds = effective.get(step.stepId);
    return { ...step, ...(bounds && { effectivePrivilege: bounds.map(createPrivilegeJson) }) };
  });
}

function createPrivilegeJson({ by, coordinationId, stepId, privilege }: PrivilegeBound): EffectivePrivilege {
  return { by, coordinationId, stepId, ...privilege };
}
