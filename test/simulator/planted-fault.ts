/** Owns: the form of a planted fault: a change of one place in the source that makes it break a promise. */
import type { Simulation } from "./simulation.ts";

export interface PlantedFault {
  readonly name: string;
  /** Where it is looked for. */
  readonly world?: Simulation["world"];
  readonly file: string;
  /** The text that is replaced; it occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The promise that the fault breaks. */
  readonly breaks: string;
}
