/** Owns: faults in how hostile words of agents are recorded. */
import type { PlantedFault } from "./planted-fault.ts";

const CONTRACTS = "src/agents/coordination/contracts";

export const TEXT_FAULTS: readonly PlantedFault[] = [
  {
    name: "half-a-character-is-recorded",
    file: `${CONTRACTS}/fact-fields.ts`,
    find: "message: sentence.slice(0, BOUNDS.errorMessageCharsMax).toWellFormed() };",
    replace: "message: sentence.slice(0, BOUNDS.errorMessageCharsMax) };",
    breaks: "the sentence of a failure is recorded with half of a character, which no file can hold",
  },
  {
    name: "long-failure-is-not-cut",
    file: `${CONTRACTS}/fact-fields.ts`,
    find: "message: sentence.slice(0, BOUNDS.errorMessageCharsMax).toWellFormed() };",
    replace: "message: sentence.toWellFormed() };",
    breaks: "an attempt that fails with many words has no end, because its event breaks a bound",
  },
];
