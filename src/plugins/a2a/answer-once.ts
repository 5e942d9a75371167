/**
 * Owns: that a message which answers a task answers one question (N1): the one that is open when the message first comes. Sent again
 * by its id, it is told what became of that answer, and is not taken for the answer to the next question.
 */
import { hash } from "node:crypto";
import type { Message } from "@a2a-js/sdk";
import { RequestMalformedError, UnsupportedOperationError, type A2AError } from "@a2a-js/sdk/errors";
import type {
  Caller,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import {
  formatQuestionSubject,
  parseQuestionSubject,
  runKeyedRequest,
  type WorkOutcome,
} from "../openwop/http/keyed-request.ts";
import { findNamedQuestion } from "../openwop/runs/run-question.ts";
import type { A2aParts } from "./a2a-parts.ts";
import {
  createAnsweredQuestion,
  createAnswerValue,
  readMessageContent,
  readQuestionName,
  type AnsweredQuestion,
  type MessageContent,
} from "./read-message.ts";
import { createRefusalError } from "./refusal-error.ts";

interface AnsweringMessage {
  readonly caller: Caller;
  readonly message: Message;
  /** The task as it is. */
  readonly snapshot: RunSnapshot;
}

/**
 * Gives the answer that an A2A message holds to the question of its task; the same message again has no further
 * effect. @throws A2AError where it is refused, where another message had its id, or while the same one is being
 * worked on
 */
export async function answerMessageOnce(
  { host, clock }: Pick<A2aParts, "host" | "clock">,
  { caller, message, snapshot }: AnsweringMessage,
): Promise<void> {
  const content = readMessageContent(message);
  const name = readQuestionName(message);
  const names = Object.keys(name).length > 0 ? [name] : [];
  const shown = await findNamedQuestion(host, caller, snapshot, name);
  const openQuestion = shown && createAnsweredQuestion(shown);
  const outcome = await runKeyedRequest(
    { requests: host.requests, clock },
    {
      tenant: caller.tenant,
      endpoint: "A2A answer",
      key: hash("sha256", formatCanonicalJson([caller.principal, message.messageId])),
      digest: hash("sha256", formatCanonicalJson([message.taskId, content, ...names])),
      subject: formatQuestionSubject(openQuestion),
    },
    async (subject): Promise<WorkOutcome<A2AError | undefined>> => {
      const question = (parseQuestionSubject(subject) as AnsweredQuestion | undefined) ?? openQuestion;
      if (question) return await giveAnswer(host, caller, content, question);
      const problem =
        names.length > 0 ? OTHER_QUESTION : `The task is ${snapshot.status} and waits for no answer.`;
      return { value: new UnsupportedOperationError(problem), keep: "nothing" };
    },
  );
  if (outcome.kind === "mismatch")
    throw new RequestMalformedError("message.messageId: another message had this id before");
  if (outcome.kind === "in_flight")
    throw new UnsupportedOperationError("The same message is being worked on: send it again in a moment.");
  if (outcome.kind === "done" && outcome.value) throw outcome.value;
}

const OTHER_QUESTION =
  "message.metadata: the task does not ask the question that it names: read the task for what it asks";

/**
 * Answers the question, and returns what the message's key keeps: that it is done, only the question's id where it
 * came too late, or nothing where it was refused, so that it can be put right.
 */
async function giveAnswer(
  host: A2aParts["host"],
  caller: Caller,
  content: MessageContent,
  question: AnsweredQuestion,
): Promise<WorkOutcome<A2AError | undefined>> {
  const resolved = await host.resolve(caller, question.runId, question, createAnswerValue(content, question));
  if (resolved.kind === "done" || resolved.resolved)
    return { value: undefined, keep: { status: 200, body: "{}" } };
  const isSettled = resolved.code === "interrupt_already_resolved";
  return { value: createRefusalError(resolved), keep: isSettled ? "subject" : "nothing" };
}
