/**
 * Owns: sending one message to an A2A agent, with the official client, which is loaded when it is first needed, and waiting
 * for what becomes of it. Does not own: who may be asked (`fetch`), or what the answer means here (`a2a-answer.ts`).
 */
import type { Message, SendMessageResult, Task } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  A2aAnswer,
  A2aCall,
  OutboundFailure,
  ToolCaller,
} from "../../agents/coordination/ports/outbound.ts";
import { dropTrailingSlashes } from "../../agents/coordination/std/foreign-text.ts";
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import { PARENT_HEADER, writeParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { traceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { callBounds, type CallBounds } from "../http/call-bounds.ts";
import { failureOf, failureFromStatus, findOutboundError } from "../http/outbound-error.ts";
import { waitBeforeTry } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { answerOfMessage, answerOfTask } from "./a2a-answer.ts";

export interface A2aParts {
  /** Carries the tokens. */
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  /** For a whole call, the waiting for the task included. */
  readonly timeoutMs: number;
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

interface Calling {
  readonly sdk: Sdk;
  readonly call: A2aCall;
  readonly bounds: CallBounds;
  /** The HTTP status of the last answer. */
  status: number;
}

/** A task that is still at work is looked at this often at most; the time ends it first. */
const LOOKS_MAX = 10_000;

export function createA2aCaller(dependencies: A2aParts): ToolCaller["sendA2a"] {
  return async (call) => {
    const sdk = await loadSdk().catch(() => undefined);
    if (!sdk) return failureOf({ code: "not_configured", message: "The A2A client cannot be loaded." });
    if (!URL.canParse(call.url))
      return failureOf({ code: "address_not_allowed", message: "The agent's URL cannot be read." });
    const calling: Calling = {
      sdk,
      call,
      bounds: callBounds(dependencies.clock, dependencies.timeoutMs, call.signal),
      status: 0,
    };
    try {
      return await send(dependencies, calling);
    } catch (error) {
      return readFailure(error, calling);
    } finally {
      calling.bounds.release();
    }
  };
}

async function loadSdk() {
  const [client, { A2AError }, { Role }] = await Promise.all([
    import("@a2a-js/sdk/client"),
    import("@a2a-js/sdk/errors"),
    import("@a2a-js/sdk"),
  ]);
  return { ...client, A2AError, Role };
}

async function send(dependencies: A2aParts, calling: Calling): Promise<A2aAnswer | OutboundFailure> {
  const { call, bounds } = calling;
  const client = await connect(dependencies.fetch, calling);
  const options = {
    signal: bounds.signal,
    serviceParameters: {
      ...traceHeaders(call),
      ...(call.parent && { [PARENT_HEADER]: writeParentHeader(call.parent) }),
    },
  };
  const message = messageOf(calling);
  const request = { tenant: "", message, configuration: undefined, metadata: undefined };
  const first = await client.sendMessage(request, options);
  if (isMessage(first)) return answerOfMessage(first);
  let task = first;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const answer = answerOfTask(task);
    if (answer) return answer;
    await waitFor(dependencies.clock, waitBeforeTry(looks), bounds.signal);
    task = await client.getTask({ tenant: "", id: task.id, historyLength: undefined }, options);
  }
  return failureOf({ code: "timed_out", message: "The agent's task did not end." });
}

async function connect(fetch: SafeFetch, calling: Calling): Promise<Client> {
  const { sdk, call, bounds } = calling;
  const fetchImpl: SafeFetch = async (input, init = {}) => {
    const signal = init.signal ? AbortSignal.any([init.signal, bounds.signal]) : bounds.signal;
    const response = await fetch(input, { ...init, signal });
    calling.status = response.status;
    return response;
  };
  const options = { fetchImpl, legacyCompat: { enabled: true } };
  const factory = new sdk.ClientFactory({
    // The SDK declares the options of both as classes, and exports neither.
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
    transports: [new sdk.JsonRpcTransportFactory(options), new sdk.RestTransportFactory(options)],
    cardResolver: new sdk.DefaultAgentCardResolver(options),
  });
  // The SDK takes a path from the origin on, which would lose where the agent is below it.
  return factory.createFromUrl(resolveCardUrl(call.url), "");
}

function resolveCardUrl(text: string): string {
  const url = new URL(text);
  if (url.pathname.endsWith(".json")) return url.href;
  return `${url.origin}${dropTrailingSlashes(url.pathname)}/.well-known/agent-card.json`;
}

function messageOf({ sdk, call }: Calling): Message {
  const { message, messageId, contextId = "", skill } = call;
  const content: Message["parts"][number]["content"] =
    typeof message === "string" ? { $case: "text", value: message } : { $case: "data", value: message };
  const mediaType = typeof message === "string" ? "text/plain" : "application/json";
  // The protocol has no field for the skill: the agent chooses.
  const metadata = { ...(skill !== undefined && { skillId: skill }), openwop: { ...traceHeaders(call) } };
  return {
    messageId,
    contextId,
    taskId: "",
    role: sdk.Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: "", mediaType }],
    metadata,
    extensions: [],
    referenceTaskIds: [],
  };
}

function isMessage(result: SendMessageResult): result is Message {
  return "messageId" in result && !isTask(result);
}

function isTask(result: Message | Task): result is Task {
  return "status" in result;
}

function readFailure(error: unknown, { sdk, bounds, status }: Calling): OutboundFailure {
  const outboundError = bounds.error() ?? findOutboundError(error);
  if (outboundError) return failureOf(outboundError);
  const refused = status > 0 ? failureFromStatus(status) : undefined;
  if (refused) return refused;
  if (error instanceof sdk.A2AError)
    return {
      kind: "refused",
      code: "rejected",
      message: "The agent refused the message.",
      ...reasonOf(error.reason),
    };
  return failureOf({ code: "malformed", message: "The answer is not of the protocol." });
}

function reasonOf(reason: string): { readonly errorCode?: string } {
  return /^[A-Z][A-Z0-9_]{0,63}$/.test(reason) ? { errorCode: reason } : {};
}
