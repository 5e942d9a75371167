/** Owns: the children of runs, here and on other hosts: beginning them, and waiting for their ends. */
import { describeCallingRun, createTraceContext } from "./calling-run.ts";
import type { EffectAct, ChildsParent, EffectDependencies, EffectOfKind } from "./effect-dependencies.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { PeerRunEnded } from "../../../ports/outbound.ts";
import type { ChildEffect, EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { assessConvergence } from "../../../workflow/state/review.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { readVariables } from "../../../workflow/state/values.ts";
import { createRun } from "../driving/create-run.ts";
import type { EffectPerformance } from "../driving/run-driver-state.ts";
import type { WaitingEffect } from "../driving/run-driver-state.ts";
import type { OutcomeSink } from "../driving/run-driver-state.ts";
import { isLeftToOthers } from "../driving/driven-runs.ts";
import { createChildMemory } from "../records/fork-memory.ts";
import { convertToFailedOutcome } from "../models/outbound-outcome.ts";
import type { LoadedRun } from "../records/run-book.ts";

export type ChildAct = EffectAct<EffectOfKind<"run_child">> & { readonly deliver: OutcomeSink };
type PeerAct = ChildAct & Pick<EffectPerformance, "isTakenUp">;

/** Creates a child's id from the place of its handoff: trying again after a crash is the same run (D2). */
function createChildRunId(
  { sha256 }: EffectDependencies,
  { run }: LoadedRun,
  { ordinal, cause }: ChildEffect,
): CoordinationId {
  const digits = sha256(`${run.runId}\n${cause}\n${ordinal}`);
  return `run-${digits.slice(0, 32)}` as CoordinationId;
}

/** True where nobody waits any more; false where another process goes on with the run. */
function isNobodyWaiting(signal: AbortSignal): boolean {
  return signal.aborted && !isLeftToOthers(signal);
}

/**
 * Begins a child run on this host, and delivers that it began, ended at once or was refused. Returns the wait for its
 * end; `undefined` where there is nothing to wait for.
 */
export async function beginChildRun(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  { effect, signal, deliver }: ChildAct,
): Promise<WaitingEffect | undefined> {
  // A fork may wait for a child that its source began.
  const childRunId = (effect.childRunId ??
    createChildRunId(dependencies, loadedRun, effect)) as CoordinationId;
  const created = await createChildRun(dependencies, loadedRun, effect, childRunId);
  if (created.kind === "refused") {
    const { code, message } = created;
    const unknown = code === "workflow_not_found" ? "unknown_child_workflow" : code;
    await deliver([{ kind: "child_refused", error: { code: unknown, message } }]);
    return undefined;
  }
  const outcome: EffectOutcome = { kind: "child_created", childRunId };
  const hasEnded = isEndedPhase(created.value.run.phase);
  await deliver(hasEnded ? [outcome, createChildOutcome(created.value)] : [outcome]);
  if (hasEnded) return undefined;
  const { runId, started } = loadedRun.run;
  const parent = { parentRunId: runId, tenant: started.owner.tenant };
  return createChildWait(dependencies, emptyInputs(effect), { childRunId, parent, signal });
}

/**
 * Returns the effect with empty inputs: they may be as large as the run, and it is kept in memory while its child
 * works.
 */
function emptyInputs(effect: EffectOfKind<"run_child">): EffectOfKind<"run_child"> {
  return { ...effect, inputs: {} };
}

interface ChildWait {
  readonly childRunId: CoordinationId;
  readonly parent: ChildsParent;
  readonly signal: AbortSignal;
}

/** Returns the wait for a child's end. Where its parent ends first, the child is ended, too. */
function createChildWait(
  { awaitEnd, abandon }: EffectDependencies,
  effect: NodeEffect,
  { childRunId, parent, signal }: ChildWait,
): WaitingEffect {
  return {
    effect,
    wait: async (deliver) => {
      const ended = await awaitEnd(childRunId, signal);
      if (ended) await deliver([createChildOutcome(ended)]);
      else if (isNobodyWaiting(signal)) await abandon(childRunId, parent);
    },
  };
}

/**
 * Returns those of the parent's scopes that its node grants to the child; all where it sets no bound. RFC 0063 §D: a
 * child has none that its parent has not.
 */
function narrowScopes(
  scopes: readonly string[] | undefined,
  most: readonly string[] | undefined,
): readonly string[] | undefined {
  return most ? (scopes ?? []).filter((scope) => most.includes(scope)) : scopes;
}

async function createChildRun(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  effect: ChildEffect & { nodeId: string },
  runId: CoordinationId,
) {
  const { started } = loadedRun.run;
  const scopes = narrowScopes(started.scopes, effect.principalScope);
  return createRun(
    dependencies,
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
        hostId: dependencies.settings.hostId,
        cause: effect.cause,
        nodeId: effect.nodeId,
      },
      ...createTraceContext(dependencies, loadedRun, effect),
    },
  );
}

/** Creates the outcome of a child that has ended on this host, also of one that gave up its goal. */
function createChildOutcome({ run, graph }: LoadedRun): EffectOutcome {
  const { phase } = run;
  const variables = readVariables(run, graph);
  switch (phase.kind) {
    case "failed":
      return { kind: "child_ended", status: "failed", variables, error: phase.error };
    case "cancelled": {
      const error = { code: "cancelled", message: phase.reason ?? "the run was cancelled" };
      return { kind: "child_ended", status: "cancelled", variables, error };
    }
    case "completed": {
      const convergence = assessConvergence(run);
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

const UNBOUNDED: EffectOutcome = {
  kind: "child_refused",
  error: {
    code: "principal_scope_not_enforceable",
    message: "this host cannot bound what a child on another host may do",
  },
};

/**
 * Begins a child run on another host, and delivers what came of that. Returns the wait for its end; `undefined` where
 * it did not begin, or nobody waits for it.
 */
export async function beginChildOnPeer(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  act: PeerAct,
): Promise<WaitingEffect | undefined> {
  const { effect, signal, deliver } = act;
  if (effect.principalScope) {
    await deliver([UNBOUNDED]);
    return undefined;
  }
  const childRunId = effect.childRunId ?? (await createChildOnPeer(dependencies, loadedRun, act));
  if (childRunId === undefined) return undefined;
  if (effect.isLeftAlone && !(await isNodeCancelled(dependencies, loadedRun, effect))) return undefined;
  const mayCancel = !isChildOfSource(loadedRun, effect);
  return createPeerWait(dependencies, emptyInputs(effect), { childRunId, mayCancel, signal });
}

/** True where the newest log has the node cancelled, as when the run ended before it learned of its child. */
async function isNodeCancelled(
  { driver }: EffectDependencies,
  { run: { runId } }: LoadedRun,
  { nodeId }: EffectOfKind<"run_child">,
): Promise<boolean> {
  return (await driver.newest(runId))?.run.nodes.get(nodeId)?.status === "cancelled";
}

interface PeerWait {
  readonly childRunId: string;
  readonly mayCancel: boolean;
  readonly signal: AbortSignal;
}

/**
 * Returns the wait for the end of a child on a peer. It cancels a child that nobody waits for any more or whose end
 * cannot be learned, unless `mayCancel` is false; the latter is delivered as a failure.
 */
function createPeerWait(
  dependencies: EffectDependencies,
  effect: EffectOfKind<"run_child">,
  { childRunId, mayCancel, signal }: PeerWait,
): WaitingEffect {
  const { peerUrl = "" } = effect;
  return {
    effect,
    wait: async (deliver) => {
      const peers = await dependencies.peers();
      const ended = await peers.awaitEnd(peerUrl, childRunId, signal);
      if (ended.kind === "ended") {
        await deliver([createPeerChildOutcome(ended)]);
        return;
      }
      const isGivenUp = ended.code !== "aborted";
      // A child that counts as failed must not go on beside the one that takes its place.
      if (mayCancel && (isGivenUp || isNobodyWaiting(signal)))
        await cancelChildOnPeer(dependencies, peerUrl, { childRunId, isGivenUp });
      if (isGivenUp) await deliver([convertToFailedOutcome(ended)]);
    },
  };
}

/** True for a child of a fork that the fork's source began; ending that is not for the fork. */
function isChildOfSource(
  { run: { origin, nodes } }: LoadedRun,
  { childRunId, nodeId }: EffectOfKind<"run_child">,
): boolean {
  const began = nodes.get(nodeId)?.handoff?.dispatchedSequence;
  return childRunId !== undefined && origin !== undefined && began !== undefined && began < origin.until;
}

const CANCEL_MS = 10_000;

/** Cancels a child on a peer. `isGivenUp`: its parent goes on without it; else the parent is over. */
async function cancelChildOnPeer(
  dependencies: EffectDependencies,
  peerUrl: string,
  { childRunId, isGivenUp }: { readonly childRunId: string; readonly isGivenUp: boolean },
): Promise<void> {
  const reason = isGivenUp ? "parent-gave-up" : "parent-cancelled";
  const signal = AbortSignal.timeout(CANCEL_MS);
  await (await dependencies.peers()).cancel(peerUrl, childRunId, { reason, signal });
}

/**
 * Creates a signal that aborts only where another process goes on with the run. A creation that is under way is not
 * given up with the run: whoever does not know the child cannot cancel it.
 */
function createHostStopSignal(signal: AbortSignal): AbortSignal {
  const stopping = new AbortController();
  const stop = (): void => {
    if (isLeftToOthers(signal)) stopping.abort(signal.reason);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return stopping.signal;
}

/**
 * Creates the child on its peer, delivers that or the refusal, and returns the id of a child that was created;
 * `undefined` for any other, with nothing delivered where the creation was aborted.
 */
async function createChildOnPeer(
  dependencies: EffectDependencies,
  loadedRun: LoadedRun,
  act: PeerAct,
): Promise<string | undefined> {
  const { effect, signal, deliver, isTakenUp } = act;
  const { peerUrl = "" } = effect;
  if (!(await checkIsAnotherHost(dependencies, peerUrl, act))) return undefined;
  const peers = await dependencies.peers();
  const nodeState = loadedRun.run.nodes.get(effect.nodeId);
  const causationId = nodeState?.handoff?.chainEventId ?? nodeState?.startedEventId;
  const created = await peers.createRun(peerUrl, {
    workflowId: effect.workflowId,
    inputs: effect.inputs,
    idempotencyKey: createChildRunId(dependencies, loadedRun, effect),
    parent: describeCallingRun(dependencies, loadedRun, effect.cause, causationId),
    signal: createHostStopSignal(signal),
    runSignal: signal,
    mayBeStored: isTakenUp,
    ...createTraceContext(dependencies, loadedRun, effect),
  });
  if (created.kind === "created") {
    await deliver([{ kind: "child_created", childRunId: created.runId }]);
    return created.runId;
  }
  if (created.code !== "aborted")
    await deliver([{ kind: "child_refused", error: convertToFailedOutcome(created).error }]);
  return undefined;
}

/**
 * Asks the peer who it is. False where it is this host, after delivering the refusal of the child, or where `signal`
 * has aborted; true also where the peer does not say who it is.
 */
async function checkIsAnotherHost(
  { peers, settings }: EffectDependencies,
  peerUrl: string,
  { signal, deliver }: ChildAct,
): Promise<boolean> {
  const host = await (await peers()).discover(peerUrl, signal);
  if (signal.aborted) return false;
  if (host.kind !== "host" || host.hostId !== settings.hostId) return true;
  const message = "the peer is this host: leave out peerUrl for a workflow of its own";
  await deliver([{ kind: "child_refused", error: { code: "peer_is_this_host", message } }]);
  return false;
}

function createPeerChildOutcome({ status, variables, error, unmet }: PeerRunEnded): EffectOutcome {
  const hasGivenUp = status === "completed" && unmet !== undefined;
  return { kind: "child_ended", status, variables, ...(error && { error }), ...(hasGivenUp && { unmet }) };
}
