/** Owns: doing what nodes need of the outside: child runs here and on other hosts, memory, models, tools. */
import type { CoordinationId, EventId } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { CallingRun, PeerRunEnded } from "../../../ports/outbound.ts";
import type { ChildEffect, EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { REPLAY_SOURCE_MISSING } from "../../../workflow/node-failure.ts";
import { convergenceOf } from "../../../workflow/state/review.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { childOf } from "../../../workflow/trace-context.ts";
import { variablesOf, type Values } from "../../../workflow/state/values.ts";
import type { AgentBook } from "../agents/agent-book.ts";
import { askModel, type AskParts } from "../models/ask-model.ts";
import { withTurn } from "./ask-turn.ts";
import { createRun, type CreateParts } from "../driving/create-run.ts";
import { HOST_STOPS, type Deliver, type Perform, type WaitingEffect } from "../driving/drive-runs.ts";
import { listEntries, memoryHomeOf } from "../records/fork-memory.ts";
import { judgeChild, type JudgeParts } from "./judge-child.ts";
import { failureOf } from "../models/outbound-outcome.ts";
import { callTool, sendMessage, type ToolAct } from "./perform-tools.ts";
import { performAgent, type AgentAct, type AgentParts } from "../agents/perform-agent.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { SideEffects } from "../records/side-effects.ts";
import type { WorkflowHostParts } from "../records/workflow-parts.ts";
import { readFiles, writeFile, type WorkspaceParts } from "../records/run-workspace.ts";

export interface EffectParts
  extends
    CreateParts,
    AskParts,
    Omit<JudgeParts, "driver">,
    Omit<AgentParts, "agentBook">,
    WorkspaceParts,
    Pick<WorkflowHostParts, "store" | "peers" | "tools" | "chat" | "sha256" | "baseUrl"> {
  readonly agentBook: AgentBook;
  readonly sideEffects: Pick<SideEffects, "cause">;
  /** Ends a child that its parent has ended without. */
  readonly abandon: (childRunId: CoordinationId, parent: ChildsParent) => Promise<void>;
  /** Resolves when the run has ended, or with `undefined` when `signal` aborts. */
  readonly awaitEnd: (runId: CoordinationId, signal: AbortSignal) => Promise<LoadedRun | undefined>;
}

export interface ChildsParent {
  readonly parentRunId: CoordinationId;
  readonly tenant: string;
}

type Of<K extends NodeEffect["kind"]> = NodeEffect & { readonly kind: K };

export function createPerform(parts: EffectParts): Perform {
  return async (loadedRun, effect, signal, deliver) => {
    if (isMissing(loadedRun, effect)) {
      await deliver([MISSING]);
      return undefined;
    }
    if (effect.kind === "run_child")
      return effect.peerUrl === undefined
        ? runChild(parts, loadedRun, { effect, signal, deliver })
        : runOnPeer(parts, loadedRun, { effect, signal, deliver });
    const endWork = parts.usage.work(loadedRun.run.started.owner.tenant);
    await performOther(parts, loadedRun, { effect, signal, deliver }).finally(endWork);
    return undefined;
  };
}

async function performOther(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal, deliver }: OtherAct,
): Promise<void> {
  switch (effect.kind) {
    case "read_memory":
      return deliver([await readMemory(parts, loadedRun, effect)]);
    case "ask_model":
      return deliver([await askOf(parts, loadedRun, { effect, signal })]);
    case "call_tool":
      return deliver([await callTool(parts, loadedRun.run, callOf(parts, loadedRun, { effect, signal }))]);
    case "send_message":
      return deliver([await sendMessage(parts, loadedRun.run, callOf(parts, loadedRun, { effect, signal }))]);
    case "judge_child": {
      const { traceparent } = traceOf(parts, loadedRun, effect.id);
      const judged = await judgeChild(parts, loadedRun, { effect, signal, traceparent });
      return judged && deliver([judged]);
    }
    case "read_workspace":
      return deliver([await readWorkspace(parts, loadedRun, effect)]);
    case "write_workspace":
      return writeFile(parts, loadedRun.run, { effect, deliver });
    case "cause_side_effect":
      return deliver([parts.sideEffects.cause(loadedRun.run, effect)]);
    case "prepare_agent":
    case "ask_agent":
    case "call_agent_tool":
      return deliver([
        await performAgent(parts, loadedRun, createAgentAct(parts, loadedRun, { effect, signal })),
      ]);
  }
}

/** What a replay's source has no outcome of is not done: nothing is, outside of a replay's own log. */
function isMissing({ run }: LoadedRun, { kind }: NodeEffect): boolean {
  return run.origin?.mode === "replay" && !OF_THE_RUN.has(kind);
}

/** What a fork has for itself alone. */
const OF_THE_RUN: ReadonlySet<NodeEffect["kind"]> = new Set([
  "read_memory",
  "read_workspace",
  "write_workspace",
]);

const MISSING: EffectOutcome = {
  kind: "failed",
  error: {
    code: REPLAY_SOURCE_MISSING,
    message: "the source of the replay recorded no outcome of this effect",
  },
};

interface Act<E> {
  readonly effect: E;
  readonly signal: AbortSignal;
}

type OtherAct = Act<Exclude<NodeEffect, { readonly kind: "run_child" }>> & { readonly deliver: Deliver };
type ChildAct = Act<Of<"run_child">> & { readonly deliver: Deliver };

/** Made out of the place of the handoff: trying again after a crash is the same run (D2). */
function childIdOf(
  { sha256 }: EffectParts,
  { run }: LoadedRun,
  { ordinal, cause }: ChildEffect,
): CoordinationId {
  const digits = sha256(`${run.runId}\n${cause}\n${ordinal}`);
  return `run-${digits.slice(0, 32)}` as CoordinationId;
}

/** True when nobody waits any more. A host that stops is no such case: the next process goes on. */
function isOver({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason !== HOST_STOPS;
}

async function runChild(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal, deliver }: ChildAct,
): Promise<WaitingEffect | undefined> {
  // A fork may wait for a child that its source began.
  const childRunId = (effect.childRunId ?? childIdOf(parts, loadedRun, effect)) as CoordinationId;
  // A child that the log knows is not created again, whatever became of its workflow.
  const existing = effect.childRunId === undefined ? undefined : await parts.driver.newest(childRunId);
  const created = existing
    ? ({ kind: "done", value: existing } as const)
    : await createChild(parts, loadedRun, effect, childRunId);
  if (created.kind === "refused") {
    const { code, message } = created;
    const unknown = code === "workflow_not_found" ? "unknown_child_workflow" : code;
    await deliver([{ kind: "child_refused", error: { code: unknown, message } }]);
    return undefined;
  }
  const outcome: EffectOutcome = { kind: "child_created", childRunId };
  const hasEnded = isEndedPhase(created.value.run.phase);
  await deliver(hasEnded ? [outcome, endOf(created.value)] : [outcome]);
  if (hasEnded) return undefined;
  const { runId, started } = loadedRun.run;
  const parent = { parentRunId: runId, tenant: started.owner.tenant };
  return waitForChild(parts, withoutInputs(effect), { childRunId, parent, signal });
}

/** What is kept of an effect while its child works; the inputs may be as large as the run. */
function withoutInputs(effect: Of<"run_child">): Of<"run_child"> {
  return { ...effect, inputs: {} };
}

interface ChildWait {
  readonly childRunId: CoordinationId;
  readonly parent: ChildsParent;
  readonly signal: AbortSignal;
}

function waitForChild(
  { awaitEnd, abandon }: EffectParts,
  effect: NodeEffect,
  { childRunId, parent, signal }: ChildWait,
): WaitingEffect {
  return {
    effect,
    wait: async (deliver) => {
      const ended = await awaitEnd(childRunId, signal);
      if (ended) await deliver([endOf(ended)]);
      else if (isOver(signal)) await abandon(childRunId, parent);
    },
  };
}

/** RFC 0063 §D: a child has none that its parent has not. */
function narrowScopes(
  scopes: readonly string[] | undefined,
  most: readonly string[] | undefined,
): readonly string[] | undefined {
  return most ? (scopes ?? []).filter((scope) => most.includes(scope)) : scopes;
}

async function createChild(
  parts: EffectParts,
  loadedRun: LoadedRun,
  effect: ChildEffect & { nodeId: string },
  runId: CoordinationId,
) {
  const { started } = loadedRun.run;
  const scopes = narrowScopes(started.scopes, effect.principalScope);
  return createRun(
    parts,
    { ...started.owner, ...(scopes && { scopes }) },
    {
      workflowId: effect.workflowId,
      ...(effect.agent && { agent: effect.agent }),
      inputs: effect.inputs,
      runId,
      transport: "rest",
      ...createChildMemory(loadedRun.run, effect),
      depth: (started.depth ?? 0) + 1,
      isChild: true,
      parent: {
        runId: loadedRun.run.runId,
        hostId: parts.settings.hostId,
        cause: effect.cause,
        nodeId: effect.nodeId,
      },
      ...traceOf(parts, loadedRun, effect.ordinal),
    },
  );
}

function endOf({ run, graph }: LoadedRun): EffectOutcome {
  const { phase } = run;
  const variables = variablesOf(run, graph);
  switch (phase.kind) {
    case "failed":
      return { kind: "child_ended", status: "failed", variables, error: phase.error };
    case "cancelled": {
      const error = { code: "cancelled", message: phase.reason ?? "the run was cancelled" };
      return { kind: "child_ended", status: "cancelled", variables, error };
    }
    case "completed": {
      const convergence = convergenceOf(run);
      const hasGivenUp = convergence?.goalSatisfied === false;
      return {
        kind: "child_ended",
        status: "completed",
        variables,
        outputs: phase.outputs,
        ...(hasGivenUp && { unmet: convergence.unmet }),
      };
    }
    default:
      return { kind: "child_ended", status: "completed", variables };
  }
}

/** The trace of the run goes on in what it calls, with a span of its own for each call. */
function traceOf(
  parts: EffectParts,
  { run }: LoadedRun,
  seed: string,
): { traceparent?: string; tracestate?: string } {
  const { traceparent, tracestate } = run.started;
  const child = childOf(traceparent, parts.sha256(`${run.runId}\n${seed}`));
  return {
    ...(child !== undefined && { traceparent: child }),
    ...(child !== undefined && tracestate !== undefined && { tracestate }),
  };
}

const UNBOUNDED: EffectOutcome = {
  kind: "child_refused",
  error: {
    code: "principal_scope_not_enforceable",
    message: "this host cannot bound what a child on another host may do",
  },
};

async function runOnPeer(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal, deliver }: ChildAct,
): Promise<WaitingEffect | undefined> {
  if (effect.principalScope) {
    await deliver([UNBOUNDED]);
    return undefined;
  }
  const childRunId = effect.childRunId ?? (await createOnPeer(parts, loadedRun, { effect, signal, deliver }));
  if (childRunId === undefined) return undefined;
  const mayCancel = !isOfSource(loadedRun, effect);
  return waitForPeer(parts, withoutInputs(effect), { childRunId, mayCancel, signal });
}

interface PeerWait {
  readonly childRunId: string;
  readonly mayCancel: boolean;
  readonly signal: AbortSignal;
}

function waitForPeer(
  parts: EffectParts,
  effect: Of<"run_child">,
  { childRunId, mayCancel, signal }: PeerWait,
): WaitingEffect {
  const { peerUrl = "" } = effect;
  return {
    effect,
    wait: async (deliver) => {
      const peers = await parts.peers();
      const ended = await peers.awaitEnd(peerUrl, childRunId, signal);
      if (ended.kind === "ended") await deliver([endOnPeer(ended)]);
      else if (ended.code !== "aborted") await deliver([failureOf(ended)]);
      if (isOver(signal) && ended.kind !== "ended" && mayCancel)
        await cancelOnPeer(parts, peerUrl, childRunId);
    },
  };
}

/** A fork may wait for a child that its source began; ending that is not for the fork. */
function isOfSource({ run: { origin, nodes } }: LoadedRun, { childRunId, nodeId }: Of<"run_child">): boolean {
  const began = nodes.get(nodeId)?.handoff?.dispatchedSequence;
  return childRunId !== undefined && origin !== undefined && began !== undefined && began < origin.until;
}

const CANCEL_MS = 10_000;

/** The run that wanted it is over. */
async function cancelOnPeer(parts: EffectParts, peerUrl: string, runId: string): Promise<void> {
  const signal = AbortSignal.timeout(CANCEL_MS);
  await (await parts.peers()).cancel(peerUrl, runId, { reason: "parent-cancelled", signal });
}

/** A creation that is under way is not given up with the run: whoever does not know the child cannot cancel it. */
function createHostStopSignal(signal: AbortSignal): AbortSignal {
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
  loadedRun: LoadedRun,
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
  const nodeState = loadedRun.run.nodes.get(effect.nodeId);
  const causationId = nodeState?.handoff?.chainEventId ?? nodeState?.startedEventId;
  const created = await peers.createRun(peerUrl, {
    workflowId: effect.workflowId,
    inputs: effect.inputs,
    idempotencyKey: childIdOf(parts, loadedRun, effect),
    parent: describeCallingRun(parts, loadedRun, effect.cause, causationId),
    signal: createHostStopSignal(signal),
    ...traceOf(parts, loadedRun, effect.ordinal),
  });
  if (created.kind === "created") {
    await deliver([{ kind: "child_created", childRunId: created.runId }]);
    return created.runId;
  }
  if (created.code !== "aborted") await deliver([{ kind: "child_refused", error: failureOf(created).error }]);
  return undefined;
}

function describeCallingRun(
  { settings: { hostId }, baseUrl }: EffectParts,
  { run: { runId, started } }: LoadedRun,
  cause: CallingRun["cause"],
  eventId: EventId | undefined,
): CallingRun {
  const wellKnownUrl = `${baseUrl()}/.well-known/openwop`;
  const depth = started.depth ?? 0;
  return { runId, hostId, cause, wellKnownUrl, depth, ...(eventId !== undefined && { eventId }) };
}

function endOnPeer({ status, variables, error, unmet }: PeerRunEnded): EffectOutcome {
  const hasGivenUp = status === "completed" && unmet !== undefined;
  return { kind: "child_ended", status, variables, ...(error && { error }), ...(hasGivenUp && { unmet }) };
}

function callOf<E extends Of<"call_tool" | "send_message">>(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal }: Act<E>,
): ToolAct<E> {
  const { id, nodeId, kind } = effect;
  const cause = kind === "call_tool" ? "mcp-tool-call" : "a2a-message";
  const parent = describeCallingRun(parts, loadedRun, cause, loadedRun.run.nodes.get(nodeId)?.openCall);
  return { effect, signal, parent, trace: traceOf(parts, loadedRun, id) };
}

function createAgentAct(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal }: Act<AgentAct["effect"]>,
): AgentAct {
  const { nodeId, id } = effect;
  return {
    effect,
    signal,
    trace: traceOf(parts, loadedRun, id),
    parent: () =>
      describeCallingRun(parts, loadedRun, "mcp-tool-call", loadedRun.run.nodes.get(nodeId)?.openCall),
    readMemory: async (scope, query) => {
      const read = await readMemory(parts, loadedRun, {
        ...query,
        kind: "read_memory",
        id,
        nodeId,
        scopes: [scope],
      });
      return read.kind === "memory_read" ? (read.entries[0] ?? []) : [];
    },
  };
}

async function readMemory(
  parts: EffectParts,
  { run }: LoadedRun,
  { scopes, tag, limit }: Of<"read_memory">,
): Promise<EffectOutcome> {
  const entries: (readonly Values[])[] = [];
  for (const scope of scopes) {
    const most = WORKFLOW_BOUNDS.memoryListMax;
    const query = { now: parts.clock.now(), limit: Math.min(limit ?? most, most) };
    const found = await listEntries(parts, run, scope, { ...query, ...(tag !== undefined && { tag }) });
    entries.push(found.map((entry) => ({ ...entry })));
  }
  return { kind: "memory_read", entries };
}

async function askOf(
  parts: EffectParts,
  loadedRun: LoadedRun,
  { effect, signal }: Act<Of<"ask_model">>,
): Promise<EffectOutcome> {
  const { traceparent } = traceOf(parts, loadedRun, effect.id);
  const request = await withTurn(parts, loadedRun, effect.request);
  if ("error" in request) return { kind: "failed", error: request.error };
  const { tenant } = loadedRun.run.started.owner;
  return askModel(parts, { effect: { ...effect, ...request }, signal, tenant, traceparent });
}

async function readWorkspace(
  { store }: EffectParts,
  { run }: LoadedRun,
  { sequence, paths }: Of<"read_workspace">,
): Promise<EffectOutcome> {
  const read = await readFiles(store, run, { before: sequence, paths });
  if ("error" in read) return { kind: "failed", error: read.error };
  return { kind: "workspace_read", files: read.files.map((file) => ({ ...file })) };
}
