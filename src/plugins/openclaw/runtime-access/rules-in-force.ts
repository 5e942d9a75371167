/**
 * Owns: the operator's rules for what cannot be recorded. They hold also while no runtime is open, when they are taken as they are
 * written: the rest of the configuration may be why there is none.
 */
import {
  readSection,
  readWrittenSettings,
} from "../../../agents/coordination/contracts/config/written-settings.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { findRuntime } from "./shared-runtime.ts";

export interface RulesInForce {
  /** Refuses what cannot be recorded. */
  readonly strict: boolean;
  /** The agents whose spawns are coordinated. Absent: all. */
  readonly agents?: readonly string[] | undefined;
  readonly conflicts: {
    readonly enabled: boolean;
    /** Tools that are watched besides those of the host. */
    readonly tools: object;
  };
}

/** Returns the rules of the open runtime, and without one those that are written. */
export function readRulesInForce({ pluginConfig }: OpenClawPluginApi): RulesInForce {
  const runtime = findRuntime();
  if (runtime && !runtime.closed) return runtime.config;
  const written = readWrittenSettings(pluginConfig);
  const conflicts = readSection(written, "conflicts");
  const { strict, agents } = written;
  return {
    strict: strict === true,
    agents: Array.isArray(agents) ? agents.map(String) : undefined,
    conflicts: { enabled: conflicts["enabled"] !== false, tools: readSection(conflicts, "tools") },
  };
}
