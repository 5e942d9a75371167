/** Owns: the tool `answer` of the MCP server, which gives a person's decision to a run or to a coordination. */
import { z } from "zod";
import { answerKindSchema } from "../../agents/coordination/contracts/escalation.ts";
import type {
  HostAnswer,
  Caller,
  ResolvedInterrupt,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { findShownQuestion } from "../openwop/runs/run-question.ts";
import { answerCallOnce, type RunQuestion } from "./answer-call-once.ts";
import { askGatewayAsOperator } from "./ask-operator.ts";
import {
  createFailureResult,
  createRefusalResult,
  createToolResult,
  idSchema,
  readToolArguments,
  type ToolFields,
  type McpDependencies,
  type McpTool,
  type ToolCall,
  type ToolResult,
} from "./mcp-tool.ts";

const runAnswerSchema = z.strictObject({
  runId: idSchema,
  nodeId: idSchema.optional(),
  /** Whatever the question asks for; that it is there is looked at later. */
  value: z.unknown().optional(),
});
type RunAnswer = z.output<typeof runAnswerSchema>;

const questionAnswerSchema = z.strictObject({
  questionId: idSchema,
  answer: answerKindSchema,
  text: z.string().min(1).optional(),
});

/** MCP wants the schema of an object, and clients show one better than a choice of several. */
const ANSWER_INPUT: ToolFields = {
  type: "object",
  properties: {
    runId: { type: "string", description: "The run that waits; with `value`." },
    nodeId: {
      type: "string",
      description:
        "The node of the run that asks; without it, the one whose question is open, of the run or of one that it began.",
    },
    value: { description: "The person's decision, in the form that the question asks for." },
    questionId: { type: "string", description: "In place of a run: a question of a coordination." },
    answer: { type: "string", enum: answerKindSchema.options, description: "With `questionId`." },
    text: { type: "string", description: 'With the answer "answer": what to answer.' },
  },
  additionalProperties: false,
};

export function createAnswerTool(dependencies: McpDependencies): McpTool {
  const words = {
    name: "answer",
    title: "Answer for a person",
    description:
      "Gives a person's decision to a run that waits for it. Ask the person first; never decide in their place.",
    isReadOnly: false,
  };
  return {
    ...words,
    inputSchema: ANSWER_INPUT,
    call: (toolCall) => answerForPerson(dependencies, toolCall),
  };
}

async function answerForPerson(dependencies: McpDependencies, toolCall: ToolCall): Promise<ToolResult> {
  const { args } = toolCall;
  if (args["questionId"] === undefined) {
    const read = readToolArguments(runAnswerSchema, args);
    if (!read.ok) return read.result;
    return await answerRun(dependencies, toolCall, read.value);
  }
  const { operator } = dependencies;
  if (!operator)
    return createFailureResult(
      "This host has no coordinations of OpenClaw: answer a run, by its runId and a value.",
    );
  const read = readToolArguments(questionAnswerSchema, args);
  if (!read.ok) return read.result;
  return await askGatewayAsOperator(operator, {
    method: "coordination.answer",
    params: read.value,
    describe: ({ questionId, happened }) =>
      `Question ${String(questionId)} is answered: ${String(happened)}.`,
  });
}

async function answerRun(
  dependencies: McpDependencies,
  { caller, args, callId }: ToolCall,
  { runId, nodeId, value }: RunAnswer,
): Promise<ToolResult> {
  if (value === undefined) return createFailureResult("value: expected the person's decision, got nothing");
  const { host } = dependencies;
  const found = await host.snapshot(caller, runId);
  // Only calls about runs that are there are kept.
  if (found.kind === "refused") return createRefusalResult(found);
  const question = await findQuestionOfNode(dependencies, caller, { snapshot: found.value, nodeId });
  const answer = async (about: RunQuestion | undefined): Promise<ToolResult> => {
    if (!about) return createFailureResult(`run ${runId} waits for no answer`);
    return createResolutionResult(await host.resolve(caller, about.runId, about, value), callId);
  };
  return callId === undefined
    ? await answer(question)
    : await answerCallOnce(dependencies, { caller, args, callId }, question, answer);
}

/**
 * Returns that the run is answered, also where the same answer settled the question before and the call has an id, as
 * it may be that call made again; else returns the refusal.
 */
function createResolutionResult(
  outcome: HostAnswer<ResolvedInterrupt>,
  callId: string | undefined,
): ToolResult {
  if (outcome.kind === "done") return createAnsweredResult(outcome.value);
  const { resolved } = outcome;
  return resolved && callId !== undefined ? createAnsweredResult(resolved) : createRefusalResult(outcome);
}

function createAnsweredResult({ runId, nodeId, interruptId, status }: ResolvedInterrupt): ToolResult {
  return createToolResult(`Answered; run ${runId} is ${status}.`, { runId, nodeId, interruptId, status });
}

interface NamedNode {
  readonly snapshot: RunSnapshot;
  /** Absent: whichever node asks. */
  readonly nodeId: string | undefined;
}

/** Finds the question of the node, or without one the question of the run or of a child that it waits for. */
async function findQuestionOfNode(
  { host }: McpDependencies,
  caller: Caller,
  { snapshot, nodeId }: NamedNode,
): Promise<RunQuestion | undefined> {
  const { runId } = snapshot;
  if (nodeId === undefined) return await findShownQuestion(host, caller, snapshot);
  const found = await host.question(caller, runId, { nodeId });
  return found.kind === "done" ? found.value : { runId, nodeId };
}
