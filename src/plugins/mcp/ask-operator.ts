/** Owns: what the gateway answers in the operator's name, in words: how coordinations are, when they end, and what they ask. */
import {
  isCoordinationError,
  isGatewayAway,
  type CoordinationError,
} from "../../agents/coordination/contracts/errors.ts";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import { fitQuestions } from "./fit-questions.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import {
  createFailure,
  createResult,
  type Fields,
  type McpDependencies,
  type OperatorAccess,
  type ToolResult,
} from "./mcp-tool.ts";

interface GatewayRequest {
  readonly method: Parameters<OperatorAccess["askGateway"]>[0];
  readonly params: object;
  /** Returns the words about the answer. */
  readonly describe: (answer: Fields) => string;
}

/** Asks the gateway in the operator's name; a refusal is told in its words. */
export function askOperator(
  operator: OperatorAccess,
  { method, params, describe }: GatewayRequest,
): Promise<ToolResult> {
  return tellFailure(async () => {
    const answer = await operator.askGateway(method, params);
    return createResult(describe(answer), answer);
  });
}

interface CoordinationWait {
  readonly operator: OperatorAccess;
  readonly coordinationId: string;
  readonly signal: AbortSignal;
  readonly waitMs: number;
}

/**
 * Tells how a coordination is as soon as it has ended or asks people, when the time is over, and when `signal` aborts. A gateway
 * that is away meanwhile is asked again.
 */
export function tellCoordination(
  { clock, mayAnswer }: Pick<McpDependencies, "clock" | "mayAnswer">,
  { operator, coordinationId, signal, waitMs }: CoordinationWait,
): Promise<ToolResult> {
  return tellFailure(async () => {
    const endMs = clock.now() + waitMs;
    for (;;) {
      const found = await readUnlessAway(operator, coordinationId);
      const leftMs = endMs - clock.now();
      const isOver = leftMs <= 0 || signal.aborted;
      if (found instanceof Error) {
        if (isOver) throw found;
      } else if (isOver || found.status !== "running" || found.questions.length > 0)
        return describeCoordination(coordinationId, found, mayAnswer);
      await waitFor(clock, Math.min(leftMs, MCP_BOUNDS.pollMs), signal);
    }
  });
}

interface FoundCoordination {
  readonly status: string;
  readonly answer: Fields;
  /** Those that wait for people. */
  readonly questions: readonly unknown[];
}

/** Returns the error by which the gateway is away, in place of the coordination. */
async function readUnlessAway(
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
  const { questions } = await readQuestions(operator, { coordinationId });
  return { status, answer, questions };
}

export interface OperatorQuestions {
  readonly questions: readonly unknown[];
  /** The gateway listed as many as it lists at once. */
  readonly isMore: boolean;
  /** Coordinations whose log cannot be read, so that nobody knows what they ask. */
  readonly unreadable: number;
}

/** Reads the questions of coordinations that wait for people: what an agent asked its parent does so once it is passed on. */
export async function readQuestions(
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

function describeCoordination(
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
    const fitted = fitQuestions(questions as readonly Fields[], answer, ELSEWHERE);
    const sentences = [`${words} and waits for people: ${count}.`, fitted.omission, `${next}.`];
    const data = { ...answer, questions: fitted.questions };
    return createResult(sentences.filter((text) => text !== "").join(" "), data, { elsewhere: ELSEWHERE });
  }
  const next = status === "running" ? " Call `status` with it as runId to wait for its end." : "";
  const isError = FAILURES.has(status);
  return createResult(`${words}.${next}`, answer, { isError, elsewhere: ELSEWHERE });
}

/** Does the work; a failure of the world is a result, too. */
async function tellFailure(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    return createOperatorFailure(error);
  }
}

const PROBLEMS_MAX = 20;

/** Tells a failure with everything that the gateway has against a plan, so that all of it can be corrected at once. */
function createOperatorFailure(error: unknown): ToolResult {
  const message = describeFailure(error);
  const { details } = error as { readonly details?: { readonly problems?: unknown } };
  const problems: unknown = details?.problems;
  if (!Array.isArray(problems)) return createFailure(message);
  const problemsLeftOut = Math.max(0, problems.length - PROBLEMS_MAX);
  const data = {
    problems: problems.slice(0, PROBLEMS_MAX) as unknown[],
    ...(problemsLeftOut > 0 && { problemsLeftOut }),
  };
  return createResult(message, data, { isError: true });
}

/** Describes a failure of the world. @throws what is no such failure */
export function describeFailure(error: unknown): string {
  if (isCoordinationError(error)) return `${error.message} (${error.code}). ${error.advice}`;
  throw error;
}
