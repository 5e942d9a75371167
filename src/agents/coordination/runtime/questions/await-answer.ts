/** Owns: waiting for the answer to a question, in the session that asked it. */
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Coordination, Escalation } from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { QuestionWaits } from "./question-waits.ts";
import { parseQuestionId, type QuestionOutcome } from "./question-requests.ts";
import { describeOutcomeToAsker } from "./telling-message.ts";

interface WaitDependencies extends RuntimeDependencies {
  readonly waits: QuestionWaits;
}

interface AnswerWait {
  readonly questionId: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

const TOLD_BEFORE = "You were told the answer in this session.";

/**
 * Waits up to `waitMs`, or until `signal` aborts, for a question to be closed, and returns its outcome; `open` where
 * it is not, or a turn is telling it just now. Records the outcome as told, so that no turn tells it again.
 */
export async function awaitAnswer(
  dependencies: WaitDependencies,
  { questionId, waitMs, signal }: AnswerWait,
): Promise<QuestionOutcome> {
  const questionPlace = parseQuestionId(questionId);
  if (!questionPlace) return { kind: "open" };
  const { coordinationId, escalationId } = questionPlace;
  const tellingId = `answer:${escalationId}`;
  if (dependencies.waits.listTellings(coordinationId).includes(tellingId)) return { kind: "open" };
  const claim = dependencies.waits.claim(coordinationId, tellingId);
  try {
    const untilMs = addMs(dependencies.clock.now(), waitMs);
    const readClosed = () => readClosedQuestion(dependencies, coordinationId, escalationId);
    await dependencies.waits.until(async () => (await readClosed()) !== undefined, {
      untilMs,
      ...(signal && { signal }),
    });
    const question = await readClosed();
    if (!question?.closed) return { kind: "open" };
    const { resolution } = question.closed;
    // Before it is recorded as told: where it cannot be read, it is still to be told.
    const text = await describeOutcomeToAsker(dependencies, question);
    if (signal?.aborted) return { kind: "open" };
    const submitted = await dependencies.runs.submit(coordinationId, [
      { type: "recordTelling", tellingId, delivery: "delivered" },
    ]);
    // Nobody is told of a question that was withdrawn, so that nobody was told of it before.
    const isTold = submitted.kind === "replay" && resolution !== "cancelled";
    return { kind: "closed", resolution, text: isTold ? TOLD_BEFORE : text };
  } finally {
    // Sessions that were left to tell are told once nobody waits for it.
    claim.release(() => {
      dependencies.lookAt(coordinationId);
    });
  }
}

async function readClosedQuestion(
  { runs }: WaitDependencies,
  coordinationId: CoordinationId,
  escalationId: string,
): Promise<Escalation | undefined> {
  // Another process may have recorded the answer.
  await runs.latest(coordinationId);
  return runs.findOnDisk(coordinationId, (state) => {
    const question = findQuestion(state, escalationId);
    return question?.closed ? question : undefined;
  });
}

/** Returns the question of a coordination with that id; `undefined` where it has none. */
export function findQuestion(state: Coordination, escalationId: string): Escalation | undefined {
  return state.kind === "unopened" ? undefined : state.escalations.get(escalationId);
}
