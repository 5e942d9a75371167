/** Owns: the port that limits how much work of each lane runs and waits in this process, and its counts. */
import type { Lane, Priority } from "../contracts/envelope.ts";
import type { AgentId, EpochMs, SessionKey } from "../contracts/ids.ts";

/** Work that asks for a slot of a lane. */
export interface LaneRequest {
  readonly lane: Lane;
  readonly priority: Priority;
  /** Since when it could run: waiting raises it, so that nothing starves. */
  readonly readyAtMs: EpochMs;
  /** The longest chain of work behind it; the longer one goes first among equals. */
  readonly criticalPathMs: number;
  /** Whose work it is, for the caps per session and per agent. */
  readonly session: SessionKey;
  readonly agentId: AgentId;
}

/** A place in a lane. */
export interface LaneSlot {
  /** Gives the place back before the work ends, because it waits for work that needs one. */
  release(): void;
}

/** The result of work in a lane: it ran, or the lane had no room. */
export type LaneResult<T> = { readonly kind: "ran"; readonly value: T } | { readonly kind: "full" };

/** Counts since the start, and what is so now. */
export interface LaneMetrics {
  readonly concurrency: number;
  readonly running: number;
  readonly waiting: number;
  readonly queueMax: number;
  readonly admitted: number;
  readonly refused: number;
  /** How long those that were admitted waited, in milliseconds. */
  readonly waitedMs: { readonly total: number; readonly max: number };
}

/** A question to the host, or telling it to stop a child. */
export type HostAct = "question" | "stop";

/** Limits how much work on each lane runs at once in this process. It holds no truth (style rule 19). */
export interface LaneRunner {
  /** Runs `work` when the lane has room for it and settles as it does; `full` when too much waits already. */
  run<T>(request: LaneRequest, work: (slot: LaneSlot) => Promise<T>): Promise<LaneResult<T>>;
  /**
   * How many requests would be queued now. It is 0 from a full queue on until half of it is free again. Requests whose
   * provider refuses calls do not count.
   */
  room(lane: Lane): number;
  /**
   * Calls `listener` whenever a lane without room has room again, and whenever a provider begins or ceases to refuse
   * calls. Returns the end of it.
   */
  onRoom(listener: (lane: Lane) => void): () => void;
  /** Returns the agents whose provider refuses calls: their requests would only wait. */
  heldBackAgents(): ReadonlySet<AgentId>;
  /** Lets requests begin whatever their provider says. For a stop, which has ended their work before it begins. */
  stopHoldingBack(): void;
  /** Runs a short act that must not wait behind steps, and behind no act of another kind. */
  operate<T>(kind: HostAct, work: () => Promise<T>): Promise<T>;
  metrics(): Readonly<Record<Lane, LaneMetrics>>;
  /** Resolves when no work is waiting or under way. */
  idle(): Promise<void>;
}
