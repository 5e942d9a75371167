/**
 * Owns: whether plugins of other authors let a spawn begin. They are asked before anything of it is recorded, and leave the
 * lane and the ledger their part of the path's budget.
 *
 * Fails closed: who is late, fails or cannot be told who would work says no. A spawn cannot wait for people, so that a confidence
 * below the operator's floor says no too.
 */
import type { StepId } from "../../../agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../../agents/coordination/runtime/coordinator.ts";
import { findDoubt } from "../../../agents/coordination/runtime/held-results/gate-of.ts";
import type { SpawnRequest } from "../../../agents/coordination/runtime/spawns/admit-spawn.ts";
import type { DecisionRuling } from "../../hooks/ask-deciders.ts";
import type { SpawnDecision } from "../../hooks/hook-types.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { runWithinBudget } from "../host/within-budget.ts";

/** For how long plugins are asked at most, in milliseconds. */
export const SPAWN_DECIDE_MS = 4_000;

/** A plugin that names its own deadline is given this on top, so that it can be named. */
const GRACE_MS = 250;

/** Returns why the spawn must not happen; `undefined` where it may. Answers by `untilMs`, or `SPAWN_DECIDE_MS` from now. */
export async function findDenial(
  runtime: SharedRuntime,
  request: SpawnRequest | undefined,
  untilMs: number,
): Promise<string | undefined> {
  const { hooks, config, logger } = runtime;
  if (!hooks.hasAny("decide")) return undefined;
  if (!request) return "it names no session or agent that plugins could decide about";
  const ruling = await ask(runtime, request, Math.min(untilMs - GRACE_MS, Date.now() + SPAWN_DECIDE_MS));
  const reason = ruling && readDenial(config.gates, ruling);
  if (reason !== undefined)
    logger.info({ session: request.sourceSession, plugin: ruling?.plugin }, "a plugin denied a spawn");
  return reason;
}

async function ask(
  runtime: SharedRuntime,
  request: SpawnRequest,
  untilMs: number,
): Promise<DecisionRuling | undefined> {
  try {
    // Work that it begins, such as opening the ledger, goes on when the call is over.
    const deciding = runOutsideCalls(() => decide(runtime, request, untilMs));
    return await runWithinBudget(deciding, untilMs - Date.now() + GRACE_MS);
  } catch {
    return {
      action: "deny",
      plugin: "",
      reason: "the plugins that decide about spawns did not answer in time",
    };
  }
}

async function decide(
  runtime: SharedRuntime,
  { sourceSession, spawn: { agentId, runner } }: SpawnRequest,
  untilMs: number,
): Promise<DecisionRuling | undefined> {
  const place = await placeOf(runtime, sourceSession);
  const decision: SpawnDecision = { kind: "spawn", agentId, sourceSession, runner, ...place };
  return runtime.hooks.decide(decision, untilMs);
}

/** Returns where in a coordination the spawn would be; empty when it would open one, or the ledger cannot tell. */
async function placeOf(
  runtime: SharedRuntime,
  sourceSession: SpawnRequest["sourceSession"],
): Promise<Partial<SpawnDecision>> {
  try {
    const coordinator = await runtime.coordinator();
    const envelope = await coordinator.envelopeForChild(sourceSession);
    if (!envelope) return { depth: 1 };
    const { coordinationId, stepId } = envelope;
    return { coordinationId, depth: 1 + depthOf(await coordinator.view(coordinationId), stepId) };
  } catch {
    return {};
  }
}

type View = Awaited<ReturnType<Coordinator["view"]>>;

/** Counts the spawns between a step and the owner. */
function depthOf(view: View, stepId: StepId): number {
  const parents = new Map(view?.steps.map((step) => [step.stepId, step.parentStepId]));
  let depth = 1;
  for (let parent = parents.get(stepId); parent && depth <= parents.size; parent = parents.get(parent))
    depth += 1;
  return depth;
}

function readDenial(gates: SharedRuntime["config"]["gates"], ruling: DecisionRuling): string | undefined {
  if (ruling.action === "deny") return ruling.reason;
  const { plugin, confidence } = ruling;
  const doubt = findDoubt(gates, confidence);
  if (!doubt) return undefined;
  return `the plugin ${plugin} is not sure enough of it (${confidence}, and the operator's floor is ${doubt.floor / 10_000}), and a spawn cannot wait for people; put the work into a plan (coordination_plan), which can, or do something else`;
}
