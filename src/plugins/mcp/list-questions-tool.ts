/** Owns: the tool `questions` of the MCP server, which lists what runs and coordinations ask people. */
import { z } from "zod";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { listTenantRuns, readListedRun } from "../openwop/runs/list-tenant-runs.ts";
import { listRunQuestions as listQuestionsOfRun, type ShownQuestion } from "../openwop/runs/run-question.ts";
import { describeCoordinationFailure, readOperatorQuestions } from "./ask-operator.ts";
import { fitQuestions } from "./fit-questions.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createTool,
  createToolResult,
  limitSchema,
  MORE_RUNS,
  type ToolFields,
  type McpDependencies,
  type McpTool,
  type ToolResult,
} from "./mcp-tool.ts";
import { formatRunUri } from "./run-uris.ts";

const questionsSchema = z.strictObject({ limit: limitSchema.describe("List at most so many questions.") });

export function createQuestionsTool(dependencies: McpDependencies): McpTool {
  const words = {
    name: "questions",
    title: "What people are asked",
    description: "Lists what runs wait for somebody to answer.",
    isReadOnly: true,
  };
  return createTool(words, questionsSchema, async ({ limit: most }, { caller }) => {
    const found = await listTenantQuestions(dependencies, caller, most);
    const { operator } = dependencies;
    if (!operator) return createQuestionsResult({ ...found }, most);
    try {
      const { questions, isMore, unreadable } = await readOperatorQuestions(operator, {});
      const listed = {
        ...found,
        ofCoordinations: questions.slice(0, most),
        ...((isMore || questions.length > most) && { isMoreOfCoordinations: true as const }),
        ...(unreadable > 0 && { unreadable }),
      };
      return createQuestionsResult(listed, most);
    } catch (error) {
      // Runs of workflows need no gateway, and neither do their questions.
      return createQuestionsResult(
        { ...found, ofCoordinations: [], gateway: describeCoordinationFailure(error) },
        most,
      );
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

function createQuestionsResult(data: ToldQuestions, most: number): ToolResult {
  const { questions, ofCoordinations = [], ...beside } = data;
  const listed = [...questions, ...ofCoordinations] as readonly ToolFields[];
  const fitted = fitQuestions(
    listed,
    beside,
    data.ofCoordinations ? `${IN_RESOURCE}; the operator's page has those of coordinations` : IN_RESOURCE,
  );
  const words = [describeQuestionCount(data), fitted.omission, ...listOmissions(data, most)];
  const shown = {
    ...data,
    questions: fitted.questions.slice(0, questions.length),
    ...(data.ofCoordinations && { ofCoordinations: fitted.questions.slice(questions.length) }),
  };
  const elsewhere = "ask for fewer with a smaller `limit`";
  return createToolResult(words.filter((text) => text !== "").join(" "), shown, { elsewhere });
}

const IN_RESOURCE = "the `resource` of the run and its events have them";

/**
 * Returns the sentence that says how many questions there are; empty where there is none and the gateway could not be
 * asked.
 */
function describeQuestionCount(data: ToldQuestions): string {
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
  if (isMore) omissions.push(MORE_RUNS);
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

async function listTenantQuestions(
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
