/** Owns: whether the machine gave all measurements the same processor. */
import { createHash } from "node:crypto";
import { findMedian, round } from "./bench-row.ts";

const SAMPLES = 7;
const HASHES = 20_000;
/** From here on figures of different times cannot be compared. */
const RATIO_MAX = 1.15;

export interface MachineCheck {
  /** Takes one more sample. */
  sample(): void;
  /** A sentence on what the samples say. */
  describe(): string;
}

export function checkMachine(): MachineCheck {
  const samples: number[] = [];
  // For the compiler.
  timeFixedWork();
  return {
    sample: () => {
      samples.push(findMedian(Array.from({ length: SAMPLES }, timeFixedWork)));
    },
    describe: () => {
      const ratio = round(Math.max(...samples) / Math.min(...samples));
      return ratio > RATIO_MAX
        ? `The machine is too noisy: the same work took up to ${ratio} times as long between the measurements. Do not quote these figures.`
        : `The machine was steady: the same work took at most ${ratio} times as long between the measurements.`;
    },
  };
}

/** Milliseconds of work that is always the same. */
function timeFixedWork(): number {
  const start = performance.now();
  let text = "";
  for (let index = 0; index < HASHES; index += 1)
    text = createHash("sha256").update(`${index}${text}`).digest("hex");
  return performance.now() - start;
}
