/** Owns: the form of a tool of the MCP server, of its calls and results, and what it works with. */
import { z } from "zod";
import type { ParentRun } from "../../agents/coordination/contracts/workflows/workflow-events.ts";
import {
  describeProblems,
  parseBounded,
  type ValidationProblem,
} from "../../agents/coordination/contracts/validation.ts";
import type {
  Caller,
  HostRefusal,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { countCharsLeft } from "../../platform/write-json.ts";
import type { RunAccess } from "../openwop/runs/run-access.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";

/** Named values that a tool takes or returns, unchecked. */
export type ToolFields = Readonly<Record<string, unknown>>;

/** The collaborators that tools and resources work with. */
export interface McpDependencies extends RunAccess {
  /** The scopes that a caller needs for a tool, by its name or the id of its workflow. */
  readonly toolScopes: Readonly<Record<string, readonly string[]>>;
  /** The gateway and the whole ledger, for the operator of both. Absent: a client of a host asks. */
  readonly operator?: OperatorAccess;
  /** Whether clients may answer what people are asked. */
  readonly mayAnswer: boolean;
}

/** Requests that only whoever operates the ledger may make. */
export interface OperatorAccess {
  /**
   * Asks a running gateway. @throws CoordinationError where none can be reached or it refuses; the error's `details` are those of the
   * refusal
   */
  askGateway(
    method:
      "coordination.plan.run" | "coordination.status" | "coordination.questions" | "coordination.answer",
    params: object,
  ): Promise<ToolFields>;
  /** Proves the whole ledger, until `signal` aborts. @throws CoordinationError where it cannot be opened */
  verifyLedger(signal: AbortSignal): Promise<ToolFields>;
}

/** Who calls tools, and whether the client is still there. */
export interface ToolSession {
  readonly caller: Caller;
  /** Whether the client left, rather than cancelled. */
  readonly hasLeft: () => boolean;
}

/** One call of a tool, after its caller was let in. */
export interface ToolCall extends ToolSession {
  readonly args: ToolFields;
  /** Aborted when the client cancels the call or leaves. */
  readonly signal: AbortSignal;
  /** Tells the client how far the work is; absent where it did not ask for that. */
  readonly tellProgress?: (progress: ToolProgress) => void;
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** The run of another host that calls. */
  readonly parent?: ParentRun;
  /** Names the call: the same call made again is the same run, and the same answer. */
  readonly callId?: string;
}

/** How far a run is: nodes that have ended, of all of them. */
export interface ToolProgress {
  readonly progress: number;
  readonly total: number;
  readonly message: string;
}

export interface McpTool {
  readonly name: string;
  /** The workflow that it runs. Absent: it runs none. */
  readonly workflowId?: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: ToolFields;
  /** True where a call changes nothing. */
  readonly isReadOnly: boolean;
  readonly call: (call: ToolCall) => Promise<ToolResult>;
}

/** Tells what came of a call, as data and in words. */
export interface ToolResult {
  readonly text: string;
  readonly structured?: ToolFields;
  readonly isError?: boolean;
}

/** Counted beforehand are 16 characters for each value, of which its text has a fourth at least. */
export const COUNTED_PER_CHAR = 4;

/**
 * Returns a tool result with the words first and the data as JSON behind them, for clients that read texts only; data
 * that is too large for an answer is left out, and `elsewhere` says how to get it.
 */
export function createToolResult(
  words: string,
  structured: ToolFields,
  { isError = false, elsewhere = "read the run as a resource" } = {},
): ToolResult {
  const { resultCharsMax } = MCP_BOUNDS;
  // Data of megabytes would stop the thread where it is written.
  const isHuge = countCharsLeft(structured, COUNTED_PER_CHAR * resultCharsMax) < 0;
  const dataText = isHuge ? undefined : JSON.stringify(structured, undefined, 2);
  if (dataText === undefined || dataText.length > resultCharsMax)
    return {
      text: `${words}\nThe data has more than the ${resultCharsMax} characters of one answer: ${elsewhere}.`,
      isError,
    };
  return { text: `${words}\n${dataText}`, structured, isError };
}

/** Returns a tool result that is marked as an error and has the message alone. */
export function createFailureResult(message: string): ToolResult {
  return { text: message, isError: true };
}

/** Returns a tool result that is marked as an error and says why the host refused, in words and as data. */
export function createRefusalResult({ code, message, details }: HostRefusal): ToolResult {
  const structured = { error: code, message, ...(details && { details }) };
  return { text: `${message} (${code})`, structured, isError: true };
}

/**
 * Returns the arguments of a tool call as the schema parses them; where they do not fit, the tool result that lists
 * their problems, up to a bound.
 */
export function readToolArguments<S extends z.ZodType>(
  schema: S,
  args: ToolFields,
): { readonly ok: true; readonly value: z.output<S> } | { readonly ok: false; readonly result: ToolResult } {
  const parsed = parseBounded(schema, args, MCP_BOUNDS.arguments);
  return parsed.ok ? parsed : { ok: false, result: createProblemsResult(parsed.problems) };
}

function createProblemsResult(problems: readonly ValidationProblem[]): ToolResult {
  return { text: describeProblems(problems), structured: { problems }, isError: true };
}

/** The id of a run, a node or a question. */
export const idSchema = z.string().min(1).max(256);
/** How many runs or questions a tool lists. */
export const limitSchema = z.int().min(1).max(MCP_BOUNDS.runsMax).default(MCP_BOUNDS.runsDefault);

/** Ends a list that is not whole. */
export const MORE_RUNS = "There may be more: the resources of this server are all of them, page by page.";

interface ToolWords {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly isReadOnly: boolean;
}

/**
 * Creates an MCP tool whose arguments `schema` describes; `call` runs only with arguments that fit, and others are
 * answered by a result with their problems.
 */
export function createTool<S extends z.ZodType>(
  words: ToolWords,
  schema: S,
  call: (value: z.output<S>, toolCall: ToolCall) => Promise<ToolResult>,
): McpTool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: "input" }) as ToolFields;
  return {
    ...words,
    inputSchema,
    call: async (toolCall) => {
      const read = readToolArguments(schema, toolCall.args);
      return read.ok ? await call(read.value, toolCall) : read.result;
    },
  };
}
