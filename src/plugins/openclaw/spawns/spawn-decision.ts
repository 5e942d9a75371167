/**
 * Owns: whether plugins of other authors let a spawn begin. They are asked before anything of it is recorded, and leave the
 * lane and the ledger their part of the path's budget.
 *
 * Fails closed: who is late, fails or cannot be told who would work says no. A spawn cannot wait for people, so that a confidence
 * below the operator's floor says no too: that of the policy pack under which the spawn would be, and where the ledger cannot tell,
 * or not in time, which one that is, the highest floor of all.
 */
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import type { StepId } from "../../../agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../../agents/coordination/runtime/coordinator.ts";
import { findDoubt } from "../../../agents/coordination/runtime/held-results/gate-of.ts";
import type { SpawnRequest } from "../../../agents/coordination/runtime/spawns/admit-spawn.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import type { DecisionRuling } from "../../hooks/ask-deciders.ts";
import type { SpawnDecision } from "../../hooks/hook-types.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import { hasDeciders } from "../runtime-access/rules-in-force.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { runWithinBudget } from "../host/within-budget.ts";

/** For how long plugins are asked at most, in milliseconds. */
export const SPAWN_DECIDE_MS = 4_000;

/** For how long the ledger is asked where the spawn would be, in milliseconds; at most half of what is left for the plugins. */
const PLACE_MS = 1_500;

const NOT_ASKED = "the plugins that decide about spawns could not be asked";

/** A plugin that names its own deadline is given this on top, so that it can be named. */
const GRACE_MS = 250;

/**
 * Asks the `decide` hooks about a spawn, until `untilMs` or for `SPAWN_DECIDE_MS`, and returns why it must not happen;
 * `undefined` where it may. Logs which plugin denied it, and denies one that cannot be read.
 */
export async function findSpawnDenial(
  runtime: SharedRuntime,
  request: SpawnRequest | undefined,
  untilMs: number,
): Promise<string | undefined> {
  const { hooks, logger } = runtime;
  if (!hooks.hasAny("decide")) return undefined;
  if (!request) return "it names no session or agent that plugins could decide about";
  const denial = await askInTime(
    runtime,
    request,
    Math.min(untilMs - GRACE_MS, Date.now() + SPAWN_DECIDE_MS),
  );
  if (denial)
    logger.info({ session: request.sourceSession, plugin: denial.plugin }, "a plugin denied a spawn");
  return denial?.reason;
}

/**
 * Returns the reason to refuse a spawn where plugins decide about spawns and could not be asked; `undefined` where
 * none decides.
 */
export function explainUndecidedSpawn(): string | undefined {
  return hasDeciders() ? NOT_ASKED : undefined;
}

/** Why a spawn must not happen, and whose plugin says so. */
interface Denial {
  readonly plugin: string;
  readonly reason: string;
}

/**
 * Asks the plugins about the spawn; one that fails or does not answer in time is a denial, and so is that none could
 * be asked.
 */
async function askInTime(
  runtime: SharedRuntime,
  request: SpawnRequest,
  untilMs: number,
): Promise<Denial | undefined> {
  try {
    // Work that it begins, such as opening the ledger, goes on when the call is over.
    const deciding = runOutsideCalls(() => askPlugins(runtime, request, untilMs));
    return await runWithinBudget(deciding, untilMs - Date.now() + GRACE_MS);
  } catch (error) {
    if (readErrorCode(error) === "LEDGER_BUSY")
      return { plugin: "", reason: "the plugins that decide about spawns did not answer in time" };
    const why = describeError(error);
    runtime.logger.error({ session: request.sourceSession, why }, "plugins could not be asked about a spawn");
    return { plugin: "", reason: NOT_ASKED };
  }
}

async function askPlugins(
  runtime: SharedRuntime,
  request: SpawnRequest,
  untilMs: number,
): Promise<Denial | undefined> {
  const {
    sourceSession,
    spawn: { agentId, runner },
  } = request;
  const placeMs = Math.min(PLACE_MS, (untilMs - Date.now()) / 2);
  const place = await runWithinBudget(findSpawnPlace(runtime, request), placeMs).catch((): SpawnPlace => ({
    described: {},
    gates: runtime.gateRules,
  }));
  const decision: SpawnDecision = { kind: "spawn", agentId, sourceSession, runner, ...place.described };
  const ruling = await runtime.hooks.decide(decision, untilMs);
  return ruling && readDenial(place.gates, ruling);
}

type GatesConfig = SharedRuntime["gateRules"][number];

/** Where in a coordination the spawn would be. */
interface SpawnPlace {
  /** The words for plugins; empty where the ledger cannot tell. */
  readonly described: Partial<SpawnDecision>;
  /** The rules that may hold there: one, or all where the ledger cannot tell. */
  readonly gates: readonly GatesConfig[];
}

/** Returns where in which coordination the spawn would be, and the gate rules that hold there. */
async function findSpawnPlace(runtime: SharedRuntime, request: SpawnRequest): Promise<SpawnPlace> {
  const { config, policies } = runtime;
  const coordinator = await runtime.coordinator();
  const envelope = await coordinator.envelopeForChild(request.sourceSession);
  const view = envelope && (await coordinator.view(envelope.coordinationId));
  if (!envelope || view?.endedAtMs !== undefined)
    return findOwnerSpawnPlace(runtime, coordinator, { request, ended: view });
  const { coordinationId, stepId } = envelope;
  return {
    described: { coordinationId, depth: 1 + countSpawnDepth(view, stepId) },
    gates: [(policies?.find(view?.policy) ?? config).gates],
  };
}

interface OwnerSpawn {
  readonly request: SpawnRequest;
  /** The coordination whose child the session was; absent for a session that is nobody's child. */
  readonly ended: SpawnTree;
}

/**
 * Finds the place of a spawn by a session that works for no other one any more: in the coordination that its turn has open, or in a
 * new one. After the end of its coordination it opens one of its own, under the same pack.
 */
async function findOwnerSpawnPlace(
  { config, policies }: SharedRuntime,
  coordinator: Coordinator,
  { request, ended }: OwnerSpawn,
): Promise<SpawnPlace> {
  const { sourceSession: session, sourceAgent: agent } = request;
  const open = await coordinator.findOpenOfTrace(request);
  const before = open ?? ended;
  const rules = before ? policies?.find(before.policy) : policies?.choose({ agent, session });
  const described = { depth: 1, ...(open && { coordinationId: open.coordinationId }) };
  return { described, gates: [(rules ?? config).gates] };
}

/** The coordination that a spawn is in, as it is now. */
type SpawnTree = Awaited<ReturnType<Coordinator["view"]>>;

/**
 * Counts the spawns from the owner down to a step, that of the step among them: 1 for a child of the owner, and where
 * there is no view.
 */
function countSpawnDepth(view: SpawnTree, stepId: StepId): number {
  const parents = new Map(view?.steps.map((step) => [step.stepId, step.parentStepId]));
  let depth = 1;
  for (let parent = parents.get(stepId); parent && depth <= parents.size; parent = parents.get(parent))
    depth += 1;
  return depth;
}

/** Returns the denial of a ruling; `undefined` where it allows the spawn and is as sure as the operator wants. */
function readDenial(gates: readonly GatesConfig[], ruling: DecisionRuling): Denial | undefined {
  if (ruling.action === "deny") return ruling;
  const { plugin, confidence } = ruling;
  const floors = gates.flatMap((rules) => findDoubt(rules, confidence)?.floor ?? []);
  if (floors.length === 0) return undefined;
  const reason = `the plugin ${plugin} is not sure enough of it (${confidence}, and the operator's floor is ${Math.max(...floors) / 10_000}), and a spawn cannot wait for people; put the work into a plan (coordination_plan), which can, or do something else`;
  return { plugin, reason };
}
