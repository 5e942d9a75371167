/** Owns: what of the configuration the runtime goes by. */
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { Settings } from "../agents/coordination/runtime/environment/runtime-dependencies.ts";

const DAY_MS = 24 * 3_600_000;

/** `gateway`: what this gateway is called where several share the ledger; absent where this is the only one. */
export function createSettings(
  { lanes, contentRetentionDays, gateway: _, ...config }: Phase1Config,
  gateway: string | undefined,
): Settings {
  const { agingMs, perSessionMax, perAgentMax } = lanes;
  return {
    ...config,
    agingMs,
    ...(perSessionMax !== undefined && { perSessionMax }),
    ...(perAgentMax !== undefined && { perAgentMax }),
    ...(gateway !== undefined && { gateway }),
    contentMs: contentRetentionDays * DAY_MS,
    parentCharsMax: config.results.parentCharsMax,
  };
}
