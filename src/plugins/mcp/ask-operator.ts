/** Owns: what the gateway answers in the operator's name, in words: how coordinations are, when they end, and what they ask. */
import {
  isCoordinationError,
  isGatewayAway,
  type CoordinationError,
} from "../../agents/coordination/contracts/errors.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { fitQuestions } from "./fit-questions.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createFailureResult,
  createToolResult,
  type ToolFields,
  type McpDependencies,
  type OperatorAccess,
  type ToolResult,
} from "./mcp-tool.ts";

interface GatewayRequest {
  readonly method: Parameters<OperatorAccess["askGateway"]>[0];
  readonly params: object;
  /** Returns the words about the answer. */
  readonly describe: (answer: ToolFields) => string;
}

/**
 * Calls a method of the gateway in the operator's name and returns the tool result, in words and as data; a failure of
 * the gateway becomes a failed result.
 */
export function askGatewayAsOperator(
  operator: OperatorAccess,
  { method, params, describe }: GatewayRequest,
): Promise<ToolResult> {
  return catchFailure(async () => {
    const answer = await operator.askGateway(method, params);
    return createToolResult(describe(answer), answer);
  });
}

interface CoordinationWait {
  readonly operator: OperatorAccess;
  readonly coordinationId: string;
  readonly signal: AbortSignal;
  readonly waitMs: number;
}

/**
 * Waits until a coordination has ended or asks people, the time is over, or `signal` aborts, and returns the tool
 * result that says how it is then; a gateway that is away meanwhile is asked again, and is a failure only at the end.
 */
export function waitForCoordination(
  { clock, mayAnswer }: Pick<McpDependencies, "clock" | "mayAnswer">,
  { operator, coordinationId, signal, waitMs }: CoordinationWait,
): Promise<ToolResult> {
  return catchFailure(async () => {
    const endMs = clock.now() + waitMs;
    for (;;) {
      const readResult = await readCoordinationUnlessAway(operator, coordinationId);
      const leftMs = endMs - clock.now();
      const isOver = leftMs <= 0 || signal.aborted;
      if (readResult instanceof Error) {
        if (isOver) throw readResult;
      } else if (isOver || readResult.status !== "running" || readResult.questions.length > 0)
        return createCoordinationResult(coordinationId, readResult, mayAnswer);
      await waitForDuration(clock, Math.min(leftMs, MCP_BOUNDS.pollMs), signal);
    }
  });
}

interface FoundCoordination {
  readonly status: string;
  readonly answer: ToolFields;
  /** Those that wait for people. */
  readonly questions: readonly unknown[];
}

/** Returns how a coordination is, or the error by which the gateway is away. */
async function readCoordinationUnlessAway(
  operator: OperatorAccess,
  coordinationId: string,
): Promise<FoundCoordination | CoordinationError> {
  try {
    return await readCoordination(operator, coordinationId);
  } catch (error) {
    if (isGatewayAway(error)) return error;
    throw error;
  }
}

async function readCoordination(
  operator: OperatorAccess,
  coordinationId: string,
): Promise<FoundCoordination> {
  const answer = await operator.askGateway("coordination.status", { coordinationId });
  const { status = "unknown" } = (answer["coordination"] ?? {}) as { readonly status?: string };
  if (status !== "running") return { status, answer, questions: [] };
  const { questions } = await readOperatorQuestions(operator, { coordinationId });
  return { status, answer, questions };
}

export interface OperatorQuestions {
  readonly questions: readonly unknown[];
  /** The gateway listed as many as it lists at once. */
  readonly isMore: boolean;
  /** Coordinations whose log cannot be read, so that nobody knows what they ask. */
  readonly unreadable: number;
}

/**
 * Returns the gateway's questions that wait for people, of one coordination or of all, with whether there may be more;
 * questions that a child asked its parent are left out until they are passed on.
 */
export async function readOperatorQuestions(
  operator: OperatorAccess,
  query: { readonly coordinationId?: string },
): Promise<OperatorQuestions> {
  const answer = await operator.askGateway("coordination.questions", { ...query, limit: LISTED_MAX });
  const { questions, unreadable } = answer;
  const listed = Array.isArray(questions) ? (questions as readonly ToldQuestion[]) : [];
  return {
    questions: listed.filter(
      ({ askedOf, forwardedAtMs }) => askedOf === undefined || forwardedAtMs !== undefined,
    ),
    isMore: listed.length >= LISTED_MAX,
    unreadable: typeof unreadable === "number" ? unreadable : 0,
  };
}

/** The gateway lists no more at once. */
const LISTED_MAX = 500;

interface ToldQuestion {
  readonly askedOf?: string;
  readonly forwardedAtMs?: number;
}

const ELSEWHERE = "look at the operator's page, or ask `openclaw coordination`";
const FAILURES: ReadonlySet<string> = new Set(["failed", "timed_out", "cancelled"]);

function createCoordinationResult(
  coordinationId: string,
  { status, answer, questions }: FoundCoordination,
  mayAnswer: boolean,
): ToolResult {
  const words = `Coordination ${coordinationId} is ${status}`;
  if (questions.length > 0) {
    const next = mayAnswer
      ? "Give a person's decision to `answer` with the questionId"
      : "A person must answer elsewhere: by the operator's page or the command line";
    const count = formatCount(questions.length, "question");
    const fitted = fitQuestions(questions as readonly ToolFields[], answer, ELSEWHERE);
    const sentences = [`${words} and waits for people: ${count}.`, fitted.omission, `${next}.`];
    const data = { ...answer, questions: fitted.questions };
    return createToolResult(sentences.filter((text) => text !== "").join(" "), data, {
      elsewhere: ELSEWHERE,
    });
  }
  const next = status === "running" ? " Call `status` with it as runId to wait for its end." : "";
  const isError = FAILURES.has(status);
  return createToolResult(`${words}.${next}`, answer, { isError, elsewhere: ELSEWHERE });
}

/** Returns the result of the work; a failure of the world is a result, too, and a fault of ours is thrown. */
async function catchFailure(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    return createOperatorFailure(error);
  }
}

const PROBLEMS_MAX = 20;

/**
 * Returns a CoordinationError as a failed tool result, with up to 20 of the problems that the gateway has with a plan
 * and how many are left out. Throws any other error on.
 */
function createOperatorFailure(error: unknown): ToolResult {
  const message = describeCoordinationFailure(error);
  const { details } = error as { readonly details?: { readonly problems?: unknown } };
  const problems: unknown = details?.problems;
  if (!Array.isArray(problems)) return createFailureResult(message);
  const problemsLeftOut = Math.max(0, problems.length - PROBLEMS_MAX);
  const data = {
    problems: problems.slice(0, PROBLEMS_MAX) as unknown[],
    ...(problemsLeftOut > 0 && { problemsLeftOut }),
  };
  return createToolResult(message, data, { isError: true });
}

/**
 * Returns the message, code and advice of a CoordinationError as one text. @throws the error itself where it is no
 * CoordinationError
 */
export function describeCoordinationFailure(error: unknown): string {
  if (isCoordinationError(error)) return `${error.message} (${error.code}). ${error.advice}`;
  throw error;
}
