/** Owns: what a message means: which workflow, with which inputs; or which answer to what a run asks. */
import { RequestMalformedError, ContentTypeNotSupportedError } from "@a2a-js/sdk/errors";
import type { Message } from "@a2a-js/sdk";
import type { WorkflowDefinition } from "../../agents/coordination/contracts/workflows/workflow-definition.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import type { ShownQuestion } from "../openwop/runs/run-question.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a message: its data, one object, and its texts, one below the other. */
interface Content {
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
  const skillId = (metadata as Fields | undefined)?.["skillId"];
  const [only, ...others] = definitions;
  if (skillId === undefined && only && others.length === 0) return only;
  const found = definitions.find(({ id }) => id === skillId);
  if (found) return found;
  const ids = definitions.map(({ id }) => id).join(", ");
  throw new RequestMalformedError(
    `metadata.skillId of the message: expected the id of a skill, one of ${ids}`,
  );
}

/** The answer to a question: the data, or what the text stands for. */
export function readAnswer({ data, text = "" }: Content, question: ShownQuestion): unknown {
  if (data) return data;
  const { kind } = question;
  if (kind === "approval" || kind === "low-confidence") return { action: text.trim() };
  const onlyId = kind === "clarification" ? findOnlyQuestion(question) : undefined;
  return onlyId === undefined ? text : { answers: { [onlyId]: text } };
}

function findOnlyQuestion({ asked: { questions } }: ShownQuestion): string | undefined {
  if (!Array.isArray(questions) || questions.length !== 1) return undefined;
  const { id } = questions[0] as { readonly id?: unknown };
  return typeof id === "string" ? id : undefined;
}
