/** Owns: that people are shown no words of an agent whose result is not let through yet (G1). */
import type { Question } from "../../src/agents/coordination/ports/human-channel.ts";
import type { World } from "./world.ts";

/** G1: what an agent whose every text is kept back asks is told without its words until its result counts. */
export function checkShownWords(
  { journal }: World,
  { cause, coordinationId, stepId, text, questionId }: Question,
): string[] {
  if (cause !== "agent" || stepId === undefined || text === undefined) return [];
  journal.readNew();
  const events = journal.eventsOf(coordinationId);
  const isChecked = events.some(
    ({ type, payload }) =>
      type === "step.admitted" &&
      payload.stepId === stepId &&
      ((payload.gate?.checks ?? []).length > 0 || payload.gate?.requireConfidence === true),
  );
  const hasCompleted = events.some(
    ({ type, payload }) => type === "step.completed" && payload.stepId === stepId,
  );
  return isChecked && !hasCompleted ? [`G1: people are shown the words of ${questionId}`] : [];
}
