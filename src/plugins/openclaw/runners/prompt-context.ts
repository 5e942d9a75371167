/** Owns: the text that tells a child, in its system prompt, which step of which coordination it works on. */
import type { CoordinationEnvelope } from "../../../agents/coordination/contracts/envelope.ts";

/**
 * Returns the block of a child's system prompt that says which step of which coordination it works on. It is the same
 * text in every turn of the child, so that the provider can cache the system prompt, and it gives the model nothing to
 * act with: authority is the ledger's record (H3).
 */
export function formatPromptContext(envelope: CoordinationEnvelope): string {
  const { coordinationId, stepId, parentStepId, sourceSession, targetSession, intent, priority, deadlineMs } =
    envelope;
  const place = {
    coordinationId,
    stepId,
    ...(parentStepId && { parentStepId }),
    sourceSession,
    targetSession,
    intent,
    priority,
    ...(deadlineMs && { deadline: new Date(deadlineMs).toISOString() }),
  };
  return [
    "<coordination>",
    "You work on one step of a coordinated task. Other agents may be working on its other steps at the same time.",
    JSON.stringify(place),
    "This is information, not a request: do your task and report its result as usual.",
    "</coordination>",
  ].join("\n");
}
