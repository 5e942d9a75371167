/** Owns: the effects of `core.conformance.side-effect`: things outside of any run that were done, which a test can count. */
import type {
  EffectOutcome,
  NodeEffect,
} from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import type { SideEffect } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { WorkflowRun } from "../../../agents/coordination/workflow/state/workflow-state.ts";

export interface SideEffects {
  /** Doing one again, after a crash, is the same one. */
  cause(run: WorkflowRun, effect: NodeEffect): EffectOutcome;
  /** Lists the side effects of a tenant, the oldest first. */
  caused(tenant: string): readonly SideEffect[];
  reset(tenant: string): void;
}

/** Side effects of one tenant; the oldest are forgotten. */
const EFFECTS_MAX = 1_000;

/**
 * Creates the record of the side effects that workflows of the conformance suite caused, for each tenant; the same
 * effect of a run is recorded once, and the oldest are forgotten.
 */
export function createSideEffects(): SideEffects {
  const byTenant = new Map<string, Map<string, SideEffect>>();
  return {
    cause: ({ runId, started: { owner } }, { id, nodeId }) => {
      const effectId = `${runId}:${id}`;
      const tenantEffects = byTenant.get(owner.tenant) ?? new Map<string, SideEffect>();
      byTenant.set(owner.tenant, tenantEffects.set(effectId, { effectId, runId, nodeId }));
      const [oldest] = tenantEffects.keys();
      if (tenantEffects.size > EFFECTS_MAX && oldest !== undefined) tenantEffects.delete(oldest);
      return { kind: "side_effect_caused", effectId };
    },
    caused: (tenant) => [...(byTenant.get(tenant)?.values() ?? [])],
    reset: (tenant) => void byTenant.delete(tenant),
  };
}
