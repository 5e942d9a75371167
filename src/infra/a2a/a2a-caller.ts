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
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { PARENT_HEADER, formatParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { createTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { startCallBounds, type CallBounds } from "../http/call-bounds.ts";
import { classifyThrown, createOutboundFailure, OutboundError } from "../http/outbound-error.ts";
import { computeRetryWaitMs } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { createMessageAnswer, createTaskAnswer } from "./a2a-answer.ts";

export interface A2aParts {
  /** Carries the tokens, and bounds each exchange. */
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  /** For a whole call, the waiting for the task included. */
  readonly timeoutMs: number;
}

/** The A2A SDK as it was loaded. */
type A2aSdk = Awaited<ReturnType<typeof loadA2aSdk>>;

/** A call of an agent that is under way. */
interface PendingCall {
  readonly sdk: A2aSdk;
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

/**
 * Creates the function that sends one message to an A2A agent and resolves with its answer, or with the failure. It
 * never rejects.
 */
export function createA2aCaller(dependencies: A2aParts): ToolCaller["sendA2a"] {
  return async (call) => {
    const sdk = await loadA2aSdk().catch(() => undefined);
    if (!sdk)
      return createOutboundFailure({ code: "not_configured", message: "The A2A client cannot be loaded." });
    if (!URL.canParse(call.url))
      return createOutboundFailure({
        code: "address_not_allowed",
        message: "The agent's URL cannot be read.",
      });
    const calling: PendingCall = {
      sdk,
      call,
      bounds: startCallBounds(dependencies.clock, dependencies.timeoutMs, call.signal),
      status: 0,
    };
    try {
      return await sendAndAwaitAnswer(dependencies, calling);
    } catch (error) {
      return classifyError(error, calling);
    } finally {
      calling.bounds.release();
    }
  };
}

async function loadA2aSdk() {
  const [client, { A2AError }, { Role }] = await Promise.all([
    import("@a2a-js/sdk/client"),
    import("@a2a-js/sdk/errors"),
    import("@a2a-js/sdk"),
  ]);
  return { ...client, A2AError, Role };
}

/**
 * Sends the message and waits until the task that the agent makes of it has ended; rejects where the sending fails.
 * Where the wait fails, cancels the task, unless another process goes on with the call.
 */
async function sendAndAwaitAnswer(
  dependencies: A2aParts,
  calling: PendingCall,
): Promise<A2aAnswer | OutboundFailure> {
  const { call, bounds } = calling;
  const client = await createAgentClient(dependencies.fetch, calling);
  const options = {
    signal: bounds.signal,
    serviceParameters: {
      ...createTraceHeaders(call),
      ...(call.parent && { [PARENT_HEADER]: formatParentHeader(call.parent) }),
    },
  };
  const message = createA2aMessage(calling);
  const request = { tenant: "", message, configuration: undefined, metadata: undefined };
  const first = await client.sendMessage(request, { ...options, signal: createSendSignal(calling) });
  if (isMessage(first)) return createMessageAnswer(first);
  try {
    return await pollTask(dependencies.clock, calling, { client, options, first });
  } catch (error) {
    // Read first: cancelling leaves a status of its own.
    const failure = classifyError(error, calling);
    if (!call.isLeftToOthers()) await cancelTask(client, first, options);
    return failure;
  }
}

/**
 * Creates the signal for the sending alone, which aborts only where another process goes on with the call. Whoever
 * does not know the task yet cannot cancel it.
 */
function createSendSignal({ call, bounds }: PendingCall): AbortSignal {
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
async function pollTask(
  clock: Clock,
  calling: PendingCall,
  { client, options, first }: BegunTask,
): Promise<A2aAnswer> {
  const { signal } = calling.bounds;
  let task = first;
  let failedLooks = 0;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const answer = createTaskAnswer(task);
    if (answer) return answer;
    await waitForDuration(clock, computeRetryWaitMs(looks), signal);
    try {
      task = await client.getTask({ tenant: "", id: first.id, historyLength: undefined }, options);
      failedLooks = 0;
    } catch (error) {
      failedLooks += 1;
      const isFinal = signal.aborted || classifyError(error, calling).kind === "refused";
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

/** Reads the agent's card and creates a client of it, whose requests may only go to the agent's own address. */
async function createAgentClient(fetch: SafeFetch, calling: PendingCall): Promise<Client> {
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

/** Returns the URL itself where it is that of a card (`.json`), else that of the well-known card below it. */
function resolveCardUrl(text: string): string {
  const url = new URL(text);
  if (url.pathname.endsWith(".json")) return url.href;
  return `${url.origin}${dropTrailingSlashes(url.pathname)}/.well-known/agent-card.json`;
}

/** Returns the protocol's message: one part of text or data, with the skill and the trace headers as metadata. */
function createA2aMessage({ sdk, call }: PendingCall): Message {
  const { message, messageId, contextId = "", skill } = call;
  const content: Message["parts"][number]["content"] =
    typeof message === "string" ? { $case: "text", value: message } : { $case: "data", value: message };
  const mediaType = typeof message === "string" ? "text/plain" : "application/json";
  // The protocol has no field for the skill: the agent chooses.
  const metadata = {
    ...(skill !== undefined && { skillId: skill }),
    openwop: { ...createTraceHeaders(call) },
  };
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

/** Returns an error as a failure, by why the call ended, the HTTP status or the agent's reason. */
function classifyError(error: unknown, { sdk, bounds, status }: PendingCall): OutboundFailure {
  const failure = classifyThrown(bounds.error() ?? error, status);
  if (failure) return failure;
  if (error instanceof sdk.A2AError) return classifyReason(error.reason);
  return createOutboundFailure({ code: "malformed", message: "The answer is not of the protocol." });
}

/** Reasons of an agent that failed, whatever it had done by then. The client has the first one for unknown codes, too. */
const FAILED_OVER_THERE: readonly string[] = ["INTERNAL_ERROR", "INVALID_AGENT_RESPONSE"];

/** Returns the failure for a reason of the agent: `unknown` where it may have done something, else `refused`. */
function classifyReason(reason: string): OutboundFailure {
  return FAILED_OVER_THERE.includes(reason)
    ? { kind: "unknown", code: "unavailable", message: "The agent failed.", ...pickErrorCode(reason) }
    : {
        kind: "refused",
        code: "rejected",
        message: "The agent refused the message.",
        ...pickErrorCode(reason),
      };
}

/** Returns the reason as an error code; nothing where it may be free text. */
function pickErrorCode(reason: string): { readonly errorCode?: string } {
  return /^[A-Z][A-Z0-9_]{0,63}$/.test(reason) ? { errorCode: reason } : {};
}
