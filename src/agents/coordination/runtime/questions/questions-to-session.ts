/** Owns: what a session is asked by its children. Words that are withheld are not its to read. */
import type { ContentSource } from "../../ports/content-store.ts";
import type { CoordinationId, SessionKey } from "../../contracts/ids.ts";
import type { Escalation, KnownCoordination } from "../../ledger/state.ts";
import { isQuestionWithheld } from "../../ledger/withheld-words.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { createQuestionId, type QuestionsToSession, type QuestionToSession } from "./question-requests.ts";
import { readQuestionText } from "./question-text.ts";

const LISTED_MAX = 10;

/**
 * Lists the open questions of children to a session in one coordination, the ten that expire first, with how many were
 * left out.
 */
export async function listOpenQuestionsToSession(
  dependencies: RuntimeDependencies,
  session: SessionKey,
  coordinationId: CoordinationId,
): Promise<QuestionsToSession> {
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind === "unopened") return { questions: [], leftOut: 0 };
  const open = state.escalations
    .valueSeq()
    .toArray()
    .filter(
      ({ askedOf, forwardedAtMs, closed }) => askedOf === session && forwardedAtMs === undefined && !closed,
    );
  const listed = open.toSorted((a, b) => a.deadlineAtMs - b.deadlineAtMs).slice(0, LISTED_MAX);
  const questions = await Promise.all(
    listed.map((question) => createQuestionToSession(dependencies, state, question)),
  );
  return { questions, leftOut: open.length - listed.length };
}

async function createQuestionToSession(
  dependencies: ContentSource,
  { coordinationId, steps }: KnownCoordination,
  question: Escalation,
): Promise<QuestionToSession> {
  const { escalationId, deadlineAtMs, stepId } = question;
  const isWithheld = isQuestionWithheld(steps, question);
  const words = isWithheld ? undefined : await readQuestionText(dependencies, question);
  return {
    questionId: createQuestionId(coordinationId, escalationId),
    deadlineAtMs,
    isWithheld,
    ...(stepId && { stepId }),
    ...(words && { words }),
  };
}
