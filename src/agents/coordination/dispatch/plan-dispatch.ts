/**
 * Owns: what the runtime should do next about a coordination, and when to look again. Timers are derived from state
 * here and are never the only copy of a fact. Effect ids are derived from state: planning twice plans the same ids.
 */
import { addMs, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import { openStepsOf, type Coordination, type OpenCoordination, type Step } from "../ledger/state.ts";

export type Effect = AskHost | EndCoordination;

/** Ask the host what became of a step, and rule on the answer. */
export interface AskHost {
  readonly kind: "askHost";
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
}

/** End the coordination, unless its owner is still at work on the trace. */
export interface EndCoordination {
  readonly kind: "endCoordination";
  readonly effectId: string;
}

export function planDispatch(state: Coordination, now: EpochMs): Effect[] {
  if (state.kind !== "open") return [];
  const open = openStepsOf(state);
  if (open.length === 0) return now >= settlesAt(state) ? [endCoordination(state)] : [];
  return open.filter((step) => now >= dueAt(state, step)).map((step) => askHost(state, step));
}

/** At start every open step is reconciled with the host, due or not. */
export function planRecovery(state: Coordination): Effect[] {
  return state.kind === "open" ? openStepsOf(state).map((step) => askHost(state, step)) : [];
}

/** When `planDispatch` has something to do at the latest; `undefined` when never. */
export function nextDeadline(state: Coordination): EpochMs | undefined {
  if (state.kind !== "open") return undefined;
  const due = openStepsOf(state).map((step) => dueAt(state, step));
  return due.length === 0 ? settlesAt(state) : due.reduce((earliest, at) => (at < earliest ? at : earliest));
}

function settlesAt(state: OpenCoordination): EpochMs {
  return addMs(state.changedAtMs, state.created.settleMs);
}

/** The host enforces a spawn's own limit from a later start than ours, and tells of it later still. */
export function overdueAt(
  state: OpenCoordination,
  { deadlineAtMs }: { readonly deadlineAtMs: EpochMs },
): EpochMs {
  return addMs(deadlineAtMs, state.created.acknowledgeMs);
}

function dueAt(state: OpenCoordination, { phase, admittedAtMs }: Step): EpochMs {
  if (phase.status === "running") return overdueAt(state, phase);
  if (phase.status === "dispatched") return addMs(phase.dispatchedAtMs, state.created.acknowledgeMs);
  return admittedAtMs;
}

function askHost(state: OpenCoordination, { spec, phase }: Step): AskHost {
  const key = idempotencyKey(state.coordinationId, spec.stepId, phase.attempt);
  return { kind: "askHost", effectId: `${key}:ask`, stepId: spec.stepId, attempt: phase.attempt };
}

function endCoordination(state: OpenCoordination): EndCoordination {
  return { kind: "endCoordination", effectId: `${state.coordinationId}:end` };
}
