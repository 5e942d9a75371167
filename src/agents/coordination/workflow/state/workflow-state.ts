/** Owns: what a workflow run is, folded from its events. */
import type { Map as ImmutableMap } from "immutable";
import type { CoordinationId, EpochMs, EventId } from "../../contracts/ids.ts";
import { findEventId, type RunOrigin } from "../../contracts/workflows/run-origin.ts";
import type {
  DrainPolicy,
  InterruptKind,
  OrchestratorDecision,
  WorkflowPayloads,
} from "../../contracts/workflows/workflow-events.ts";
import type { Invocation } from "./invocation.ts";

export interface WorkflowRun {
  readonly runId: CoordinationId;
  /** Where the log of a fork begins (docs/adr/0013). */
  readonly origin?: RunOrigin;
  readonly nextSequence: number;
  readonly changedAtMs: EpochMs;
  readonly startedAtMs: EpochMs;
  readonly startedEventId: EventId;
  readonly started: WorkflowPayloads["run.started"];
  readonly phase: RunPhase;
  readonly nodes: ImmutableMap<string, NodeRun>;
  /** Values that changed since the run started. */
  readonly variables: ImmutableMap<string, unknown>;
  /** Values of changes that later changes replaced, by variable, the oldest first. */
  readonly replacedValues?: ImmutableMap<string, readonly unknown[]>;
  /** The size of the values in its log, in UTF-16 code units of JSON. */
  readonly chars: number;
  /** Times that a node was started, over all nodes. */
  readonly executions: number;
  readonly orchestrator: OrchestratorState;
  /** The newest ruling on the work of each worker behind a gate, by `reviewKey`. */
  readonly reviews: ImmutableMap<string, Review>;
  /** The newest decision of an agent, which people have not agreed to. */
  readonly actor?: { readonly agentId: string; readonly confidence?: number };
  /** Milliseconds in which nothing worked because people were waited for, or the run was paused. */
  readonly waitedMs: number;
  readonly waitingSinceMs?: EpochMs;
  /** The sequence of the newest `run.resuming` that says how long nobody drove the run. */
  readonly awaySequence?: number;
  /** A pause that begins when the running nodes have ended. */
  readonly pauseRequested?: { readonly drainPolicy: DrainPolicy; readonly reason?: string | undefined };
}

export type RunPhase =
  | { readonly kind: "open" }
  | { readonly kind: "paused"; readonly atMs: EpochMs }
  | {
      readonly kind: "completed";
      readonly atMs: EpochMs;
      readonly outputs: Readonly<Record<string, unknown>>;
    }
  | {
      readonly kind: "failed";
      readonly atMs: EpochMs;
      readonly error: WorkflowPayloads["run.failed"]["error"];
      readonly nodeId?: string;
    }
  | { readonly kind: "cancelled"; readonly atMs: EpochMs; readonly reason?: string };

export type NodeStatus = "running" | "suspended" | "completed" | "failed" | "skipped" | "cancelled";

export interface NodeRun {
  readonly nodeId: string;
  readonly status: NodeStatus;
  /** Times that it was started, retries included. */
  readonly executions: number;
  /** Retries since it was started for the newest reason. */
  readonly attempt: number;
  /** It is to be tried again, and that attempt has not begun. */
  readonly isRetrying?: true;
  readonly startedAtMs: EpochMs;
  readonly startedSequence: number;
  readonly startedEventId: EventId;
  /** When it was started for the newest reason, whatever retries followed. */
  readonly enteredSequence: number;
  readonly enteredAtMs: EpochMs;
  /** The variables when it was started or, later, began to hand over to its newest worker: a child stays where they sent it. */
  readonly variablesAtStart: ImmutableMap<string, unknown>;
  /** When and where it ended; `undefined` while it is at work. */
  readonly endedSequence?: number;
  readonly outputs?: Readonly<Record<string, unknown>>;
  readonly error?: WorkflowPayloads["node.failed"]["error"];
  /** The open one. */
  readonly interrupt?: Interrupt;
  /** Since it was started, the oldest first. */
  readonly answers: readonly InterruptAnswer[];
  /** Those from before it was started, the oldest first: whoever gives one again is told that it counted. */
  readonly earlierAnswers?: readonly InterruptAnswer[];
  /** Its executions and skips before, the oldest first: others may work with what they put out, long after it began again. */
  readonly earlierExecutions?: readonly EndedExecution[];
  /** Interrupts it has raised in this run. */
  readonly interrupts: number;
  /** How far the handing over of a node is. */
  readonly handoff?: Handoff;
  /** The runs that it started as children over all of its executions, each once. */
  readonly childRunIds?: readonly string[];
  /** Children of it that completed, over all of its executions. */
  readonly completedChildren: number;
  /** Entries that it has kept in memory since it was started, the oldest first. */
  readonly memoryIds: readonly string[];
  /** A tool call of it that has not returned, and its arguments. */
  readonly openCall?: { readonly eventId: EventId; readonly sequence: number; readonly inputs: unknown };
  /** How far an agent of a manifest is. */
  readonly invocation?: Invocation;
  /** How often an edge that closes a loop has fired it again. */
  readonly loopbacks: number;
}

/** An execution of a node that has ended, or its skip. */
export type EndedExecution = Pick<NodeRun, "status" | "outputs" | "startedSequence" | "enteredSequence"> & {
  readonly endedSequence: number;
};

export interface Interrupt {
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly key: string;
  readonly atMs: EpochMs;
  readonly eventId: EventId;
  readonly reason?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
  readonly resumeSchema?: Readonly<Record<string, unknown>>;
  /** Absent: the event that tells what is asked is not in the log, because a fork was cut off before it. */
  readonly isAsked?: true;
  /** Votes of a gate that needs several. */
  readonly votes: readonly Vote[];
}

export interface Vote {
  readonly by: string;
  readonly action: string;
}

/** An answer to an interrupt, or that nobody answered in time. */
export interface InterruptAnswer {
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly resumeValue: unknown;
  /** Absent where nobody answered in time. */
  readonly by?: string;
  readonly eventId: EventId;
  /** The question. */
  readonly asked: Pick<Interrupt, "data" | "reason">;
  /** Nobody answered in time. */
  readonly isExpired?: true;
}

/** The decisions of the supervisors of a run so far. */
export interface OrchestratorState {
  readonly agentId?: string;
  /** Decisions so far, the held one not counted. */
  readonly decided: number;
  /** Times that a worker was sent back to its work; each counts as a turn of the loop. */
  readonly revisions: number;
  readonly last?: RecordedDecision;
  /** Those before the last, the oldest first: a dispatch carries out the one that it was started with. */
  readonly earlier?: readonly RecordedDecision[];
  /** Decisions below the floor, which wait for people: one of each supervisor at most. */
  readonly held?: readonly HeldDecision[];
}

export interface RecordedDecision {
  readonly decision: OrchestratorDecision;
  readonly eventId: EventId;
  readonly sequence: number;
  readonly nodeId: string;
}

export interface HeldDecision {
  readonly nodeId: string;
  readonly decision: OrchestratorDecision;
  readonly sequence: number;
}

/** The worker that is being dispatched: phases of the handoff state machine. */
export interface Handoff {
  /** In the decision's list; 0 for a sub-workflow. */
  readonly index: number;
  readonly phase: "dispatching" | "running" | "ended" | "harvested";
  readonly chainEventId: EventId;
  readonly workerId: string;
  readonly childRunId?: string;
  /** The sequence of the event that names the child: one that a fork took is its source's. */
  readonly dispatchedSequence?: number;
  readonly childStatus?: "completed" | "failed" | "cancelled";
  readonly error?: WorkflowPayloads["run.failed"]["error"];
  /** How often this worker was sent back before, and the keys of what it did not meet. */
  readonly revision: number;
  readonly unmet: readonly string[];
  /** RFC 0090: the verdict on what the child produced. */
  readonly verdict?: RecordedVerdict;
  /** The answer of people who were asked whether it is merged. */
  readonly answer?: InterruptAnswer;
  /** The child says that it did not reach its goal. */
  readonly gaveUp?: true;
  /** RFC 0063: of what was harvested. */
  readonly attestation?: WorkflowPayloads["core.workflowChain.event"]["attestation"];
  /** The workers of the decision before this one, in its order. */
  readonly earlier?: readonly HandedOver[];
}

/** How the work of a worker ended. */
export type HandedOver = Pick<Handoff, "workerId" | "phase" | "childStatus" | "gaveUp">;

export type RecordedVerdict = Pick<
  WorkflowPayloads["agent.verified"],
  "agentId" | "verdict" | "criteria" | "confidence"
>;

/** The fate of a worker's output. */
export interface Review {
  readonly nodeId: string;
  readonly workerId: string;
  readonly childRunId?: string;
  readonly verdict?: RecordedVerdict;
  readonly isMerged: boolean;
  /** The ruling of people, where they were asked. */
  readonly ruling?: "accepted" | "rejected";
}

/** Returns the key under which a run keeps the review of a node's worker. */
export function createReviewKey(nodeId: string, workerId: string): string {
  return `${nodeId}\n${workerId}`;
}

/** True for the phase of a run that has ended, however it ended. */
export function isEndedPhase({ kind }: RunPhase): boolean {
  return kind !== "open" && kind !== "paused";
}

/** True for a node that is running, or suspended until its question is answered. */
export function isAtWork({ status }: NodeRun): boolean {
  return status === "running" || status === "suspended";
}

/** A run by its id and the source that its log begins with. */
type RunOfLog = Pick<WorkflowRun, "runId" | "origin">;

/** True for a node that is not at work, because it ended or was skipped. */
export function hasEnded(nodeRun: NodeRun): nodeRun is NodeRun & EndedExecution {
  return nodeRun.endedSequence !== undefined;
}

/**
 * Returns the newest execution of a node that had ended before the event of that sequence; `undefined` where none had.
 */
export function findExecutionEndedBefore(
  nodeRun: NodeRun | undefined,
  sequence: number,
): EndedExecution | undefined {
  if (!nodeRun) return undefined;
  if (hasEnded(nodeRun) && nodeRun.endedSequence < sequence) return nodeRun;
  return nodeRun.earlierExecutions?.findLast(({ endedSequence }) => endedSequence < sequence);
}

/**
 * Returns the run id that events inside of a run's log name: for a replay it is the source's, so that both logs are
 * the same.
 */
export function findLogIdentity({ runId, origin }: RunOfLog): CoordinationId {
  return origin?.identity ?? runId;
}

/** Returns the id of a run's event of that sequence, which is the source's for an event that was taken from there. */
export function computeEventId({ runId, origin }: RunOfLog, sequence: number): EventId {
  return findEventId(runId, origin, sequence);
}

/**
 * True for a fork that has not yet taken all events from its source. Nothing is planned for it, and nobody may ask it
 * for anything.
 */
export function isMaterialising({ origin, nextSequence, phase }: WorkflowRun): boolean {
  return origin !== undefined && nextSequence < origin.until && !isEndedPhase(phase);
}

/** True for a fork that has taken all events from its source, and has no event of its own yet. */
export function isAtFork({ origin, nextSequence, phase }: WorkflowRun): boolean {
  return origin !== undefined && nextSequence === origin.until && !isEndedPhase(phase);
}
