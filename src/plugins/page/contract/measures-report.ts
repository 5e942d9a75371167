/** Owns: the measures of coordination, as they go over the wire. */
import type { Measure } from "../../../agents/coordination/stats/measures.ts";

/** `GET ./api/measures`: as `stats --json`, over the last seven days. */
export interface MeasuresReport {
  readonly sinceMs: number;
  readonly coordinations: number;
  /** More coordinations were opened than are counted: these are the newest. */
  readonly isCut?: true;
  /** How many of them are not counted, because their logs are damaged. */
  readonly unreadable?: number;
  readonly measures: readonly Measure[];
}
