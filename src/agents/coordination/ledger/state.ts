/**
 * Owns: the shape of a coordination's folded state. Does not own: how events change it (`evolve.ts`) or what may
 * happen next (`dispatch/decide.ts`).
 */
import type { Map as ImmutableMap, OrderedMap, OrderedSet } from "immutable";
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
  /** By step id, in order of admission. Persistent: a change costs the same however many steps there are. */
  readonly steps: OrderedMap<StepId, Step>;
  /** The steps that have not ended, so that looking after them does not cost what the ended ones would. */
  readonly openSteps: OrderedSet<StepId>;
  /** The step that a child session works on, or worked on. */
  readonly children: ImmutableMap<SessionKey, StepId>;
  readonly endedSteps: Readonly<Record<EndedPhase["status"], number>>;
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
  /** Absent where the host never confirmed the spawn. */
  readonly acknowledgedAtMs?: EpochMs;
  readonly deadlineAtMs: EpochMs;
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

export function isEnded(phase: StepPhase): phase is EndedPhase {
  return phase.status !== "waiting" && phase.status !== "dispatched" && phase.status !== "running";
}

/** The steps that have not ended, in order of admission. */
export function openStepsOf(state: OpenCoordination | EndedCoordination): Step[] {
  return state.openSteps
    .toArray()
    .map((stepId) => state.steps.get(stepId))
    .filter((step) => step !== undefined);
}

export function childOf(phase: StepPhase): Child | undefined {
  if (phase.status === "running") return phase;
  return phase.status === "waiting" || phase.status === "dispatched" ? undefined : phase.child;
}

export function unopened(coordinationId: CoordinationId): UnopenedCoordination {
  return { kind: "unopened", coordinationId, nextSequence: 0 };
}
