/** Owns: whether what an agent just said must be kept back from whoever asked for it, until its result is ruled on. */
import type { StatedConfidence } from "../contracts/commands.ts";
import type { Gate } from "../contracts/verification.ts";
import { readStatedConfidence } from "./stated-confidence.ts";
import { mustHold } from "./verifier-gate.ts";

/** `reported`: what the agent stated with its report, which counts before its words. */
export function mustWithhold(gate: Gate, text: string, reported: StatedConfidence | undefined): boolean {
  const isReported = reported?.confidence !== undefined;
  return mustHold(gate, isReported ? reported : readStatedConfidence(text));
}
