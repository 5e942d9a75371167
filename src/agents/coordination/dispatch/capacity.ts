/** Owns: how much the lanes take, which both planners of effects ask for. */
import type { Lane } from "../contracts/envelope.ts";
import type { Allowance } from "../lanes/pick-best.ts";

/** How much the lanes take now, and what is on its way already. */
export interface Capacity {
  readonly room: Readonly<Record<Lane, number>>;
  /** Waiting this long counts as much as one level of priority. */
  readonly agingMs: number;
  /** How many more of a session or an agent the lanes take; absent: any number. */
  readonly allowance?: Allowance;
  isUnderway(effectId: string): boolean;
}
/** End the coordination, unless its owner is still at work on the trace. */
export interface EndCoordination {
  readonly kind: "endCoordination";
  readonly effectId: string;
}
