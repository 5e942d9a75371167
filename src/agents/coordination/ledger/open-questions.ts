/**
 * Owns: which questions of agents are open, whether one is asked once more while it is open or its answer is untold, and whether
 * nobody waits for its answer.
 */
import type { AskPeople } from "../contracts/commands.ts";
import { isWorkingForNobody } from "./given-up.ts";
import type { Coordination, Escalation, OpenCoordination } from "./state.ts";

/**
 * Returns the open question that the command asks again, whoever is asked; `undefined` where there is none. It is one
 * of the same session and kind and in the same words.
 */
export function findSameQuestion(state: OpenCoordination, command: AskPeople): Escalation | undefined {
  return listQuestionsInSameWords(state, command).find(({ kind }) => kind === command.kind);
}

/**
 * Returns the newest answered question that the command asks again while its session has not been told the answer;
 * `undefined` where there is none. An answer that only a parent gave is none for people. An answer that the session is
 * being told would count twice.
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

/**
 * Returns the question that the command asks again, open or with an answer that its session was not told; `undefined`
 * where it is new or the coordination is not open.
 */
export function findAskedQuestion(state: Coordination, command: AskPeople): Escalation | undefined {
  if (state.kind !== "open") return undefined;
  return findSameQuestion(state, command) ?? findUntoldQuestion(state, command);
}

/** Lists the open questions that the session of the command asked in the same words, of any kind. */
export function listQuestionsInSameWords(state: OpenCoordination, command: AskPeople): Escalation[] {
  return listAgentQuestions(state).filter((question) => isInSameWords(question, command));
}

function isInSameWords({ askedBy, question }: Escalation, command: AskPeople): boolean {
  return askedBy === command.askedBy && question?.sha256 === command.question.sha256;
}

/** True while a question is put to the parent of the session that asks, and not to people. */
export function isAskedOfParent({ askedOf, forwardedAtMs }: Escalation): boolean {
  return askedOf !== undefined && forwardedAtMs === undefined;
}

/** Lists the open questions that agents asked, and not those that a rule of the coordination did. */
export function listAgentQuestions(state: OpenCoordination): Escalation[] {
  return listOpenQuestions(state).filter(({ cause }) => cause === "agent");
}

/** Lists the open questions, in the order in which they were asked. */
export function listOpenQuestions({ openQuestions, escalations }: OpenCoordination): Escalation[] {
  return openQuestions
    .keySeq()
    .toArray()
    .flatMap((escalationId) => escalations.get(escalationId) ?? []);
}

/** True when an agent asked the question whose session works for nobody any more, so that nobody waits for the answer. */
export function isQuestionAbandoned(state: OpenCoordination, { cause, askedBy }: Escalation): boolean {
  return cause === "agent" && askedBy !== undefined && isWorkingForNobody(state, askedBy);
}
