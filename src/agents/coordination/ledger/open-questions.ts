/** Owns: which questions of agents are open, whether one of them is asked once more, and whether nobody waits for its answer. */
import type { AskPeople } from "../contracts/commands.ts";
import { isGivenUp } from "./given-up.ts";
import type { Escalation, OpenCoordination } from "./state.ts";

/**
 * Finds the open question that the command asks again: one of the same session, of the same kind and in the same words, whoever is
 * asked.
 */
export function findSameQuestion(state: OpenCoordination, command: AskPeople): Escalation | undefined {
  return listInSameWords(state, command).find(({ kind }) => kind === command.kind);
}

/** Lists the open questions of the session that are in the words of the command. */
export function listInSameWords(
  state: OpenCoordination,
  { askedBy, question }: Pick<AskPeople, "askedBy" | "question">,
): Escalation[] {
  return listAgentQuestions(state).filter(
    (openQuestion) => openQuestion.askedBy === askedBy && openQuestion.question?.sha256 === question.sha256,
  );
}

/** True while a question is put to the parent of the session that asks, and not to people. */
export function isAskedOfParent({ askedOf, forwardedAtMs }: Escalation): boolean {
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

/** True when nobody waits for the answer any more: the attempt whose agent asked is over. */
export function isAbandoned(state: OpenCoordination, { cause, askedBy }: Escalation): boolean {
  return cause === "agent" && askedBy !== undefined && isGivenUp(state, askedBy);
}
