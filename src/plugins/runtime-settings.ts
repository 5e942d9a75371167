/** Owns: what of the configuration the runtime goes by. */
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { GatewayPlace } from "../agents/coordination/contracts/coordination-summary.ts";
import type { RuntimeSettings } from "../agents/coordination/runtime/environment/runtime-dependencies.ts";

const DAY_MS = 24 * 3_600_000;

/**
 * Returns the settings of the coordination runtime from the plugin's configuration. `here`: which gateway this is
 * where several share the ledger; absent where this is the only one.
 */
export function createRuntimeSettings(
  { lanes, contentRetentionDays, gateway: _, ...config }: Phase1Config,
  here: GatewayPlace | undefined,
): RuntimeSettings {
  const { agingMs, perSessionMax, perAgentMax } = lanes;
  return {
    ...config,
    agingMs,
    ...(perSessionMax !== undefined && { perSessionMax }),
    ...(perAgentMax !== undefined && { perAgentMax }),
    ...(here?.gateway !== undefined && { gateway: here.gateway }),
    ...(here?.movedFrom !== undefined && { movedFrom: here.movedFrom }),
    contentMs: contentRetentionDays * DAY_MS,
    parentCharsMax: config.results.parentCharsMax,
  };
}
