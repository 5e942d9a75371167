/**
 * Owns: the messages on the pipes of an agent, bounded, in both directions.
 *
 * It stands in for the SDK's `ndJsonStream`, which reads without backpressure, answers lines that are not JSON instead
 * of failing, and lets an agent ask without end while it takes no answers. Messages that the SDK would only
 * complain about on the host's console (answers to nothing, notifications that it cannot read) are dropped here.
 *
 * Session updates are handed over here and not through the SDK: it waits a turn for every handler that was registered
 * before, and with two of them the answer to a prompt overtakes the last words before it.
 */
import type { Readable } from "node:stream";
import { CLIENT_METHODS, type AnyMessage, type JsonRpcId, type Stream } from "@agentclientprotocol/sdk";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure } from "./agent-failure.ts";
import type { AgentProcess } from "./agent-process.ts";
import { isRecord, type UnknownRecord } from "../../agents/coordination/std/is-record.ts";

const NEWLINE = 0x0a;

export interface StreamOptions {
  readonly limits: AcpLimits;
  /** Gets the params of every `session/update`, in order, before any later answer. */
  readonly onUpdate: (params: unknown) => void;
  /** Hears of every request that the agent's pipe took. */
  readonly onSent: (method: string) => void;
}

/** Which requests wait for an answer, on both sides. */
interface OpenRequests {
  readonly ours: Set<JsonRpcId>;
  theirs: number;
}

/**
 * Creates the stream of ACP messages that the SDK reads and writes, over the pipes of an agent's process. A write that
 * fails is no error.
 */
export function createAgentStream({ stdin, stdout }: AgentProcess, options: StreamOptions): Stream {
  const open: OpenRequests = { ours: new Set(), theirs: 0 };
  return {
    readable: ReadableStream.from(readMessages(stdout, open, options)),
    writable: new WritableStream({
      write: (message) =>
        new Promise((resolve) => {
          if ("method" in message && "id" in message) open.ours.add(message.id);
          stdin.write(`${JSON.stringify(message)}\n`, (error) => {
            if (!("method" in message)) open.theirs -= 1;
            else if (!error) options.onSent(message.method);
            // A failed write is no failure of the attempt: the answer may be on its way already.
            resolve();
          });
        }),
    }),
  };
}

/**
 * Yields the agent's answers and requests. Session updates go to `onUpdate`; all other notifications are dropped.
 * Throws AgentFailure at a bound, or for a line that is no message.
 */
async function* readMessages(
  stdout: Readable,
  open: OpenRequests,
  { limits, onUpdate }: StreamOptions,
): AsyncGenerator<AnyMessage> {
  for await (const line of readLines(stdout, limits)) {
    const text = line.toString("utf8").trim();
    if (text === "") continue;
    const message = parseMessage(text);
    if (!("method" in message)) {
      if (open.ours.delete(message["id"] as JsonRpcId)) yield message as AnyMessage;
    } else if ("id" in message) {
      open.theirs += 1;
      if (open.theirs > limits.openRequestsMax)
        throw new AgentFailure(
          `The agent made more than ${limits.openRequestsMax} requests without taking the answers.`,
        );
      yield message as AnyMessage;
    } else if (message["method"] === CLIENT_METHODS.session_update) onUpdate(message["params"]);
  }
}

/**
 * Yields the lines that the agent writes, without their ends; an unfinished last one is dropped, because the process
 * died in the middle of it. Throws AgentFailure where a line or all of the output is too long.
 */
async function* readLines(stdout: Readable, limits: AcpLimits): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let partBytes = 0;
  let outputBytes = 0;
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    outputBytes += chunk.byteLength;
    if (outputBytes > limits.outputBytesMax)
      throw new AgentFailure(`The agent wrote more than ${limits.outputBytesMax} bytes.`);
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      assertMessageSize(partBytes + end - start, limits);
      yield Buffer.concat(parts);
      parts = [];
      partBytes = 0;
      start = end + 1;
    }
    parts.push(chunk.subarray(start));
    partBytes += chunk.byteLength - start;
    assertMessageSize(partBytes, limits);
  }
}

function assertMessageSize(bytes: number, { messageBytesMax }: AcpLimits): void {
  if (bytes > messageBytesMax)
    throw new AgentFailure(`The agent wrote a message of more than ${messageBytesMax} bytes.`);
}

function parseMessage(text: string): UnknownRecord {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw new AgentFailure("The agent wrote a line that is not JSON to its standard output.");
  }
  if (!isRecord(message) || !isJsonRpc(message))
    throw new AgentFailure("The agent wrote a line that is no JSON-RPC message to its standard output.");
  return message;
}

function isJsonRpc(message: UnknownRecord): boolean {
  const { jsonrpc, method, id } = message;
  if (jsonrpc !== "2.0") return false;
  if (id !== undefined && id !== null && typeof id !== "string" && typeof id !== "number") return false;
  return method === undefined ? id !== undefined : typeof method === "string";
}
