/** Owns: the tools of the MCP server that are about runs of any workflow: `status`, `questions`, `answer` and `verify`. */
import { z } from "zod";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { answerKindSchema } from "../../agents/coordination/contracts/escalation.ts";
import type {
  Answered,
  Caller,
  ResolvedInterrupt,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { verifyWorkflowRun } from "../../agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { listTenantRuns, readListedRun } from "../openwop/runs/list-tenant-runs.ts";
import { waitForRun } from "../openwop/runs/run-access.ts";
import {
  findQuestion,
  listQuestions as listQuestionsOfRun,
  type ShownQuestion,
} from "../openwop/runs/run-question.ts";
import { answerOnce, type RunQuestion } from "./answer-call-once.ts";
import { askOperator, describeFailure, readQuestions, tellCoordination } from "./ask-operator.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createFailure,
  createRefusal,
  createResult,
  readArguments,
  type Fields,
  type McpDependencies,
  type McpTool,
  type OperatorAccess,
  type ToolCall,
  type ToolResult,
} from "./mcp-tool.ts";
import { createRunResult } from "./describe-run.ts";
import { fitQuestions } from "./fit-questions.ts";
import { formatRunUri } from "./run-uris.ts";

const id = z.string().min(1).max(256);
const limit = z.int().min(1).max(MCP_BOUNDS.runsMax).default(MCP_BOUNDS.runsDefault);

interface ToolWords {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly isReadOnly: boolean;
}

/** A tool whose arguments a schema describes. */
export function createTool<S extends z.ZodType>(
  words: ToolWords,
  schema: S,
  call: (value: z.output<S>, toolCall: ToolCall) => Promise<ToolResult>,
): McpTool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: "input" }) as Fields;
  return {
    ...words,
    inputSchema,
    call: async (toolCall) => {
      const read = readArguments(schema, toolCall.args);
      return read.ok ? await call(read.value, toolCall) : read.result;
    },
  };
}

export function listRunTools(dependencies: McpDependencies): readonly McpTool[] {
  return [
    createStatusTool(dependencies),
    createQuestionsTool(dependencies),
    ...(dependencies.mayAnswer ? [createAnswerTool(dependencies)] : []),
    createVerifyTool(dependencies),
  ];
}

const statusSchema = z.strictObject({
  runId: id.optional().describe("The run to look at; without it the newest runs are listed."),
  waitSeconds: z
    .number()
    .min(0)
    .max(MCP_BOUNDS.waitSecondsMax)
    .default(0)
    .describe("With runId: wait so long for the run to end or to ask somebody."),
  limit: limit.describe("Without runId: list at most so many runs."),
});

function createStatusTool(dependencies: McpDependencies): McpTool {
  const words = {
    name: "status",
    title: "How runs are",
    description:
      "Tells how a run is: its status, its outputs when it has ended, its question when it waits. Without runId, the newest runs.",
    isReadOnly: true,
  };
  return createTool(words, statusSchema, async ({ runId, waitSeconds, limit: most }, { caller, signal }) => {
    if (runId === undefined) return await createListing(dependencies, caller, most);
    const waitMs = waitSeconds * 1_000;
    const found = await waitForRun(dependencies, runId, { caller, signal, waitMs, until: "asking" });
    if (found.kind === "done") return await createRunResult(dependencies, caller, found.value);
    const { operator } = dependencies;
    return operator && found.code === "not_found"
      ? await tellCoordination(dependencies, { operator, coordinationId: runId, signal, waitMs })
      : createRefusal(found);
  });
}

async function createListing(
  dependencies: McpDependencies,
  caller: Caller,
  most: number,
): Promise<ToolResult> {
  const { runs, next } = await listTenantRuns(dependencies, caller, { limit: most });
  const shown = runs.map(({ runId, summary }) => ({
    runId,
    workflowId: summary.workflowId,
    status: summary.status,
    startedAt: new Date(summary.createdAtMs).toISOString(),
  }));
  const words = `${formatCount(shown.length, "run")}, the newest first.`;
  return createResult(next ? `${words} ${MORE}` : words, { runs: shown, isMore: next !== undefined });
}

const MORE = "There may be more: the resources of this server are all of them, page by page.";

const questionsSchema = z.strictObject({ limit: limit.describe("List at most so many questions.") });

function createQuestionsTool(dependencies: McpDependencies): McpTool {
  const words = {
    name: "questions",
    title: "What people are asked",
    description: "Lists what runs wait for somebody to answer.",
    isReadOnly: true,
  };
  return createTool(words, questionsSchema, async ({ limit: most }, { caller }) => {
    const found = await listQuestions(dependencies, caller, most);
    const { operator } = dependencies;
    if (!operator) return describeQuestions({ ...found }, most);
    try {
      const { questions, isMore, unreadable } = await readQuestions(operator, {});
      const listed = {
        ...found,
        ofCoordinations: questions.slice(0, most),
        ...((isMore || questions.length > most) && { isMoreOfCoordinations: true as const }),
        ...(unreadable > 0 && { unreadable }),
      };
      return describeQuestions(listed, most);
    } catch (error) {
      // Runs of workflows need no gateway, and neither do their questions.
      return describeQuestions({ ...found, ofCoordinations: [], gateway: describeFailure(error) }, most);
    }
  });
}

interface ListedQuestion extends ShownQuestion {
  /** The run as a resource. */
  readonly resource: string;
}

interface FoundQuestions {
  readonly questions: readonly ListedQuestion[];
  /** Not all runs were looked at. */
  readonly isMore?: true;
}

interface ToldQuestions extends FoundQuestions {
  readonly ofCoordinations?: readonly unknown[];
  /** Coordinations ask more than is listed. */
  readonly isMoreOfCoordinations?: true;
  /** Coordinations whose log cannot be read. */
  readonly unreadable?: number;
  /** Why the gateway could not be asked. */
  readonly gateway?: string;
}

const MORE_OF_COORDINATIONS = "Coordinations ask more: a larger `limit` lists them.";

const MORE_ELSEWHERE =
  "Coordinations ask more than can be listed here: the operator's page and `openclaw coordination questions` list them.";

function describeQuestions(data: ToldQuestions, most: number): ToolResult {
  const { questions, ofCoordinations = [], ...beside } = data;
  const listed = [...questions, ...ofCoordinations] as readonly Fields[];
  const fitted = fitQuestions(
    listed,
    beside,
    data.ofCoordinations ? `${IN_RESOURCE}; the operator's page has those of coordinations` : IN_RESOURCE,
  );
  const words = [describeCount(data), fitted.omission, ...listOmissions(data, most)];
  const shown = {
    ...data,
    questions: fitted.questions.slice(0, questions.length),
    ...(data.ofCoordinations && { ofCoordinations: fitted.questions.slice(questions.length) }),
  };
  const elsewhere = "ask for fewer with a smaller `limit`";
  return createResult(words.filter((text) => text !== "").join(" "), shown, { elsewhere });
}

const IN_RESOURCE = "the `resource` of the run and its events have them";

/** Counts the questions; says nothing where there is none and the gateway could not be asked. */
function describeCount(data: ToldQuestions): string {
  const { questions, isMore, ofCoordinations = [], isMoreOfCoordinations, unreadable = 0, gateway } = data;
  const count = questions.length + ofCoordinations.length;
  if (count === 0 && gateway !== undefined) return "";
  const isAll = !isMore && !isMoreOfCoordinations && unreadable === 0;
  return count === 0 && isAll ? "Nobody is asked anything." : `${formatCount(count, "question")} for people.`;
}

/** Lists what may be asked besides the listed questions. */
function listOmissions(data: ToldQuestions, most: number): readonly string[] {
  const { isMore, ofCoordinations = [], isMoreOfCoordinations, unreadable = 0, gateway } = data;
  const omissions: string[] = [];
  if (isMore) omissions.push(MORE);
  // The gateway lists no more at once, so that fewer than `most` are all that it tells.
  const isLimited = ofCoordinations.length === most && most < MCP_BOUNDS.runsMax;
  if (isMoreOfCoordinations) omissions.push(isLimited ? MORE_OF_COORDINATIONS : MORE_ELSEWHERE);
  if (unreadable > 0)
    omissions.push(
      `What ${formatCount(unreadable, "coordination")} may ask cannot be read: \`verify\` says what is damaged.`,
    );
  if (gateway !== undefined) omissions.push(`What coordinations ask cannot be told: ${gateway}`);
  return omissions;
}

async function listQuestions(
  dependencies: McpDependencies,
  caller: Caller,
  most: number,
): Promise<FoundQuestions> {
  const { runs, next } = await listTenantRuns(dependencies, caller, { limit: most, isAsking: true });
  const questions: ListedQuestion[] = [];
  for (const { runId } of runs) {
    const snapshot = await readListedRun(dependencies, caller, runId);
    const ofRun = snapshot ? await listQuestionsOfRun(dependencies.host, caller, snapshot) : [];
    questions.push(...ofRun.map((question) => ({ ...question, resource: formatRunUri(runId) })));
    if (questions.length > most) return { questions: questions.slice(0, most), isMore: true };
  }
  return { questions, ...(next && { isMore: true }) };
}

const runAnswerSchema = z.strictObject({
  runId: id,
  nodeId: id.optional(),
  /** Whatever the question asks for; that it is there is looked at later. */
  value: z.unknown().optional(),
});
type RunAnswer = z.output<typeof runAnswerSchema>;

const questionAnswerSchema = z.strictObject({
  questionId: id,
  answer: answerKindSchema,
  text: z.string().min(1).optional(),
});

/** MCP wants the schema of an object, and clients show one better than a choice of several. */
const ANSWER_INPUT: Fields = {
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

function createAnswerTool(dependencies: McpDependencies): McpTool {
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
    call: (toolCall) => answerFor(dependencies, toolCall),
  };
}

async function answerFor(dependencies: McpDependencies, toolCall: ToolCall): Promise<ToolResult> {
  const { args } = toolCall;
  if (args["questionId"] === undefined) {
    const read = readArguments(runAnswerSchema, args);
    if (!read.ok) return read.result;
    return await answerRun(dependencies, toolCall, read.value);
  }
  const { operator } = dependencies;
  if (!operator)
    return createFailure(
      "This host has no coordinations of OpenClaw: answer a run, by its runId and a value.",
    );
  const read = readArguments(questionAnswerSchema, args);
  if (!read.ok) return read.result;
  return await askOperator(operator, {
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
  if (value === undefined) return createFailure("value: expected the person's decision, got nothing");
  const { host } = dependencies;
  const found = await host.snapshot(caller, runId);
  // Only calls about runs that are there are kept.
  if (found.kind === "refused") return createRefusal(found);
  const question = await findNamedQuestion(dependencies, caller, { snapshot: found.value, nodeId });
  const answer = async (about: RunQuestion | undefined): Promise<ToolResult> => {
    if (!about) return createFailure(`run ${runId} waits for no answer`);
    return describeAnswer(await host.resolve(caller, about.runId, about, value), callId);
  };
  return callId === undefined
    ? await answer(question)
    : await answerOnce(dependencies, { caller, args, callId }, question, answer);
}

/** A question that the same answer settled before may be that of this call, made again: only a call with an id is. */
function describeAnswer(outcome: Answered<ResolvedInterrupt>, callId: string | undefined): ToolResult {
  if (outcome.kind === "done") return createAnswerResult(outcome.value);
  const { resolved } = outcome;
  return resolved && callId !== undefined ? createAnswerResult(resolved) : createRefusal(outcome);
}

function createAnswerResult({ runId, nodeId, interruptId, status }: ResolvedInterrupt): ToolResult {
  return createResult(`Answered; run ${runId} is ${status}.`, { runId, nodeId, interruptId, status });
}

interface NamedNode {
  readonly snapshot: RunSnapshot;
  /** Absent: whichever node asks. */
  readonly nodeId: string | undefined;
}

/** Finds the question of the node, or without one the question of the run or of a child that it waits for. */
async function findNamedQuestion(
  { host }: McpDependencies,
  caller: Caller,
  { snapshot, nodeId }: NamedNode,
): Promise<RunQuestion | undefined> {
  const { runId } = snapshot;
  if (nodeId === undefined) return await findQuestion(host, caller, snapshot);
  const found = await host.question(caller, runId, { nodeId });
  return found.kind === "done" ? found.value : { runId, nodeId };
}

function createVerifyTool(dependencies: McpDependencies): McpTool {
  const { operator } = dependencies;
  const words = {
    name: "verify",
    title: "Prove the log",
    description: operator
      ? "Proves the log of a run, or the whole ledger: every stored byte, every hash, every event's meaning."
      : "Proves the log of a run: every stored byte, every hash, every event's meaning.",
    isReadOnly: true,
  };
  if (!operator)
    return createTool(words, z.strictObject({ runId: id }), ({ runId }, { caller }) =>
      verifyRun(dependencies, caller, runId),
    );
  return createTool(words, z.strictObject({ runId: id.optional() }), ({ runId }, { caller, signal }) =>
    runId === undefined ? verifyLedger(operator, signal) : verifyRun(dependencies, caller, runId),
  );
}

async function verifyRun({ runs }: McpDependencies, caller: Caller, runId: string): Promise<ToolResult> {
  const entry = await runs.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return createFailure(`there is no run ${runId} (not_found)`);
  const { events, problems } = await verifyWorkflowRun(runs, entry);
  const isWhole = problems.length === 0;
  const verdict = isWhole ? "holds" : `is damaged: ${formatCount(problems.length, "problem")}`;
  const data = { runId, ok: isWhole, events, problems };
  return createResult(`The log of ${runId} ${verdict}.`, data, { isError: !isWhole });
}

async function verifyLedger(operator: OperatorAccess, signal: AbortSignal): Promise<ToolResult> {
  try {
    const verified = await operator.verifyLedger(signal);
    const isWhole = verified["ok"] === true;
    return createResult(isWhole ? "The ledger holds." : "The ledger is damaged.", verified, {
      isError: !isWhole,
    });
  } catch (error) {
    return createFailure(signal.aborted ? "The proof was cancelled." : describeFailure(error));
  }
}
