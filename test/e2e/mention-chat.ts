/** Owns: a person who writes to agents of manifests in chats of the real gateway, and hears what the chats are told. */
import { randomUUID } from "node:crypto";
import { connectOnUse, type GatewayClient } from "../support/gateway-client.ts";
import type { Json } from "../support/gateway.ts";
import { textOf, type ChatMessage, type RecordedRequest } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Stage } from "./stage.ts";

interface HeardMessage {
  readonly runId: string;
  readonly text: string;
}

interface ChatConnection {
  readonly port: number;
  readonly client: GatewayClient;
  /** All that the chat was told, in order; the host names it by the key of the message. */
  readonly heard: readonly HeardMessage[];
}

export interface MentionChat {
  /** Writes a message as a person does in the web chat, and returns its key. */
  readonly send: (label: string, message: string, idempotencyKey?: string) => Promise<string>;
  /** Writes a message, and returns what the chat is told on it. */
  readonly say: (label: string, message: string, idempotencyKey?: string) => Promise<string>;
  readonly close: () => void;
}

const sessionOf = (label: string): string => `agent:main:mention-${label}`;

/** Connects to the gateway that the stage has at the time of the message. */
export function createMentionChat(findStage: () => Stage): MentionChat {
  let listening: ChatConnection | undefined;
  const connect = (): ChatConnection => {
    const { port, token } = findStage().gateway;
    if (listening?.port === port) return listening;
    listening?.client.close();
    listening = listenTo(port, token);
    return listening;
  };
  const chat: MentionChat = {
    send: async (label, message, idempotencyKey = randomUUID()) => {
      const params = { sessionKey: sessionOf(label), message, idempotencyKey };
      await connect().client.request({ method: "chat.send", params, timeoutMs: 30_000 });
      return idempotencyKey;
    },
    say: async (label, message, idempotencyKey) => {
      const runId = await chat.send(label, message, idempotencyKey);
      const { text } = await waitFor(() => connect().heard.find((each) => each.runId === runId), {
        what: `a reply to ${message}`,
        timeoutMs: 30_000,
        everyMs: 50,
      });
      return text;
    },
    close: () => listening?.client.close(),
  };
  return chat;
}

function listenTo(port: number, token: string): ChatConnection {
  const heard: HeardMessage[] = [];
  const hear = (event: string, payload: Json): void => {
    if (event !== "chat" || payload["state"] !== "final") return;
    const { runId, message = { role: "assistant" } } = payload as { runId: string; message?: ChatMessage };
    heard.push({ runId, text: textOf(message) });
  };
  return { port, heard, client: connectOnUse(port, token, { caps: [], hear }) };
}

/** Returns what models were asked because of a message. */
export const listAsksWith = ({ model }: Stage, text: string): RecordedRequest[] =>
  model.requests.filter(({ body }) => body.messages.some((each) => textOf(each).includes(text)));
