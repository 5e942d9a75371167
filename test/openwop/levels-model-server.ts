/** Owns: a server that answers like OpenAI's chat completions, whatever a test wants it to say, malformed answers included. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface ScriptedAnswer {
  readonly content?: string | null;
  readonly refusal?: string;
  readonly finish?: string;
  /** In place of a completion: the body as it is. */
  readonly body?: string;
  /** Ends the connection without an answer. */
  readonly hangsUp?: boolean;
}

export interface AskedBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly temperature?: number;
  readonly max_tokens?: number;
}

export interface ModelServer {
  readonly baseUrl: string;
  readonly origin: string;
  readonly askedBodies: AskedBody[];
  close(): Promise<void>;
}

/** `say` is asked with the last message of each request. */
export async function startModelServer(say: (prompt: string) => ScriptedAnswer): Promise<ModelServer> {
  const askedBodies: AskedBody[] = [];
  const server = createServer((request, response) => {
    void text(request).then((answerText) => {
      const body = JSON.parse(answerText) as AskedBody;
      askedBodies.push(body);
      answer(response, say(body.messages.at(-1)?.content ?? ""));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    askedBodies: askedBodies,
    baseUrl: `${origin}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(
  response: ServerResponse,
  { content = "", refusal, finish = "stop", body, hangsUp }: ScriptedAnswer,
): void {
  if (hangsUp) {
    response.destroy();
    return;
  }
  const message = { role: "assistant", content, ...(refusal !== undefined && { refusal }) };
  const completion = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "model-of-the-day",
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(body ?? JSON.stringify(completion));
}
