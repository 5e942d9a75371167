/** Owns: the free capacity of the lanes, which both planners of effects read. */
import type { Lane } from "../../contracts/envelope.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import type { Allowance } from "../../lanes/pick-best.ts";

/** How many requests the lanes take now, and which effects are already under way. */
export interface Capacity {
  /** Free places, by lane. */
  readonly room: Readonly<Record<Lane, number>>;
  /** Waiting this long, in milliseconds, counts as much as one level of priority. */
  readonly agingMs: number;
  /** How many more requests of one session or agent the lanes take. Absent: any number. */
  readonly allowance?: Allowance;
  isUnderway(effectId: string): boolean;
  /** True for a notice that has been under way for its turn. Absent: none has. */
  readonly hasHadTurn?: (effectId: string) => boolean;
  /** True where the host was asked a question lately, and after that time. Absent: it was not. */
  readonly isAskedSince?: (effectId: string, dueAtMs: EpochMs) => boolean;
}
/** Asks the runtime to end the coordination, unless its owner is still at work on the trace. */
export interface EndCoordination {
  readonly kind: "endCoordination";
  readonly effectId: string;
}
