/**
 * Owns: one session of the MCP server: what a client may list, call and read, in the name of the caller that it was begun
 * for. The protocol itself is the official library's.
 *
 * M3 A tool that asks for scopes that the caller lacks is neither listed nor called.
 * M4 A fault of ours is logged under an id and told as that id only.
 */
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type CallToolRequest,
  type CallToolResult,
  type ServerNotification,
  type ServerRequest,
  type ServerResult,
} from "@modelcontextprotocol/sdk/types.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { z } from "zod";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { PARENT_HEADER, readParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { readTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { listFixedTools } from "./fixed-tools.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import type { McpDependencies, McpTool, ToolCall, ToolSession, ToolResult } from "./mcp-tool.ts";
import { listRunResources, readRunResource, RESOURCE_TEMPLATES } from "./run-resources.ts";
import { hasScopesForTool } from "./tool-scopes.ts";
import { listWorkflowTools } from "./workflow-tools.ts";

/** The library's own fields of a request, such as its signal. */
type RequestExtras = RequestHandlerExtra<ServerRequest, ServerNotification>;

const INSTRUCTIONS =
  "Each workflow is a tool: call it with its inputs. A run that waits for a person answers with its question; " +
  "put the question to a person, and never decide in their place. `status` waits for a run that takes longer than one call.";

/**
 * Creates the MCP server of one session, which offers the caller its tools and the runs as resources. `hasLeft` tells
 * whether its client is gone.
 */
export function createMcpServer(
  dependencies: McpDependencies,
  caller: Caller,
  hasLeft: () => boolean,
): McpServer {
  const mcpServer = new McpServer(
    { name: "openclaw-coordination", version: dependencies.version },
    {
      capabilities: { tools: {}, resources: {} },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: ASKS_NOTHING,
    },
  );
  const { server } = mcpServer;
  const handle = createHandlerRegistrar(server, createFaultGuard(dependencies));
  const listTools = createToolList(dependencies, caller);
  handle(REQUESTS.listTools, async ({ params }) => createToolPage(await listTools(), params?.cursor));
  handle(REQUESTS.callTool, async ({ params }, extra) => {
    const tool = (await listTools()).find(({ name }) => name === params.name);
    if (!tool)
      throw createInvalidParamsError(`there is no tool ${JSON.stringify(params.name.slice(0, 100))}`);
    const result = await tool.call(createToolCall({ caller, hasLeft }, params, extra));
    return formatToolResult(result);
  });
  handle(REQUESTS.listResources, async ({ params }) => {
    const page = await listRunResources(dependencies, caller, params?.cursor);
    return page ?? throwInvalidParams("cursor: expected the nextCursor of a page before");
  });
  handle(REQUESTS.listTemplates, () => Promise.resolve({ resourceTemplates: RESOURCE_TEMPLATES }));
  handle(REQUESTS.readResource, async ({ params: { uri } }) => {
    const found = await readRunResource(dependencies, caller, uri);
    if (found) return found;
    throw new McpError(RESOURCE_NOT_FOUND, "there is no such resource", { uri: uri.slice(0, 500) });
  });
  return mcpServer;
}

/** The library takes requests of `anyForm`, because it reports one of a wrong form as a fault of ours. */
interface RequestForm<S extends z.ZodType> {
  readonly method: string;
  readonly schema: S;
  readonly anyForm: z.ZodObject<{ readonly method: z.ZodLiteral<string> }, z.core.$loose>;
}

const REQUESTS = {
  listTools: createRequestForm("tools/list", ListToolsRequestSchema),
  callTool: createRequestForm("tools/call", CallToolRequestSchema),
  listResources: createRequestForm("resources/list", ListResourcesRequestSchema),
  listTemplates: createRequestForm("resources/templates/list", ListResourceTemplatesRequestSchema),
  readResource: createRequestForm("resources/read", ReadResourceRequestSchema),
};

function createRequestForm<S extends z.ZodType>(method: string, schema: S): RequestForm<S> {
  return { method, schema, anyForm: z.looseObject({ method: z.literal(method) }) };
}

/** Registers the handler of one form of request. */
type HandlerRegistrar = <S extends z.ZodType>(
  form: RequestForm<S>,
  work: (request: z.output<S>, extra: RequestExtras) => Promise<ServerResult>,
) => void;

/** Returns a function that registers a handler, which gets only requests of the right form. */
function createHandlerRegistrar(server: McpServer["server"], answer: FaultGuard): HandlerRegistrar {
  return ({ method, schema, anyForm }, work) => {
    server.setRequestHandler(anyForm, (request, extra) =>
      answer(method, async () => {
        const parsed = schema.safeParse(request);
        if (!parsed.success) throw createInvalidParamsError(describeIssues(parsed.error));
        return work(parsed.data, extra);
      }),
    );
  };
}

/** As the protocol's revision 2025-11-25 says; the library has no name for it. */
const RESOURCE_NOT_FOUND = -32_002;

/** Validates what clients answer to questions of the server, which asks none. One of the library's for each session takes memory. */
const ASKS_NOTHING = {
  getValidator: (): never => {
    throw new Error("this server asks its clients nothing");
  },
};

/**
 * Returns a function that lists the tools that the caller has the scopes for. They are made anew when the host's
 * workflows change.
 */
function createToolList(dependencies: McpDependencies, caller: Caller): () => Promise<readonly McpTool[]> {
  const { host, toolScopes } = dependencies;
  const fixed = listFixedTools(dependencies);
  const names = fixed.map(({ name }) => name);
  let kept: { readonly workflowIds: readonly string[]; readonly tools: readonly McpTool[] } | undefined;
  return async () => {
    const workflowIds = host.workflowIds();
    if (kept?.workflowIds !== workflowIds) {
      const allTools = [...fixed, ...(await listWorkflowTools(dependencies, caller, names))];
      kept = { workflowIds, tools: allTools.filter((tool) => hasScopesForTool(toolScopes, caller, tool)) };
    }
    return kept.tools;
  };
}

function createToolPage(tools: readonly McpTool[], cursor: string | undefined) {
  const from = cursor === undefined ? 0 : Number(cursor);
  if (cursor !== undefined && !/^\d{1,9}$/u.test(cursor))
    throw createInvalidParamsError("cursor: expected the nextCursor of a page before");
  const page = tools.slice(from, from + MCP_BOUNDS.pageMax);
  const next = from + page.length;
  return {
    tools: page.map(({ name, title, description, inputSchema, isReadOnly }) => ({
      name,
      title,
      description,
      inputSchema: { ...inputSchema, type: "object" as const },
      annotations: { title, readOnlyHint: isReadOnly },
    })),
    ...(next < tools.length && { nextCursor: String(next) }),
  };
}

const CALL_ID = "openclaw/callId";

function createToolCall(
  session: ToolSession,
  { arguments: args = {} }: CallToolRequest["params"],
  extra: RequestExtras,
): ToolCall {
  const { signal, _meta: meta, requestInfo } = extra;
  const readHeader = (name: string): string | undefined => readTextOrNothing(requestInfo?.headers[name]);
  const parent = readParentHeader(readHeader(PARENT_HEADER));
  return {
    ...session,
    args,
    signal,
    ...readTraceHeaders({
      traceparent: readTextOrNothing(meta?.["traceparent"]) ?? readHeader("traceparent"),
      tracestate: readTextOrNothing(meta?.["tracestate"]) ?? readHeader("tracestate"),
    }),
    ...(parent && { parent }),
    ...readCallId(meta),
    ...createProgressReporter(extra),
  };
}

function readCallId(meta: RequestExtras["_meta"]): Partial<ToolCall> {
  const callId = readTextOrNothing(meta?.[CALL_ID]);
  return callId !== undefined && callId.length <= MCP_BOUNDS.callIdCharsMax ? { callId } : {};
}

function createProgressReporter({ _meta: meta, sendNotification }: RequestExtras): Partial<ToolCall> {
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return {};
  return {
    tellProgress: (progress) => {
      const params = { ...progress, progressToken };
      // A client that is gone need not be told.
      sendNotification({ method: "notifications/progress", params }).catch(() => undefined);
    },
  };
}

function readTextOrNothing(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function formatToolResult({ text, structured, isError = false }: ToolResult): CallToolResult {
  return {
    content: [{ type: "text", text }],
    ...(structured && { structuredContent: { ...structured } }),
    ...(isError && { isError }),
  };
}

function createInvalidParamsError(message: string): McpError {
  return new McpError(ErrorCode.InvalidParams, message);
}

function throwInvalidParams(message: string): never {
  throw createInvalidParamsError(message);
}

function describeIssues({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
}

/** Calls a function, and logs what it throws before the client is answered with an error. */
type FaultGuard = <T>(where: string, work: () => Promise<T>) => Promise<T>;

/** Returns a function that does work, and logs a fault of ours under an id that alone is told (M4). */
function createFaultGuard({ logger }: McpDependencies): FaultGuard {
  return async (where, work) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof McpError) throw error;
      const correlationId = randomUUID();
      logger.error({ correlationId, where, error: describeError(error) }, "a request over MCP failed");
      throw new McpError(ErrorCode.InternalError, "an unexpected error occurred", { correlationId });
    }
  };
}
