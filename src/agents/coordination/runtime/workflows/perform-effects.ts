/** Owns: doing what nodes need of the outside: child runs here and on other hosts, memory, models, tools. */
import type { CoordinationId, EventId } from "../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../contracts/workflow-bounds.ts";
import type { CallingRun, OutboundFailure, PeerRunEnded } from "../../ports/outbound.ts";
import type { ChildEffect, EffectOutcome, NodeEffect } from "../../workflow/node-type.ts";
import { isEndedPhase } from "../../workflow/state.ts";
import { childOf } from "../../workflow/trace-context.ts";
import { variablesOf, type Values } from "../../workflow/values.ts";
import { createRun, type CreateParts } from "./create-run.ts";
import { HOST_STOPS, type Perform } from "./drive-runs.ts";
import type { KnownRun } from "./run-book.ts";
import type { WorkflowHostParts } from "./workflow-parts.ts";

export interface EffectParts
  extends CreateParts, Pick<WorkflowHostParts, "store" | "peers" | "tools" | "chat" | "sha256" | "baseUrl"> {
  /** Ends a child that its parent has ended without. */
  readonly abandon: (childRunId: CoordinationId, parent: KnownRun) => Promise<void>;
  /** Resolves when the run has ended, or with `undefined` when `signal` aborts. */
  readonly awaitEnd: (runId: CoordinationId, signal: AbortSignal) => Promise<KnownRun | undefined>;
}

type Deliver = Parameters<Perform>[3];
type Of<K extends NodeEffect["kind"]> = NodeEffect & { readonly kind: K };

export function createPerform(parts: EffectParts): Perform {
  return async (known, effect, signal, deliver) => {
    switch (effect.kind) {
      case "run_child":
        return effect.peerUrl === undefined
          ? runChild(parts, known, { effect, signal, deliver })
          : runOnPeer(parts, known, { effect, signal, deliver });
      case "read_memory":
        return deliver([await readMemory(parts, known, effect)]);
      case "ask_model":
        return deliver([await askModel(parts, known, { effect, signal })]);
      case "call_tool":
        return deliver([await callTool(parts, known, { effect, signal })]);
      case "send_message":
        return deliver([await sendMessage(parts, known, { effect, signal })]);
    }
  };
}

interface Act<E> {
  readonly effect: E;
  readonly signal: AbortSignal;
}

type ChildAct = Act<Of<"run_child">> & { readonly deliver: Deliver };

/** Made out of the place of the handoff: trying again after a crash is the same run (D2). */
function childIdOf(
  { sha256 }: EffectParts,
  { run }: KnownRun,
  { ordinal, cause }: ChildEffect,
): CoordinationId {
  const digits = sha256(`${run.runId}\n${cause}\n${ordinal}`);
  return `run-${digits.slice(0, 32)}` as CoordinationId;
}

/** Nobody waits any more. Not so when the host stops: what it was doing goes on with the next process. */
function isOver({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason !== HOST_STOPS;
}

async function runChild(
  parts: EffectParts,
  known: KnownRun,
  { effect, signal, deliver }: ChildAct,
): Promise<void> {
  const childRunId = childIdOf(parts, known, effect);
  // A child that the log knows is not created again, whatever became of its workflow.
  const existing = effect.childRunId === undefined ? undefined : await parts.driver.newest(childRunId);
  const created = existing
    ? ({ kind: "done", value: existing } as const)
    : await createChild(parts, known, effect, childRunId);
  if (created.kind === "refused") {
    const { code, message } = created;
    const unknown = code === "workflow_not_found" ? "unknown_child_workflow" : code;
    return deliver([{ kind: "child_refused", error: { code: unknown, message } }]);
  }
  const told: EffectOutcome = { kind: "child_created", childRunId };
  if (isEndedPhase(created.value.run.phase)) return deliver([told, endOf(created.value)]);
  await deliver([told]);
  const ended = await parts.awaitEnd(childRunId, signal);
  if (ended) await deliver([endOf(ended)]);
  else if (isOver(signal)) await parts.abandon(childRunId, known);
}

async function createChild(
  parts: EffectParts,
  known: KnownRun,
  effect: ChildEffect & { nodeId: string },
  runId: CoordinationId,
) {
  const { started } = known.run;
  return createRun(parts, started.owner, {
    workflowId: effect.workflowId,
    inputs: effect.inputs,
    runId,
    transport: "rest",
    memoryScope: effect.memoryScope,
    depth: (started.depth ?? 0) + 1,
    parent: {
      runId: known.run.runId,
      hostId: parts.settings.hostId,
      cause: effect.cause,
      nodeId: effect.nodeId,
    },
    ...traceOf(parts, known, effect.ordinal),
  });
}

function endOf({ run, graph }: KnownRun): EffectOutcome {
  const { phase } = run;
  const variables = variablesOf(run, graph);
  switch (phase.kind) {
    case "failed":
      return { kind: "child_ended", status: "failed", variables, error: phase.error };
    case "cancelled": {
      const error = { code: "cancelled", message: phase.reason ?? "the run was cancelled" };
      return { kind: "child_ended", status: "cancelled", variables, error };
    }
    default:
      return { kind: "child_ended", status: "completed", variables };
  }
}

/** The trace of the run goes on in what it calls, with a span of its own for each call. */
function traceOf(
  parts: EffectParts,
  { run }: KnownRun,
  seed: string,
): { traceparent?: string; tracestate?: string } {
  const { traceparent, tracestate } = run.started;
  const child = childOf(traceparent, parts.sha256(`${run.runId}\n${seed}`));
  return {
    ...(child !== undefined && { traceparent: child }),
    ...(child !== undefined && tracestate !== undefined && { tracestate }),
  };
}

async function runOnPeer(
  parts: EffectParts,
  known: KnownRun,
  { effect, signal, deliver }: ChildAct,
): Promise<void> {
  const peers = await parts.peers();
  const peerUrl = effect.peerUrl ?? "";
  const childRunId = effect.childRunId ?? (await createOnPeer(parts, known, { effect, signal, deliver }));
  if (childRunId === undefined) return;
  const ended = await peers.awaitEnd(peerUrl, childRunId, signal);
  if (ended.kind === "ended") await deliver([endOnPeer(ended)]);
  else if (ended.code !== "aborted") await deliver([failureOf(ended)]);
  if (isOver(signal) && ended.kind !== "ended") await cancelOnPeer(parts, peerUrl, childRunId);
}

const CANCEL_MS = 10_000;

/** The run that wanted it is over. */
async function cancelOnPeer(parts: EffectParts, peerUrl: string, runId: string): Promise<void> {
  const signal = AbortSignal.timeout(CANCEL_MS);
  await (await parts.peers()).cancel(peerUrl, runId, { reason: "parent-cancelled", signal });
}

/** A creation that is under way is not given up with the run: whoever does not know the child cannot cancel it. */
function untilHostStops(signal: AbortSignal): AbortSignal {
  const stopping = new AbortController();
  const stop = (): void => {
    if (signal.reason === HOST_STOPS) stopping.abort(HOST_STOPS);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return stopping.signal;
}

async function createOnPeer(
  parts: EffectParts,
  known: KnownRun,
  { effect, signal, deliver }: ChildAct,
): Promise<string | undefined> {
  const peers = await parts.peers();
  const peerUrl = effect.peerUrl ?? "";
  const host = await peers.discover(peerUrl, signal);
  if (host.kind === "host" && host.hostId === parts.settings.hostId) {
    const message = "the peer is this host: leave out peerUrl for a workflow of its own";
    await deliver([{ kind: "child_refused", error: { code: "peer_is_this_host", message } }]);
    return undefined;
  }
  const own = known.run.nodes.get(effect.nodeId);
  const causationId = own?.handoff?.chainEventId ?? own?.startedEventId;
  const created = await peers.createRun(peerUrl, {
    workflowId: effect.workflowId,
    inputs: effect.inputs,
    idempotencyKey: childIdOf(parts, known, effect),
    parent: callingRun(parts, known, effect.cause, causationId),
    signal: untilHostStops(signal),
    ...traceOf(parts, known, effect.ordinal),
  });
  if (created.kind === "created") {
    await deliver([{ kind: "child_created", childRunId: created.runId }]);
    return created.runId;
  }
  if (created.code !== "aborted") await deliver([{ kind: "child_refused", error: failureOf(created).error }]);
  return undefined;
}

function callingRun(
  { settings: { hostId }, baseUrl }: EffectParts,
  { run: { runId, started } }: KnownRun,
  cause: CallingRun["cause"],
  eventId: EventId | undefined,
): CallingRun {
  const wellKnownUrl = `${baseUrl()}/.well-known/openwop`;
  const depth = started.depth ?? 0;
  return { runId, hostId, cause, wellKnownUrl, depth, ...(eventId !== undefined && { eventId }) };
}

function endOnPeer({ status, variables, error }: PeerRunEnded): EffectOutcome {
  return { kind: "child_ended", status, variables, ...(error && { error }) };
}

function failureOf({
  code,
  errorCode,
  message,
}: OutboundFailure): EffectOutcome & { readonly kind: "failed" } {
  return { kind: "failed", error: { code: errorCode ?? code, message } };
}

async function readMemory(
  parts: EffectParts,
  { run }: KnownRun,
  { scopes, tag, limit }: Of<"read_memory">,
): Promise<EffectOutcome> {
  const { tenant } = run.started.owner;
  const entries: (readonly Values[])[] = [];
  for (const scope of scopes) {
    const most = WORKFLOW_BOUNDS.memoryListMax;
    const found = await parts.store.memory.list(
      { tenant, scope },
      { now: parts.clock.now(), limit: Math.min(limit ?? most, most), ...(tag !== undefined && { tag }) },
    );
    entries.push(found.map((entry) => ({ ...entry })));
  }
  return { kind: "memory_read", entries };
}

async function askModel(
  parts: EffectParts,
  known: KnownRun,
  { effect: { request, id }, signal }: Act<Of<"ask_model">>,
): Promise<EffectOutcome> {
  const { schema, maxTokens = 4_000, ...rest } = request;
  const { traceparent } = traceOf(parts, known, id);
  const answer = await (
    await parts.chat()
  ).complete({
    ...rest,
    maxTokens,
    signal,
    ...(schema && { schema: { name: "answer", schema } }),
    ...(traceparent !== undefined && { traceparent }),
  });
  if (answer.kind !== "answered") return failureOf(answer);
  if (answer.refusal !== undefined || answer.finishReason === "content-filter")
    return { kind: "model_refused" };
  const { text, object, model, usage, provider } = answer;
  return {
    kind: "model_answered",
    text,
    model,
    usage: { ...usage, provider },
    ...(object !== undefined && { object }),
  };
}

async function callTool(
  parts: EffectParts,
  known: KnownRun,
  { effect, signal }: Act<Of<"call_tool">>,
): Promise<EffectOutcome> {
  const { url, tool, args, id } = effect;
  const answer = await (
    await parts.tools()
  ).callMcp({
    ...{ url, tool, args, signal },
    parent: callingRun(parts, known, "mcp-tool-call", known.run.nodes.get(effect.nodeId)?.openCall),
    ...traceOf(parts, known, id),
  });
  if (answer.kind !== "answered") return failureOf(answer);
  return {
    kind: "tool_answered",
    ok: answer.ok,
    text: answer.text,
    content: answer.structured ?? answer.content,
  };
}

async function sendMessage(
  parts: EffectParts,
  known: KnownRun,
  { effect, signal }: Act<Of<"send_message">>,
): Promise<EffectOutcome> {
  const { url, skill, message, id } = effect;
  const answer = await (
    await parts.tools()
  ).sendA2a({
    ...{ url, skill, message, signal },
    messageId: `${known.run.runId}:${id}`,
    parent: callingRun(parts, known, "a2a-message", known.run.nodes.get(effect.nodeId)?.openCall),
    ...traceOf(parts, known, id),
  });
  if (answer.kind !== "answered") return failureOf(answer);
  return {
    kind: "tool_answered",
    ok: answer.ok,
    text: answer.text,
    content: answer.data,
    state: answer.state,
  };
}
