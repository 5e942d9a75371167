/**
 * Owns: one ACP conversation: initialize, one session, one prompt, its permissions and its cancellation. Answers are
 * checked here, because the SDK's client side types them without validating them.
 */
import {
  AGENT_METHODS,
  client,
  CLIENT_METHODS,
  PROTOCOL_VERSION,
  type ContentBlock,
  type PermissionOption,
  type RequestPermissionOutcome,
} from "@agentclientprotocol/sdk";
import type { AcpAgentConfig } from "../../agents/coordination/contracts/config/config.ts";
import type { AttemptOrder } from "../../agents/coordination/ports/agent-runner.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure, convertRequestError } from "./agent-failure.ts";
import type { AgentProcess } from "./agent-process.ts";
import { createAgentStream } from "./agent-stream.ts";
import { createLastWords, type LastWords } from "./last-words.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";

const NAME = "openclaw-coordination";

/** A prompt that the agent has, and its answer to come. */
export interface SentPrompt {
  readonly sessionId: string;
  /** The stop reason, as the agent gave it. Rejects with an AgentFailure, or with why the connection ended. */
  readonly answer: Promise<unknown>;
}

export interface Conversation {
  readonly words: LastWords;
  /** Resolves when the connection has ended, by the agent or by us. */
  readonly closed: Promise<void>;
  /** Resolves when the prompt is in the agent's pipe. Rejects as `Prompted.answer` does. */
  prompt(order: AttemptOrder, cwd: string): Promise<SentPrompt>;
  /** Tells the agent to cancel; it answers the prompt then. */
  cancel(sessionId: string): void;
  /** Ends the connection: whatever waits for an answer fails with `reason`. */
  close(reason?: Error): void;
}

export interface ConversationOptions {
  readonly permissions: AcpAgentConfig["permissions"];
  readonly programVersion: string;
  readonly limits: AcpLimits;
}

/**
 * Opens the connection with an ACP agent over the pipes of its process, and answers its requests for permission.
 * Nothing is sent before `prompt`.
 */
export function openConversation(agent: AgentProcess, options: ConversationOptions): Conversation {
  const words = createLastWords();
  let cancelled = false;
  const { promise: promptSent, resolve: promptIsSent } = Promise.withResolvers<undefined>();
  const stream = createAgentStream(agent, {
    limits: options.limits,
    onUpdate: (params) => words.hear(params),
    onSent: (method) => {
      if (method === AGENT_METHODS.session_prompt) promptIsSent(undefined);
    },
  });
  const connection = client({ name: NAME })
    .onRequest(CLIENT_METHODS.session_request_permission, ({ params }) => {
      const outcome: RequestPermissionOutcome = cancelled
        ? { outcome: "cancelled" }
        : answerPermission(params.options, options.permissions);
      return { outcome };
    })
    .connect(stream);

  const ask = (method: string, params: unknown): Promise<unknown> =>
    connection.agent.request(method, params).catch((error: unknown) => {
      throw convertRequestError(method, error);
    });

  return {
    words,
    closed: connection.closed,
    prompt: async (order, cwd) => {
      assertProtocolVersion(
        await ask(AGENT_METHODS.initialize, createInitializeParams(options.programVersion)),
      );
      const _meta = createRequestMeta(order);
      const sessionId = readSessionId(await ask(AGENT_METHODS.session_new, { cwd, mcpServers: [], _meta }));
      const answer = ask(AGENT_METHODS.session_prompt, {
        sessionId,
        prompt: createPromptBlocks(order),
        _meta,
      });
      const stopReason = answer.then((response) => (isRecord(response) ? response["stopReason"] : undefined));
      // Its rejection is whoever's who reads it; the race below only wants to know of it in time.
      stopReason.catch(() => undefined);
      await Promise.race([promptSent, stopReason]);
      return { sessionId, answer: stopReason };
    },
    cancel: (sessionId) => {
      cancelled = true;
      connection.agent.notify(AGENT_METHODS.session_cancel, { sessionId }).catch(() => undefined);
    },
    close: (reason) => connection.close(reason),
  };
}

function createInitializeParams(version: string): unknown {
  return {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: NAME, version },
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  };
}

function assertProtocolVersion(hello: unknown): void {
  const version = isRecord(hello) ? hello["protocolVersion"] : undefined;
  if (version === PROTOCOL_VERSION) return;
  const spoken = Number.isSafeInteger(version) ? `version ${String(version)}` : "no known version";
  throw new AgentFailure(`The agent speaks ${spoken} of the Agent Client Protocol, not ${PROTOCOL_VERSION}.`);
}

function readSessionId(session: unknown): string {
  const sessionId = isRecord(session) ? session["sessionId"] : undefined;
  if (typeof sessionId === "string" && sessionId !== "") return sessionId;
  throw new AgentFailure(`The agent answered ${AGENT_METHODS.session_new} without a session id.`);
}

/**
 * Chooses the answer to an agent that asks for permission. Never an option that holds for ever: that is a person's to give
 * or to refuse.
 */
function answerPermission(
  options: readonly PermissionOption[],
  permissions: AcpAgentConfig["permissions"],
): RequestPermissionOutcome {
  const chosen =
    (permissions === "allow" ? options.find(({ kind }) => kind === "allow_once") : undefined) ??
    options.find(({ kind }) => kind === "reject_once");
  return chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" };
}

/** Returns the task as content, and what the last message must be where the step has an output contract. */
function createPromptBlocks({ message, outputSchema }: AttemptOrder): ContentBlock[] {
  const task: ContentBlock = { type: "text", text: message };
  if (!outputSchema) return [task];
  const contract = `Your last message must be one JSON object and nothing else. It must meet this JSON Schema:\n${JSON.stringify(outputSchema)}`;
  return [task, { type: "text", text: contract }];
}

/**
 * Returns the metadata of our requests: the envelope under our own key, and the trace context. ACP reserves the key of
 * the latter (https://agentclientprotocol.com/protocol/extensibility).
 */
function createRequestMeta({ envelope, traceparent }: AttemptOrder): Record<string, unknown> {
  return { coordination: envelope, traceparent };
}
