/**
 * Messages to the MCP server, made from the input schemas of its own tools and a seed: over HTTP each is answered in time and in
 * words, and a session goes on; over stdio each line is answered or passed over, and the next one too. `FUZZ_MCP` sets how many
 * over HTTP, a tenth of them goes over stdio; `FUZZ_SEED` is the first seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFINITIONS, openMcpWorld, TOKEN, type McpWorld } from "../openwop/mcp-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import {
  createSender,
  describeSent,
  findAnswerFault,
  findRefusalFault,
  runCampaign,
  type TimedAnswer,
  type Sender,
  type HostileRequest,
} from "../support/hostile-requests.ts";
import {
  createFromSchema,
  createHostileText,
  createHostileValue,
  pickOne,
  spoilText,
  type Random,
} from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";
import { startStdioLines, type StdioLines } from "./stdio-lines.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const MESSAGES = chooseCampaignSize("FUZZ_MCP", { short: 1_500, long: 150_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const RUNS_KNOWN_MAX = 60;
const INTERNAL_ERROR = -32_603;
const LINE_CHARS_MAX = 200_000;

interface Tool {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

const METHODS = [
  "initialize",
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "completion/complete",
  "logging/setLevel",
  "sampling/createMessage",
  "tasks/get",
  "notifications/initialized",
  "notifications/cancelled",
  "notifications/progress",
  "rpc.discover",
  "__proto__",
  "constructor",
];

const names: string[] = ["echo", "gated", "gate", "only"];
let tools: readonly Tool[];

function createId(random: Random): unknown {
  return random() < 0.8 ? Math.floor(random() * 1e6) : createHostileValue(random);
}

function createArguments(random: Random, { inputSchema }: Tool): unknown {
  const chance = pickOne(random, [0, 0.05, 0.2, 1]);
  const made = createFromSchema({ random, chance, words: names }, inputSchema);
  const isRecord = typeof made === "object" && made !== null && !Array.isArray(made);
  // A wait that is wanted is no hang.
  return isRecord && "waitSeconds" in made && typeof made.waitSeconds === "number"
    ? { ...made, waitSeconds: made.waitSeconds > 50 ? made.waitSeconds : 0 }
    : made;
}

function createUri(random: Random): string {
  const name = random() < 0.5 ? pickOne(random, names) : createHostileText(random).slice(0, 3_000);
  const ending = pickOne(random, ["", "/events", "/events?limit=5", "/events?limit=x&from=-1", "?#", "/../"]);
  return random() < 0.8 ? `openwop://runs/${name}${ending}` : createHostileText(random);
}

/** A message that is one, as far as its form goes. */
function createMessage(random: Random): Record<string, unknown> {
  const isCall = random() < 0.6;
  const tool = pickOne(random, tools);
  const method = isCall ? "tools/call" : pickOne(random, METHODS);
  const params: Record<string, unknown> = isCall
    ? {
        name: random() < 0.95 ? tool.name : createHostileText(random),
        arguments: createArguments(random, tool),
      }
    : { uri: createUri(random), cursor: random() < 0.3 ? createHostileText(random) : undefined };
  if (random() < 0.2) params["_meta"] = createMeta(random);
  return {
    jsonrpc: random() < 0.97 ? "2.0" : createHostileValue(random),
    ...(!method.startsWith("notifications/") && { id: createId(random) }),
    method,
    params: random() < 0.95 ? params : createHostileValue(random),
  };
}

function createMeta(random: Random): unknown {
  return {
    progressToken: random() < 0.5 ? 7 : createHostileValue(random),
    "openclaw/callId": createHostileText(random),
    traceparent: createHostileText(random),
  };
}

/** Creates the content of one request or one line: a message, several, or something that is none. */
function createContent(random: Random): unknown {
  const choice = random();
  if (choice < 0.8) return createMessage(random);
  if (choice < 0.9) return Array.from({ length: Math.floor(random() * 5) }, () => createMessage(random));
  return createHostileValue(random);
}

/** Describes why an answer of JSON-RPC tells nothing, or tells of a fault of ours. */
function findRpcFault(text: string): string | undefined {
  for (const message of readMessages(text)) {
    const { error } = message as { readonly error?: { readonly code?: unknown; readonly message?: unknown } };
    if (!error) continue;
    if (error.code === INTERNAL_ERROR && !isOfLibrary(error.message))
      return `it is an error of ours: ${JSON.stringify(error).slice(0, 300)}`;
    if (typeof error.message !== "string" || error.message.length < 5) return `it does not say what is wrong`;
  }
  return undefined;
}

/** The library reads `initialize` by itself, and reports its form as a fault of the server: with the place. */
function isOfLibrary(message: unknown): boolean {
  return typeof message === "string" && message.startsWith("[") && message.includes('"path"');
}

function readMessages(text: string): unknown[] {
  const lines = text.split("\n").filter((line) => line.startsWith("data: ") && line.length > 6);
  const found: unknown[] =
    lines.length > 0 ? lines.map((line): unknown => JSON.parse(line.slice(6))) : [JSON.parse(text)];
  return found.flat();
}

describe("messages to the MCP server over HTTP", () => {
  let world: McpWorld;
  let sender: Sender;
  let session: string;
  let answeredCalls = 0;

  const post = (body: HostileRequest["body"], headers: Readonly<Record<string, string>>): HostileRequest => ({
    method: "POST",
    path: "/v1/mcp",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body,
  });

  const begin = async (): Promise<string> => {
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "f", version: "1" },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const { headers } = await sender.send(post(body, {}));
    return String(headers["mcp-session-id"]);
  };

  const ask = async (method: string, params = {}): Promise<Record<string, unknown>> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 2, method, params });
    const [message] = readMessages((await sender.send(post(body, { "mcp-session-id": session }))).text);
    return (message as { readonly result: Record<string, unknown> }).result;
  };

  beforeAll(async () => {
    world = await openMcpWorld();
    sender = createSender(world.baseUrl, { readsStreams: true });
    session = await begin();
    tools = ((await ask("tools/list"))["tools"] as Tool[]).filter(({ name }) => name !== "slow");
    names.push(...tools.map(({ name }) => name));
  });

  afterAll(async () => {
    sender.close();
    await world[Symbol.asyncDispose]();
  });

  const createRequest = (random: Random): HostileRequest => {
    const choice = random();
    const text = spoilText(random, createContent(random), pickOne(random, [0, 0, 0.1]));
    const sessionId = choice < 0.93 ? session : encodeURIComponent(createHostileText(random).toWellFormed());
    const request = post(text, {
      ...(choice < 0.97 && { "mcp-session-id": sessionId.slice(0, 2_000) }),
      ...(random() < 0.05 && {
        "mcp-protocol-version": pickOne(random, ["1", "2024-11-05", "x".repeat(500)]),
      }),
      ...(random() < 0.02 && { accept: "text/plain" }),
      ...(random() < 0.02 && { "content-type": "text/plain" }),
    });
    // The session that the others use goes on.
    return random() < 0.02 && sessionId !== session ? { ...request, method: "DELETE" } : request;
  };

  const findFault = (answered: TimedAnswer): string | undefined => {
    const { status, text, type } = answered;
    const fault = findAnswerFault(answered);
    if (fault !== undefined || text === "") return fault;
    if (text.includes('"jsonrpc"') && (status >= 400 || !type.includes("html"))) return findRpcFault(text);
    return status < 400 ? undefined : findRefusalFault(answered);
  };

  const tryOne = async (seed: number): Promise<string | undefined> => {
    const random = createRandom(seed);
    random();
    const sent = createRequest(random);
    const answered = await sender.send(sent);
    if (answered.text.includes('"structuredContent"')) answeredCalls += 1;
    const runId = /"runId":"([\w-]+)"/u.exec(answered.text)?.[1];
    if (runId !== undefined && names.length < RUNS_KNOWN_MAX) names.push(runId);
    const fault = findFault(answered);
    return fault && `${fault}; ${describeSent(sent)}`;
  };

  it(`are each answered, whatever is in them (${MESSAGES})`, { timeout: 3_600_000 }, async () => {
    expect(await runCampaign({ firstSeed: SEED, count: MESSAGES, tryOne })).toEqual([]);
    expect(answeredCalls).toBeGreaterThan(MESSAGES / 20);
    expect(await ask("ping")).toEqual({});
  });
});

describe("lines to the MCP server over stdio", () => {
  const LINES = Math.ceil(MESSAGES / 10);

  it(
    `are each answered or passed over, and the next one too (${LINES})`,
    { timeout: 3_600_000 },
    async () => {
      using folder = createTempFolder();
      await using server = await startStdioLines(folder.path, DEFINITIONS);
      const listed = (await server.ask("tools/list")) as { readonly tools: Tool[] };
      tools = listed.tools.filter(({ name }) => name !== "slow");
      // The first call of each tool loads code.
      for (const { name } of tools) await server.ask("tools/call", { name });
      for (let seed = SEED; seed < SEED + LINES; seed += 1)
        expect(await tryLine(server, seed), `seed ${seed}`).toBeUndefined();
    },
  );

  /** Writes a hostile line, and then asks for something: the answer to it must come in time. */
  const tryLine = async (server: StdioLines, seed: number): Promise<string | undefined> => {
    const random = createRandom(seed);
    random();
    const content = spoilText(random, createContent(random), pickOne(random, [0, 0.2, 0.5]));
    const line = typeof content === "string" ? content.replaceAll("\n", " ") : content;
    server.write(random() < 0.9 ? line : createHostileText(random).repeat(10).slice(0, LINE_CHARS_MAX));
    const start = performance.now();
    await server.ask("ping");
    const ms = performance.now() - start;
    return ms > 1_000
      ? `the next answer took ${Math.round(ms)} ms: ${String(line).slice(0, 300)}`
      : server.takeOutput().map(findRpcFault).find(Boolean);
  };
});
