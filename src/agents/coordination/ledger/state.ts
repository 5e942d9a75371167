/**
 * Owns: the shape of a coordination's folded state. Does not own: how events change it (`evolve.ts`) or what may
 * happen next (`dispatch/decide.ts`).
 */
import type {
  ContentRef,
  FactPayloads,
  StepAdmitted,
  StepError,
  TerminalStatus,
} from "../contracts/facts.ts";
import type { CoordinationId, EpochMs, EventId, SessionKey, StepId } from "../contracts/ids.ts";

export type Coordination = UnopenedCoordination | OpenCoordination | EndedCoordination;

/** Nothing is in the log yet. */
export interface UnopenedCoordination {
  readonly kind: "unopened";
  readonly coordinationId: CoordinationId;
  readonly nextSequence: 0;
}

export interface OpenCoordination extends Known {
  readonly kind: "open";
}

export interface EndedCoordination extends Known {
  readonly kind: "ended";
  readonly status: TerminalStatus;
  readonly endedAtMs: EpochMs;
}

interface Known {
  readonly coordinationId: CoordinationId;
  readonly nextSequence: number;
  readonly created: FactPayloads["coordination.created"];
  readonly createdEventId: EventId;
  readonly createdAtMs: EpochMs;
  /** The time of the newest event. */
  readonly changedAtMs: EpochMs;
  /** The newest fact, which causes the terminal event. */
  readonly lastFactId: EventId;
  /** By step id, in order of admission. */
  readonly steps: ReadonlyMap<StepId, Step>;
  /** Orchestrator turns so far (`runOrchestrator.decided.iteration`). */
  readonly iterations: number;
  readonly conflicts: readonly Conflict[];
  readonly escalations: readonly Escalation[];
}

export interface Step {
  readonly spec: StepAdmitted;
  readonly admittedAtMs: EpochMs;
  readonly phase: StepPhase;
  /** The newest fact about this step: the cause of the next one. */
  readonly lastFactId: EventId;
  /** The acknowledgement, which causes what the child itself spawns. */
  readonly acknowledgedEventId?: EventId;
  /** The newest OpenWOP event of the step's handoff chain: the cause of the next one. */
  readonly chainEventId?: EventId;
}

export type StepPhase = WaitingPhase | DispatchedPhase | RunningPhase | EndedPhase;

export interface WaitingPhase {
  readonly status: "waiting";
  readonly attempt: 0;
}

/** The intent is recorded; whether the host acted on it is not known yet. */
export interface DispatchedPhase {
  readonly status: "dispatched";
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly deadlineAtMs: EpochMs;
}

export interface RunningPhase extends Child {
  readonly status: "running";
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly acknowledgedAtMs: EpochMs;
  readonly deadlineAtMs: EpochMs;
}

export interface EndedPhase {
  readonly status: "completed" | "failed" | "cancelled" | "timed_out";
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly endedAtMs: EpochMs;
  /** Absent where the host refused the spawn or never confirmed it. */
  readonly child?: Child;
  readonly error?: StepError;
  readonly output?: ContentRef;
}

export interface Child {
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

export type Conflict = FactPayloads["conflict.detected"] & {
  readonly detectedEventId: EventId;
  readonly resolution?: FactPayloads["conflict.resolved"];
};

export type Escalation = FactPayloads["coordination.escalated"];

export function isOpen(step: Step): boolean {
  const { status } = step.phase;
  return status === "waiting" || status === "dispatched" || status === "running";
}

export function childOf(phase: StepPhase): Child | undefined {
  if (phase.status === "running") return phase;
  return phase.status === "waiting" || phase.status === "dispatched" ? undefined : phase.child;
}

export function unopened(coordinationId: CoordinationId): UnopenedCoordination {
  return { kind: "unopened", coordinationId, nextSequence: 0 };
}
