/** Owns: an OpenAI-compatible server that keeps every request, and answers one when the test says what. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Told } from "./stateful-scene.ts";
import { waitFor } from "./wait-for.ts";

export interface HeldModel extends AsyncDisposable {
  readonly baseUrl: string;
  readonly origin: string;
  /** The bodies that were asked with, the oldest first. */
  readonly bodies: readonly string[];
  /** What the request said of the turn. */
  told(index: number): Told;
  /** Resolves when so many were asked in all. */
  asked(count: number): Promise<void>;
  /** Answers the newest request that waits. */
  say(decision: unknown): Promise<void>;
}

export async function heldModel(): Promise<HeldModel> {
  const bodies: string[] = [];
  const waiting = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    void keep(request, response, bodies, waiting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, baseUrl: `${origin}/v1`, bodies },
    told: (index) => {
      const { messages } = JSON.parse(bodies.at(index) ?? "{}") as {
        messages: readonly { readonly content: string }[];
      };
      return JSON.parse(messages.at(-1)?.content ?? "null") as Told;
    },
    asked: async (count) => {
      await waitFor(() => bodies.length >= count || undefined, { what: `${count} requests`, everyMs: 5 });
    },
    say: async (decision) => {
      const response = await waitFor(() => [...waiting].at(-1), { what: "a request", everyMs: 5 });
      waiting.delete(response);
      const content = typeof decision === "string" ? decision : JSON.stringify(decision);
      const message = { role: "assistant", content };
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
      const body = { id: "c", object: "chat.completion", created: 1, model: "held", usage };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...body, choices: [{ index: 0, message, finish_reason: "stop" }] }));
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

async function keep(
  request: IncomingMessage,
  response: ServerResponse,
  bodies: string[],
  waiting: Set<ServerResponse>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  waiting.add(response);
  response.once("close", () => waiting.delete(response));
  bodies.push(Buffer.concat(chunks).toString("utf8"));
}
