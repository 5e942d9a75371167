/** Owns: an OpenAI-compatible server that keeps every request, and answers one when the test says what. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { SupervisorMessage } from "./stateful-scene.ts";
import { waitFor } from "./wait-for.ts";

export interface HeldModel extends AsyncDisposable {
  readonly baseUrl: string;
  readonly origin: string;
  /** The bodies that were asked with, the oldest first. */
  readonly bodies: readonly string[];
  /** The turn as the request tells it. */
  told(index: number): SupervisorMessage;
  /** Resolves when so many were asked in all. */
  asked(count: number): Promise<void>;
  /** Answers the newest request that waits, with a decision or with what follows from what it said of its turn. */
  say(decision: unknown): Promise<void>;
  sayTo(decide: (telling: SupervisorMessage) => unknown): Promise<void>;
}

export async function startHeldModel(): Promise<HeldModel> {
  const bodies: string[] = [];
  const waiting = new Map<ServerResponse, string>();
  const server = createServer((request, response) => {
    void keep(request, response, bodies, waiting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sayTo: HeldModel["sayTo"] = async (decide) => {
    const [response, question] = await waitFor(() => [...waiting].at(-1), { what: "a request", everyMs: 5 });
    waiting.delete(response);
    const decision = decide(readTold(question));
    const content = typeof decision === "string" ? decision : JSON.stringify(decision);
    const message = { role: "assistant", content };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const body = { id: "c", object: "chat.completion", created: 1, model: "held", usage };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...body, choices: [{ index: 0, message, finish_reason: "stop" }] }));
  };
  return {
    origin,
    baseUrl: `${origin}/v1`,
    bodies,
    told: (index) => readTold(bodies.at(index) ?? "{}"),
    asked: async (count) => {
      await waitFor(() => bodies.length >= count || undefined, { what: `${count} requests`, everyMs: 5 });
    },
    say: (decision) => sayTo(() => decision),
    sayTo,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function readTold(body: string): SupervisorMessage {
  const { messages } = JSON.parse(body) as { messages: readonly { readonly content: string }[] };
  return JSON.parse(messages.at(-1)?.content ?? "null") as SupervisorMessage;
}

async function keep(
  request: IncomingMessage,
  response: ServerResponse,
  bodies: string[],
  waiting: Map<ServerResponse, string>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString("utf8");
  waiting.set(response, body);
  response.once("close", () => waiting.delete(response));
  bodies.push(body);
}
