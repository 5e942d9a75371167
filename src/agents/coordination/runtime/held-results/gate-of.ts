/** Owns: what holds the results of an agent, from the operator's configuration, a step of a plan and the plugins that verify. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { HeldDecision, RunnerKind } from "../../contracts/fact-fields.ts";
import type { TruthConfig } from "../../contracts/config/config.ts";
import type { GatesConfig } from "../../contracts/config/gates-config.ts";
import type { AgentId } from "../../contracts/ids.ts";
import type { Gate, StepVerify } from "../../contracts/verification.ts";
import { findAgentGate, type AgentGate } from "../../gates/agent-gate.ts";
import { isStrictGate } from "../../ledger/withheld-words.ts";
import { convertToBasisPointsUp, convertToBasisPointsDown } from "../../gates/stated-confidence.ts";
import type { PlanAdmission } from "../../plan/create-planned-steps.ts";
import type { GateDependencies } from "../environment/gate-dependencies.ts";

/** An agent whose results a gate may hold, and what the gate is built from. */
export interface GatedAgent {
  readonly agentId: AgentId;
  readonly runner: RunnerKind;
  /** The verification that a step of a plan asks for. */
  readonly verify?: StepVerify;
  /** Checks of plugins, by key. */
  readonly plugins: readonly string[];
  /** Absent: a child that does not run as it was asked is recorded, and counts. */
  readonly onMismatch?: TruthConfig["onMismatch"];
}

/**
 * Builds the gate that holds results of an agent; `undefined` where the operator has no gates, and for the results of
 * owners. A plan can ask for more than the operator, never for less.
 */
export function buildGate(config: GatesConfig, gated: GatedAgent): Gate | undefined {
  if (!config.enabled || gated.runner === "owner") return undefined;
  const ofAgent = findAgentGate(config, gated.agentId);
  const { verify = {} } = gated;
  const operators = ofAgent.confidenceThreshold ?? config.confidenceThreshold;
  const isDemanded = ofAgent.requireConfidence ?? config.requireConfidence;
  const checks = listCheckKeys(ofAgent, gated);
  return {
    threshold: convertToBasisPointsUp(Math.max(operators, verify.confidenceThreshold ?? 0)),
    ...createMismatchPart(gated),
    ...((isDemanded || verify.requireConfidence) && { requireConfidence: true }),
    ...(checks.length > 0 && createCheckPart(config, { checks, verify })),
  };
}

/**
 * Creates the part of a gate that holds the result where the child does not run as it was asked. Nothing is seen of
 * other runners.
 */
function createMismatchPart({ onMismatch = "record", runner }: GatedAgent): Pick<Gate, "holdMismatch"> {
  return onMismatch !== "record" && runner === "subagent" ? { holdMismatch: true } : {};
}

function listCheckKeys({ checks = [] }: AgentGate, { plugins, verify }: GatedAgent): string[] {
  // A check that is cut off would let the result pass (G1): there are fewer plugins than the bound leaves room for.
  const named = [...checks, ...Object.keys(verify?.checks ?? {}), ...plugins];
  return [...new Set(named)].slice(0, BOUNDS.checksPerResultMax);
}

function createCheckPart(
  config: GatesConfig,
  { checks, verify }: { readonly checks: string[]; readonly verify: StepVerify },
): Partial<Gate> {
  return {
    checks,
    criticThreshold: convertToBasisPointsUp(config.criticThreshold),
    revisionsMax: Math.min(verify.revisionsMax ?? config.revisionsMax, BOUNDS.revisionsMax),
    verifyMs: config.verifyMs,
    ...(config.allowSelfVerification && { allowSelf: true }),
  };
}

export interface SpawnedAgent extends Pick<GatedAgent, "agentId" | "runner"> {
  /** The spawn asks for a value of a certain form, which the host hands to the parent beside the child's words. */
  readonly hasOutputSchema?: boolean;
}

/**
 * Returns the reason, in words for the model, why a spawn is refused; `undefined` where no strict gate holds its
 * results, or they can be kept back. That is not so of the words of an ACP session, nor of a value of the form that
 * the spawn asks for.
 */
export function explainUngateable(
  gate: Gate | undefined,
  { agentId, runner, hasOutputSchema = false }: SpawnedAgent,
): string | undefined {
  if (!gate || !isStrictGate(gate)) return undefined;
  if (runner === "acp")
    return `results of agent ${agentId} must be checked, and those of an ACP session cannot be held back; spawn it with runtime "subagent"`;
  return hasOutputSchema
    ? `results of agent ${agentId} must be checked, and a value of the form that outputSchema asks for cannot be held back; spawn it without outputSchema, and say in its task in which form its last words must be`
    : undefined;
}

/**
 * Returns the reason, in words for the model, why a spawn that is not recorded is refused; `undefined` where no strict
 * gate would hold its results. `because`: why the ledger does not know of it.
 */
export function explainUnheldResult(
  gate: Gate | undefined,
  spawned: SpawnedAgent,
  because: string,
): string | undefined {
  if (!gate || !isStrictGate(gate)) return undefined;
  const unheld = `results of agent ${spawned.agentId} must be checked, and ${because}, so nothing would hold them`;
  return explainUngateable(gate, spawned) ?? unheld;
}

/**
 * Returns the confidence of a planner that doubts its step with the operator's floor, so that people must let the step
 * begin (G2); `undefined` without gates, and where the planner is sure enough or says nothing.
 */
export function findDoubt(config: GatesConfig, confidence: number | undefined): HeldDecision | undefined {
  if (!config.enabled || confidence === undefined) return undefined;
  const measured = convertToBasisPointsDown(confidence);
  const floor = convertToBasisPointsUp(config.decisionFloor);
  return measured < floor ? { confidence: measured, floor } : undefined;
}

/**
 * Creates the function that returns the gate of a step's results, and the doubt for which people must let it begin;
 * each is absent where there is none.
 */
export function createGating({ gates, pluginGates, truth }: GateDependencies): PlanAdmission["gateStep"] {
  return ({ agent: agentId, verify, confidence }, runner) => {
    const plugins = pluginGates.verifiersFor(agentId);
    const { onMismatch } = truth;
    const gate = buildGate(gates, { agentId, runner, plugins, onMismatch, ...(verify && { verify }) });
    const decision = findDoubt(gates, confidence);
    return { ...(gate && { gate }), ...(decision && { decision }) };
  };
}
