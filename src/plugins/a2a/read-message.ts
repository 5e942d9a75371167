/** Owns: what a message means: which workflow, with which inputs; or which answer to what a run asks. */
import { RequestMalformedError, ContentTypeNotSupportedError } from "@a2a-js/sdk/errors";
import type { Message } from "@a2a-js/sdk";
import type { WorkflowDefinition } from "../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { QUESTION_NAMES, type QuestionName, type ShownQuestion } from "../openwop/runs/run-question.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a message: its data, one object, and its texts, one below the other. */
export interface Content {
  readonly data?: Fields;
  readonly text?: string;
}

/** @throws A2AError for parts that are neither text nor data */
export function readContent({ parts }: Message): Content {
  let data: Fields | undefined;
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

/** The inputs of a run: the data, with the text as the input that is made for one. */
export function readInputs({ data = {}, text }: Content, { variables }: WorkflowDefinition): Fields {
  const texts = variables.filter(({ type }) => type === "string").map(({ name }) => name);
  const name = TEXT_INPUTS.find((each) => texts.includes(each)) ?? texts[0];
  const isWanted = text !== undefined && name !== undefined && !Object.hasOwn(data, name);
  return isWanted ? { ...data, [name]: text } : data;
}

/** The protocol has no field for the skill. @throws A2AError where it is not clear which one is meant */
export function chooseWorkflow(
  definitions: readonly WorkflowDefinition[],
  { metadata }: Message,
): WorkflowDefinition {
  const skillId: unknown = metadata?.["skillId"];
  const [only, ...others] = definitions;
  if (skillId === undefined && only && others.length === 0) return only;
  const found = definitions.find(({ id }) => id === skillId);
  if (found) return found;
  const ids = definitions.map(({ id }) => id).join(", ");
  throw new RequestMalformedError(
    `metadata.skillId of the message: expected the id of a skill, one of ${ids}`,
  );
}

/** Reads which question a message is about, by the names that a task shows. @throws A2AError for a name that is no text */
export function readQuestionName({ metadata }: Message): QuestionName {
  const fields = (metadata ?? {}) as Fields;
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

/** Selects what an answer needs of the question. */
export function createAnsweredQuestion(question: ShownQuestion): AnsweredQuestion {
  const { runId, nodeId, interruptId, kind } = question;
  const onlyId = kind === "clarification" ? findOnlyQuestion(question) : undefined;
  return { runId, nodeId, interruptId, kind, ...(onlyId !== undefined && { onlyId }) };
}

/** The answer to a question: the data, or what the text stands for. */
export function readAnswer({ data, text = "" }: Content, { kind, onlyId }: AnsweredQuestion): unknown {
  if (data) return data;
  if (kind === "approval" || kind === "low-confidence") return { action: text.trim() };
  return onlyId === undefined ? text : { answers: { [onlyId]: text } };
}

function findOnlyQuestion({ asked: { questions } }: ShownQuestion): string | undefined {
  if (!Array.isArray(questions) || questions.length !== 1) return undefined;
  const { id } = questions[0] as { readonly id?: unknown };
  return typeof id === "string" ? id : undefined;
}
