/** Owns: that every recorded text comes back from a file as it was written, whatever was said (L1). */
import type { EventCheck } from "./check-log.ts";

/** JSON writes half of a pair of surrogates so; no file in UTF-8 can hold it as a character. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/iu;

export function createTextCheck(): EventCheck {
  return {
    see: (event) =>
      LONE_SURROGATE.test(JSON.stringify(event)) ? [`L1: ${event.type} has half of a character`] : [],
  };
}
