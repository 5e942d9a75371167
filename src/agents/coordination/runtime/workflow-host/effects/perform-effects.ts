/** Owns: doing what nodes need of the outside: child runs here and on other hosts, memory, models, tools. */
import { beginChildRun, beginChildOnPeer } from "./perform-children.ts";
import { describeCallingRun, createTraceContext } from "./calling-run.ts";
import type { EffectAct, EffectDependencies, EffectOfKind } from "./effect-dependencies.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import { NOT_PLAYED } from "../../../workflow/node-contract/conformance-parts.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { REPLAY_SOURCE_MISSING } from "../../../workflow/node-failure.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { askModel } from "../models/ask-model.ts";
import { addTurnMessage } from "./ask-turn.ts";
import { type EffectPerformer } from "../driving/run-driver-state.ts";
import { type OutcomeSink } from "../driving/run-driver-state.ts";
import { listRunMemory } from "../records/fork-memory.ts";
import { judgeChild } from "./judge-child.ts";
import { callMcpTool, sendA2aMessage, type ToolAct } from "./perform-tools.ts";
import { performAgentEffect, type AgentAct } from "../agents/perform-agent.ts";
import type { LoadedRun } from "../records/run-book.ts";
import { readWorkspaceFiles, writeWorkspaceFile } from "../records/run-workspace.ts";

/**
 * Creates the function that performs a node's effect outside of the run and delivers the outcome. It resolves with the
 * wait for a child that was begun, else with `undefined`.
 */
export function createEffectPerformer(dependencies: EffectDependencies): EffectPerformer {
  return async (loadedRun, effect, { signal, deliver, isTakenUp }) => {
    if (isOutcomeMissing(loadedRun, effect)) {
      await deliver([MISSING]);
      return undefined;
    }
    if (effect.kind === "run_child")
      return effect.peerUrl === undefined
        ? beginChildRun(dependencies, loadedRun, { effect, signal, deliver })
        : beginChildOnPeer(dependencies, loadedRun, { effect, signal, deliver, isTakenUp });
    const endWork = dependencies.usage.work(loadedRun.run.started.owner.tenant);
    await performDirectEffect(dependencies, loadedRun, { effect, signal, deliver }).finally(endWork);
    return undefined;
  };
}

/** Performs any effect but a child run, and delivers its outcome. */
async function performDirectEffect(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  { effect, signal, deliver }: OtherAct,
): Promise<void> {
  switch (effect.kind) {
    case "read_memory":
      return deliver([await readMemory(dependencies, loadedRun, effect)]);
    case "ask_model":
      return deliver([await askNodeModel(dependencies, loadedRun, { effect, signal })]);
    case "call_tool":
      return deliver([
        await callMcpTool(
          dependencies,
          loadedRun.run,
          createToolAct(dependencies, loadedRun, { effect, signal }),
        ),
      ]);
    case "send_message":
      return deliver([
        await sendA2aMessage(
          dependencies,
          loadedRun.run,
          createToolAct(dependencies, loadedRun, { effect, signal }),
        ),
      ]);
    case "judge_child": {
      const { traceparent } = createTraceContext(dependencies, loadedRun, effect);
      const judged = await judgeChild(dependencies, loadedRun, { effect, signal, traceparent });
      return judged && deliver([judged]);
    }
    case "read_workspace":
      return deliver([await readWorkspace(dependencies, loadedRun, effect)]);
    case "write_workspace":
      return writeWorkspaceFile(dependencies, loadedRun.run, { effect, deliver });
    case "cause_side_effect":
      return deliver([dependencies.conformance?.causeSideEffect(loadedRun.run, effect) ?? UNPLAYED]);
    case "prepare_agent":
    case "ask_agent":
    case "call_agent_tool":
      return deliver([
        await performAgentEffect(
          dependencies,
          loadedRun,
          createAgentAct(dependencies, loadedRun, { effect, signal }),
        ),
      ]);
  }
}

/** True for an effect that a replay should have from its source: it does nothing outside of its own log. */
function isOutcomeMissing({ run }: LoadedRun, { kind }: NodeEffect): boolean {
  return run.origin?.mode === "replay" && !FORK_EFFECTS.has(kind);
}

/** Effects that a fork has for itself alone. */
const FORK_EFFECTS: ReadonlySet<NodeEffect["kind"]> = new Set([
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

const UNPLAYED: EffectOutcome = {
  kind: "failed",
  error: { code: NOT_PLAYED, message: "this host has no conformance play, which causes this side effect" },
};

type OtherAct = EffectAct<Exclude<NodeEffect, { readonly kind: "run_child" }>> & {
  readonly deliver: OutcomeSink;
};

/** Creates the act of calling a tool or an agent, with what the other side is told of the run. */
function createToolAct<E extends EffectOfKind<"call_tool" | "send_message">>(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  { effect, signal }: EffectAct<E>,
): ToolAct<E> {
  const { nodeId, kind } = effect;
  const cause = kind === "call_tool" ? "mcp-tool-call" : "a2a-message";
  const parent = describeCallingRun(
    dependencies,
    loadedRun,
    cause,
    loadedRun.run.nodes.get(nodeId)?.openCall?.eventId,
  );
  return { effect, signal, parent, trace: createTraceContext(dependencies, loadedRun, effect) };
}

function createAgentAct(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  { effect, signal }: EffectAct<AgentAct["effect"]>,
): AgentAct {
  const { nodeId, id } = effect;
  return {
    effect,
    signal,
    trace: createTraceContext(dependencies, loadedRun, effect),
    parent: () =>
      describeCallingRun(
        dependencies,
        loadedRun,
        "mcp-tool-call",
        loadedRun.run.nodes.get(nodeId)?.openCall?.eventId,
      ),
    readMemory: async (scope, query) => {
      const read = await readMemory(dependencies, loadedRun, {
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

/**
 * Returns how many memory entries are read: the limit as a whole number from 0 to the most of a list, which is the
 * default. A store takes no parts of one, and a count below zero as no bound.
 */
export function clampEntryCount(limit: number = WORKFLOW_BOUNDS.memoryListMax): number {
  return Math.max(0, Math.min(Math.trunc(limit) || 0, WORKFLOW_BOUNDS.memoryListMax));
}

async function readMemory(
  dependencies: EffectDependencies,
  { run }: LoadedRun,
  { scopes, tag, limit }: EffectOfKind<"read_memory">,
): Promise<EffectOutcome> {
  const entries: (readonly Values[])[] = [];
  for (const scope of scopes) {
    const query = { now: dependencies.clock.now(), limit: clampEntryCount(limit) };
    const listedEntries = await listRunMemory(dependencies, run, scope, {
      ...query,
      ...(tag !== undefined && { tag }),
    });
    entries.push(listedEntries.map((entry) => ({ ...entry })));
  }
  return { kind: "memory_read", entries };
}

/** Asks a model for a node; a supervisor's request gets its turn as the last message. */
async function askNodeModel(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  { effect, signal }: EffectAct<EffectOfKind<"ask_model">>,
): Promise<EffectOutcome> {
  const { traceparent } = createTraceContext(dependencies, loadedRun, effect);
  const request = await addTurnMessage(dependencies, loadedRun, effect.request);
  if ("error" in request) return { kind: "failed", error: request.error };
  const { tenant } = loadedRun.run.started.owner;
  return askModel(dependencies, { effect: { ...effect, ...request }, signal, tenant, traceparent });
}

async function readWorkspace(
  { store }: EffectDependencies,
  { run }: LoadedRun,
  { sequence, paths }: EffectOfKind<"read_workspace">,
): Promise<EffectOutcome> {
  const read = await readWorkspaceFiles(store, run, { before: sequence, paths });
  if ("error" in read) return { kind: "failed", error: read.error };
  return { kind: "workspace_read", files: read.files.map((file) => ({ ...file })) };
}
