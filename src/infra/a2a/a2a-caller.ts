/**
 * Owns: sending one message to an A2A agent, with the official client, which is loaded when it is first needed, and looking
 * at its task until that has ended. Does not own: who may be asked (`fetch`), or what the answer means here (`a2a-answer.ts`).
 */
import type { Message, SendMessageResult, Task } from "@a2a-js/sdk";
import type { Client, RequestOptions } from "@a2a-js/sdk/client";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  A2aAnswer,
  A2aCall,
  OutboundFailure,
  ToolCaller,
} from "../../agents/coordination/ports/outbound.ts";
import { dropTrailingSlashes, resolvePeerAddress } from "../../agents/coordination/std/foreign-text.ts";
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import { PARENT_HEADER, writeParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { traceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { callBounds, type CallBounds } from "../http/call-bounds.ts";
import { failureOf, failureFromStatus, findOutboundError, OutboundError } from "../http/outbound-error.ts";
import { waitBeforeTry } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { answerOfMessage, answerOfTask } from "./a2a-answer.ts";

export interface A2aParts {
  /** Carries the tokens, and bounds each exchange. */
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
/** Looks at a task that may fail one after the other: its agent may be restarting. */
const FAILED_LOOKS_MAX = 5;
/** The end of a call does not end this: the time of one exchange does. */
const NEVER_ABORTED = new AbortController().signal;

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
  const first = await client.sendMessage(request, { ...options, signal: createSendSignal(calling) });
  if (isMessage(first)) return answerOfMessage(first);
  try {
    return await awaitAnswer(dependencies.clock, calling, { client, options, first });
  } catch (error) {
    // Read first: cancelling leaves a status of its own.
    const failure = readFailure(error, calling);
    if (!call.isLeftToOthers()) await cancelTask(client, first, options);
    return failure;
  }
}

/** A message that is under way is not given up with its run: whoever does not know the task cannot cancel it. */
function createSendSignal({ call, bounds }: Calling): AbortSignal {
  const sending = new AbortController();
  const stop = (): void => {
    if (call.isLeftToOthers()) sending.abort(bounds.signal.reason);
  };
  if (bounds.signal.aborted) stop();
  bounds.signal.addEventListener("abort", stop, { once: true });
  return sending.signal;
}

interface BegunTask {
  readonly client: Client;
  readonly options: RequestOptions;
  readonly first: Task;
}

/** @throws whatever the last look at the task threw, and OutboundError `timed_out` */
async function awaitAnswer(
  clock: Clock,
  calling: Calling,
  { client, options, first }: BegunTask,
): Promise<A2aAnswer> {
  const { signal } = calling.bounds;
  let task = first;
  let failedLooks = 0;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const answer = answerOfTask(task);
    if (answer) return answer;
    await waitFor(clock, waitBeforeTry(looks), signal);
    try {
      task = await client.getTask({ tenant: "", id: first.id, historyLength: undefined }, options);
      failedLooks = 0;
    } catch (error) {
      failedLooks += 1;
      const isFinal = signal.aborted || readFailure(error, calling).kind === "refused";
      if (isFinal || failedLooks === FAILED_LOOKS_MAX) throw error;
    }
  }
  throw new OutboundError("timed_out", "The agent's task did not end.");
}

/** Tells the agent that nobody waits for the task. It may have ended, and the agent may be out of reach. */
async function cancelTask(client: Client, { id }: Task, options: RequestOptions): Promise<void> {
  const request = { tenant: "", id, metadata: undefined };
  await client.cancelTask(request, { ...options, signal: NEVER_ABORTED }).catch(() => undefined);
}

async function connect(fetch: SafeFetch, calling: Calling): Promise<Client> {
  const { sdk, call, bounds } = calling;
  const root = call.peerUrl === undefined ? new URL(call.url).origin : resolvePeerAddress(call.peerUrl, "");
  const fetchImpl: SafeFetch = async (input, init = {}) => {
    // A card may name any address, also that of another peer, whose token would go along.
    const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
    const address = `${origin}${pathname}`;
    if (root === undefined || !(address === root || address.startsWith(`${root}/`)))
      throw new OutboundError(
        "address_not_allowed",
        "The agent's card names an address that is not the agent's.",
      );
    const response = await fetch(input, { ...init, signal: init.signal ?? bounds.signal });
    calling.status = response.status;
    return response;
  };
  const options = { fetchImpl, legacyCompat: { enabled: true } };
  const factory = new sdk.ClientFactory({
    // The SDK declares the options of both as classes, and exports neither.
    transports: [new sdk.JsonRpcTransportFactory(options), new sdk.RestTransportFactory(options)],
    cardResolver: new sdk.DefaultAgentCardResolver(options),
    // An agent that held the message until its task has ended would make one exchange of all of the work.
    clientConfig: { polling: true },
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
  if (error instanceof sdk.A2AError) return failureFromReason(error.reason);
  return failureOf({ code: "malformed", message: "The answer is not of the protocol." });
}

/** Reasons of an agent that failed, whatever it had done by then. The client has the first one for unknown codes, too. */
const FAILED_OVER_THERE: readonly string[] = ["INTERNAL_ERROR", "INVALID_AGENT_RESPONSE"];

function failureFromReason(reason: string): OutboundFailure {
  return FAILED_OVER_THERE.includes(reason)
    ? { kind: "unknown", code: "unavailable", message: "The agent failed.", ...reasonOf(reason) }
    : { kind: "refused", code: "rejected", message: "The agent refused the message.", ...reasonOf(reason) };
}

function reasonOf(reason: string): { readonly errorCode?: string } {
  return /^[A-Z][A-Z0-9_]{0,63}$/.test(reason) ? { errorCode: reason } : {};
}
