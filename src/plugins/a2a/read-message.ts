/** Owns: what a message means: which workflow, with which inputs; or which answer to what a run asks. */
import { RequestMalformedError, ContentTypeNotSupportedError } from "@a2a-js/sdk/errors";
import type { Message } from "@a2a-js/sdk";
import type { WorkflowDefinition } from "../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { QUESTION_NAMES, type QuestionName, type ShownQuestion } from "../openwop/runs/run-question.ts";

/** Named values of a message, unchecked. */
type MessageFields = Readonly<Record<string, unknown>>;

/** The parts of a message: its data, one object, and its texts, one below the other. */
export interface MessageContent {
  readonly data?: MessageFields;
  readonly text?: string;
}

/**
 * Returns the data and the text of an A2A message's parts, each joined; without a member for what it has none of.
 * @throws A2AError for parts that are neither text nor data
 */
export function readMessageContent({ parts }: Message): MessageContent {
  let data: MessageFields | undefined;
  const texts: string[] = [];
  for (const { content } of parts) {
    if (content?.$case === "text") texts.push(content.value);
    else if (content?.$case === "data" && isRecord(content.value)) data = { ...data, ...content.value };
    else
      throw new ContentTypeNotSupportedError("a part of a message here is a text, or data that is an object");
  }
  return { ...(data && { data }), ...(texts.length > 0 && { text: texts.join("\n") }) };
}

/** Names that the input for a message's text may have, the first one first. */
const TEXT_INPUTS = ["message", "text", "input", "task", "prompt"];

/**
 * Returns the inputs of a run that a message starts: its data, and its text as the variable that is meant for a text,
 * unless the data has that or there is none.
 */
export function createRunInputs(
  { data = {}, text }: MessageContent,
  { variables }: WorkflowDefinition,
): MessageFields {
  const texts = variables.filter(({ type }) => type === "string").map(({ name }) => name);
  const name = TEXT_INPUTS.find((each) => texts.includes(each)) ?? texts[0];
  const isWanted = text !== undefined && name !== undefined && !Object.hasOwn(data, name);
  return isWanted ? { ...data, [name]: text } : data;
}

/**
 * Returns the workflow that an A2A message asks for by `metadata.skillId` (the protocol has no field for it), or the
 * only one there is. @throws A2AError where it is not clear which one is meant
 */
export function chooseSkillWorkflow(
  definitions: readonly WorkflowDefinition[],
  { metadata }: Message,
): WorkflowDefinition {
  const skillId: unknown = metadata?.["skillId"];
  const [only, ...others] = definitions;
  if (skillId === undefined && only && others.length === 0) return only;
  const namedWorkflow = definitions.find(({ id }) => id === skillId);
  if (namedWorkflow) return namedWorkflow;
  const ids = definitions.map(({ id }) => id).join(", ");
  throw new RequestMalformedError(
    `metadata.skillId of the message: expected the id of a skill, one of ${ids}`,
  );
}

/**
 * Returns the names by which an A2A message says which question it answers, as a task shows them; an empty record
 * where it names none. @throws A2AError for a name that is no text
 */
export function readQuestionName({ metadata }: Message): QuestionName {
  const fields = (metadata ?? {}) as MessageFields;
  const name: Partial<Record<keyof QuestionName, string>> = {};
  for (const field of QUESTION_NAMES) {
    const value = fields[field];
    if (value === undefined) continue;
    if (typeof value !== "string")
      throw new RequestMalformedError(`message.metadata.${field}: expected a text`);
    name[field] = value;
  }
  return name;
}

/** Holds what is needed of a question to answer it, or to find out later whether it was answered. */
export interface AnsweredQuestion extends Pick<ShownQuestion, keyof QuestionName | "kind"> {
  /** The id of the only question of a clarification. */
  readonly onlyId?: string;
}

/**
 * Returns the fields of a shown question that answering it needs, with the id of its only part where a clarification
 * has just one.
 */
export function createAnsweredQuestion(question: ShownQuestion): AnsweredQuestion {
  const { runId, nodeId, interruptId, kind } = question;
  const onlyId = kind === "clarification" ? findOnlyQuestionId(question) : undefined;
  return { runId, nodeId, interruptId, kind, ...(onlyId !== undefined && { onlyId }) };
}

/**
 * Returns the value that a message gives as the answer to a question: its data, or its text as the action of an
 * approval, as the only part's answer, or as it is.
 */
export function createAnswerValue(
  { data, text = "" }: MessageContent,
  { kind, onlyId }: AnsweredQuestion,
): unknown {
  if (data) return data;
  if (kind === "approval" || kind === "low-confidence") return { action: text.trim() };
  return onlyId === undefined ? text : { answers: { [onlyId]: text } };
}

function findOnlyQuestionId({ asked: { questions } }: ShownQuestion): string | undefined {
  if (!Array.isArray(questions) || questions.length !== 1) return undefined;
  const { id } = questions[0] as { readonly id?: unknown };
  return typeof id === "string" ? id : undefined;
}
