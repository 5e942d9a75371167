/** Owns: what a workflow run is, folded from its events. */
import type { Map as ImmutableMap } from "immutable";
import type { CoordinationId, EpochMs, EventId } from "../contracts/ids.ts";
import type {
  DrainPolicy,
  InterruptKind,
  OrchestratorDecision,
  WorkflowPayloads,
} from "../contracts/workflow-events.ts";

export interface WorkflowRun {
  readonly runId: CoordinationId;
  readonly nextSequence: number;
  readonly changedAtMs: EpochMs;
  readonly startedAtMs: EpochMs;
  readonly startedEventId: EventId;
  readonly started: WorkflowPayloads["run.started"];
  readonly phase: RunPhase;
  readonly nodes: ImmutableMap<string, NodeRun>;
  /** Values that changed since the run started. */
  readonly variables: ImmutableMap<string, unknown>;
  /** What the values in its log take, in UTF-16 code units of JSON. */
  readonly chars: number;
  /** Times that a node was started, over all nodes. */
  readonly executions: number;
  readonly orchestrator: Orchestrator;
  /** Milliseconds in which nothing worked because people were waited for, or the run was paused. */
  readonly waitedMs: number;
  readonly waitingSinceMs?: EpochMs;
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
  readonly startedAtMs: EpochMs;
  readonly startedSequence: number;
  readonly startedEventId: EventId;
  /** When and where it ended; `undefined` while it is at work. */
  readonly endedSequence?: number;
  readonly outputs?: Readonly<Record<string, unknown>>;
  readonly error?: WorkflowPayloads["node.failed"]["error"];
  /** The open one. */
  readonly interrupt?: Interrupt;
  /** Since it was started, the oldest first. */
  readonly answers: readonly Answer[];
  /** Interrupts it has raised in this run. */
  readonly interrupts: number;
  /** Of a node that hands work over: where it is. */
  readonly handoff?: Handoff;
  /** What it has kept in memory since it was started, the oldest first. */
  readonly memoryIds: readonly string[];
  /** A tool call of it that has not returned. */
  readonly openCall?: EventId;
  /** How often an edge that closes a loop has fired it again. */
  readonly loopbacks: number;
}

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
  /** Of a gate that needs several: who said what. */
  readonly votes: readonly Vote[];
}

export interface Vote {
  readonly by: string;
  readonly action: string;
}

export interface Answer {
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly resumeValue: unknown;
  readonly eventId: EventId;
}

export interface Orchestrator {
  readonly agentId?: string;
  /** Decisions so far, the held one not counted. */
  readonly decided: number;
  readonly last?: {
    readonly decision: OrchestratorDecision;
    readonly eventId: EventId;
    readonly nodeId: string;
  };
  /** Below the floor: waits for people. */
  readonly held?: { readonly decision: OrchestratorDecision; readonly sequence: number };
}

/** The worker that is being dispatched: phases of the handoff state machine. */
export interface Handoff {
  /** In the decision's list; 0 for a sub-workflow. */
  readonly index: number;
  readonly phase: "dispatching" | "running" | "ended" | "harvested";
  readonly chainEventId: EventId;
  readonly workerId: string;
  readonly childRunId?: string;
  readonly childStatus?: "completed" | "failed" | "cancelled";
}

export function isEndedPhase({ kind }: RunPhase): boolean {
  return kind !== "open" && kind !== "paused";
}

export function isAtWork({ status }: NodeRun): boolean {
  return status === "running" || status === "suspended";
}
