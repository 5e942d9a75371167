/** Owns: which commands may have led to questions of agents and to answers, as `told-command.ts` for all others. */
import type { AnswerEscalation, AskPeople, Command } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { epochMsOf } from "../contracts/ids.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { NOTHING, readFields, type Fact } from "./told-fact.ts";

type AskedQuestion = FactPayloads["coordination.escalated"];

/**
 * Returns the commands that may have led to a recorded question of an agent, or about the plan's budget, for deciding
 * it again.
 */
export function commandsFromQuestion(
  { tellings }: OpenCoordination,
  { payload, timestamp }: Fact<"coordination.escalated">,
): Command[] {
  if (payload.cause === "budget" && payload.stepId === undefined) return [{ type: "tripBreaker" }];
  // The question is recorded, so that no earlier answer was given in its place.
  const tellingsUnderWay = tellings.keySeq().toArray();
  const commands = commandsFromAsking(payload, payload.deadlineAtMs - epochMsOf(timestamp));
  return commands.map((command) => ({ ...command, tellingsUnderWay }));
}

/**
 * Returns the commands that may have put a recorded question to people, for deciding it again: its deadline has
 * passed, or its agent asks them the same.
 */
export function commandsFromForwarding(
  { escalations }: OpenCoordination,
  { payload: { escalationId, deadlineAtMs }, timestamp }: Fact<"escalation.forwarded">,
): Command[] {
  const expiry: Command = { type: "expireEscalation", escalationId };
  const question = escalations.get(escalationId);
  if (!question) return [expiry];
  const { askedOf: _, ...ofPeople } = question;
  return [expiry, ...commandsFromAsking(ofPeople, deadlineAtMs - epochMsOf(timestamp))];
}

/**
 * Returns the commands that may have asked an agent's question, without and with a wished time. `answerMs`: how long
 * whoever is asked may take. Whether the agent wished that is not recorded.
 */
function commandsFromAsking(
  { cause, stepId, kind, question, askedBy, askedOf, onExpiry }: AskedQuestion,
  answerMs: number,
): AskPeople[] {
  if (cause !== "agent" || !question || !askedBy) return [];
  const askPeople: AskPeople = {
    type: "askPeople",
    kind,
    question,
    askedBy,
    ...(askedOf && { askedOf }),
    hasDefault: onExpiry === "default",
    ...(stepId && { stepId }),
    openMax: Number.MAX_SAFE_INTEGER,
  };
  return [askPeople, { ...askPeople, answerMs }];
}

/**
 * Returns the commands that may have led to a recorded answer, for deciding it again. Whether one that did not count
 * had a text, and whether it came from the owner of a plan around, is not recorded; and of logs of earlier releases
 * one of the plan's own owner may have counted.
 */
export function commandsFromAnswer(
  { created }: OpenCoordination,
  { refused, ...answerFields }: FactPayloads["escalation.answered"],
): Command[] {
  const command: AnswerEscalation = { type: "answerEscalation", ...readFields(answerFields) };
  if (!refused) return [command, { ...command, planOwners: [] }];
  const commands: AnswerEscalation[] = [command, { ...command, text: NOTHING }];
  const { session } = command.by;
  if (refused !== "same_session" || session === undefined || !created.parent) return commands;
  return [...commands, ...commands.map((each) => ({ ...each, planOwners: [session] }))];
}
