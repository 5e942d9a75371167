/**
 * Owns: the operator's rules for what cannot be recorded, and whether plugins rule on it. They hold also while no runtime is open, when
 * the operator's are taken as they are written: the rest of the configuration may be why there is none.
 */
import {
  privilegesSchema,
  type PrivilegesConfig,
} from "../../../agents/coordination/contracts/config/privileges-config.ts";
import {
  listRuledPacks,
  readSection,
  readWrittenSettings,
} from "../../../agents/coordination/contracts/config/written-settings.ts";
import { listHooks } from "../../hooks/asked-hooks.ts";
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

/**
 * Returns the rules for coordinated agents and tools by which the open runtime goes; without one, those that the
 * written configuration has, whether or not it is valid.
 */
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

/** True where a plugin has a `decide` hook, which decides about spawns and plans. */
export function hasDeciders(): boolean {
  return listHooks("decide", Date.now()).length > 0;
}

/** Bounds on children by the gateway's rules and by those of each pack; "unreadable": nobody can tell whom they bound. */
export type PrivilegeRules = readonly PrivilegesConfig[] | "unreadable";

/**
 * Returns the rules that bound the privileges of children, of the open runtime; without one, those that are written,
 * or `unreadable` where one of them is not valid.
 */
export function readPrivilegeRules({ pluginConfig }: OpenClawPluginApi): PrivilegeRules {
  const runtime = findRuntime();
  if (runtime && !runtime.closed) return runtime.privilegeRules;
  const rules: PrivilegesConfig[] = [];
  for (const pack of [undefined, ...listRuledPacks(pluginConfig)]) {
    const written = readWrittenSettings(pluginConfig, pack)["privileges"] ?? {};
    const parsed = privilegesSchema.safeParse(written);
    if (!parsed.success) return "unreadable";
    rules.push(parsed.data);
  }
  return rules;
}
