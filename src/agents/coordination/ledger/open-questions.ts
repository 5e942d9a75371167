/**
 * Owns: which questions of agents are open, whether one is asked once more while it is open or its answer is untold, and whether
 * nobody waits for its answer.
 */
import type { AskPeople } from "../contracts/commands.ts";
import { isGivenUp } from "./given-up.ts";
import type { Coordination, Escalation, OpenCoordination } from "./state.ts";

/**
 * Finds the open question that the command asks again: one of the same session, of the same kind and in the same words, whoever is
 * asked.
 */
export function findSameQuestion(state: OpenCoordination, command: AskPeople): Escalation | undefined {
  return listInSameWords(state, command).find(({ kind }) => kind === command.kind);
}

/**
 * Finds the newest question that the command asks again after it was answered, while its session has not been told the answer. An
 * answer that only a parent gave is none for people. An answer that the session is being told would count twice.
 */
export function findUntoldQuestion(state: OpenCoordination, command: AskPeople): Escalation | undefined {
  return state.tellings
    .filter((_, tellingId) => command.tellingsUnderWay?.includes(tellingId) !== true)
    .valueSeq()
    .toArray()
    .flatMap(({ of: subject }) =>
      subject.kind === "answer" ? (state.escalations.get(subject.escalationId) ?? []) : [],
    )
    .filter((question) => isInSameWords(question, command) && question.kind === command.kind)
    .filter(({ answered }) => answered !== undefined)
    .findLast((question) => command.askedOf !== undefined || !isAskedOfParent(question));
}

/** Finds the question that the command asks again, open or with an answer that its session was not told. */
export function findAskedQuestion(state: Coordination, command: AskPeople): Escalation | undefined {
  if (state.kind !== "open") return undefined;
  return findSameQuestion(state, command) ?? findUntoldQuestion(state, command);
}

/** Lists the open questions of the session that are in the words of the command. */
export function listInSameWords(state: OpenCoordination, command: AskPeople): Escalation[] {
  return listAgentQuestions(state).filter((question) => isInSameWords(question, command));
}

function isInSameWords({ askedBy, question }: Escalation, command: AskPeople): boolean {
  return askedBy === command.askedBy && question?.sha256 === command.question.sha256;
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
