/** Owns: which questions of agents are open, and whether one of them is asked once more. */
import type { AskPeople } from "../contracts/commands.ts";
import type { Escalation, OpenCoordination } from "./state.ts";

/**
 * Finds the open question that the command asks again: one of the same session, of the same kind and in the same words,
 * that is put to people, or to the parent, as the command says. One that the parent left to people is put to people.
 */
export function findSameQuestion(
  state: OpenCoordination,
  { askedBy, askedOf, kind, question }: AskPeople,
): Escalation | undefined {
  const isToParent = askedOf !== undefined;
  return listAgentQuestions(state).find(
    (openQuestion) =>
      openQuestion.askedBy === askedBy &&
      openQuestion.kind === kind &&
      isAskedOfParent(openQuestion) === isToParent &&
      openQuestion.question?.sha256 === question.sha256,
  );
}

function isAskedOfParent({ askedOf, forwardedAtMs }: Escalation): boolean {
  return askedOf !== undefined && forwardedAtMs === undefined;
}

/** Lists the open questions of agents. */
export function listAgentQuestions({ openQuestions, escalations }: OpenCoordination): Escalation[] {
  return openQuestions
    .keySeq()
    .toArray()
    .flatMap((escalationId) => escalations.get(escalationId) ?? [])
    .filter(({ cause }) => cause === "agent");
}
