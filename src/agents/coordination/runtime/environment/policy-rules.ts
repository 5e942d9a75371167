/**
 * Owns: which rules hold for the work of one session, where the operator lets a policy pack hold for single agents, channels or
 * sessions. The pack that a coordination was opened under holds for it to its end, as long as it is there.
 */
import type { TruthConfig } from "../../contracts/config/config.ts";
import type { EscalationsConfig, GatesConfig } from "../../contracts/config/gates-config.ts";
import type { PrivilegesConfig } from "../../contracts/config/privileges-config.ts";
import type { AgentId, SessionKey } from "../../contracts/ids.ts";
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import type { TreeBudget } from "../../contracts/usage.ts";
import type { StepOfChild } from "../log/step-of-child.ts";

/** The rules of a pack that can hold for one coordination alone. The rest of it is the gateway's to say. */
export interface PolicyRules {
  readonly policy: PolicyRef;
  readonly gates: GatesConfig;
  readonly escalations: EscalationsConfig;
  readonly privileges: PrivilegesConfig;
  readonly budget?: TreeBudget;
  readonly stepTimeoutMs: number;
  readonly escalateMs: number;
}

/** Whose work a coordination is. */
export interface WorkOwner {
  readonly agent: AgentId;
  readonly session: SessionKey;
}

export interface PolicyBook {
  /** The rules for work that the owner begins outside of other work; `undefined`: those of the gateway. */
  choose(owner: WorkOwner): PolicyRules | undefined;
  /** The rules of the pack that a coordination was opened under; `undefined` where it is not in use any more. */
  find(policy: PolicyRef | undefined): PolicyRules | undefined;
}

/**
 * Returns the policy's rules for work that a session begins; `undefined` where there is no policy for it. `around`:
 * the step that the session works on, or worked on; the pack of the coordination of that step holds for it, whichever
 * rule would fit the session alone.
 */
export function chooseRules(
  policies: PolicyBook | undefined,
  around: StepOfChild | undefined,
  owner: WorkOwner,
): PolicyRules | undefined {
  return around ? policies?.find(around.state.created.policy) : policies?.choose(owner);
}

/** The dependencies that rules replace. */
export interface RuledDependencies {
  readonly gates: GatesConfig;
  readonly escalations: EscalationsConfig;
  readonly truth: TruthConfig;
  readonly privileges?: PrivilegesConfig;
  readonly budget?: TreeBudget;
  readonly settings: { readonly stepTimeoutMs: number; readonly escalateMs: number };
}

/**
 * Returns a copy of the dependencies with the values of a policy's rules in place of the gateway's, the budget among
 * them; the same object where there are no rules.
 */
export function withRules<Dependencies extends RuledDependencies>(
  dependencies: Dependencies,
  rules: PolicyRules | undefined,
): Dependencies {
  if (!rules) return dependencies;
  const { policy: _, stepTimeoutMs, escalateMs, budget, ...ruled } = rules;
  const { budget: _gateways, ...others } = dependencies;
  const settings = { ...dependencies.settings, stepTimeoutMs, escalateMs };
  // The rules replace only those values that they have themselves.
  return { ...others, ...ruled, settings, ...(budget && { budget }) } as unknown as Dependencies;
}
