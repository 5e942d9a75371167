/** Owns: whether what an agent just said must be kept back from whoever asked for it, until its result is ruled on. */
import type { StatedConfidence } from "../contracts/commands.ts";
import type { Gate } from "../contracts/verification.ts";
import { readStatedConfidence } from "./stated-confidence.ts";
import { mustHold } from "./verifier-gate.ts";

/**
 * True when a gate keeps an agent's text back until its result is ruled on. A confidence that the agent `reported`
 * with it counts before one stated in the text.
 */
export function mustWithhold(gate: Gate, text: string, reported: StatedConfidence | undefined): boolean {
  const isReported = reported?.confidence !== undefined;
  return mustHold(gate, isReported ? reported : readStatedConfidence(text));
}
