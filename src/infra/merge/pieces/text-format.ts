/** Owns: what a format has to know to take part in merges. */
import type { MergeWay } from "../../../agents/coordination/contracts/arbitration.ts";
import type { Block } from "./pieces.ts";
import type { ComparableValue } from "./merged-values.ts";

export interface TextFormat {
  readonly way: MergeWay;
  /** In the three texts together. So much takes about a tenth of a second. */
  readonly charsMax: number;
  /** With how many ends of lines a text has to end, so that its last entry ends like every other one. */
  readonly linesAtEnd: 0 | 1 | 2;
  /** `broken`: it cannot be read, or says one thing twice. `unsure`: it can be read, and has what is not merged. */
  cut(text: string): TextCut | "unsure" | "broken";
}

/** A text that was cut into its pieces. */
export interface TextCut {
  readonly root: Block;
  /** Present for formats of values. */
  readonly value?: ComparableValue;
  /** Must be the same in all texts: what is of consequence by its order. */
  readonly fixed?: string;
}
