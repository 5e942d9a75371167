/** Turning the flag while the gateway runs. */
import type { Json } from "../support/gateway.ts";
import { waitForReload } from "../support/gateway-reload.ts";
import { waitUntilServed } from "./gateway-pool.ts";
import { PHASE1, createPluginConfig, type Stage } from "./stage.ts";

export interface Turned {
  readonly enabled: boolean;
  /** Beside the flag. */
  readonly phase1?: Json;
  readonly hooks?: Json;
}

/** Makes every edit differ from the one before: the host does nothing about one that changes nothing. */
let edits = 0;

/**
 * Turns it and waits until the host says that it has applied the edit, and serves what the plugin then registers.
 * The host refuses a reload while the plugin is at work, and does not try again by itself: the edit is made again
 * then, and not before, since one made during a reload supersedes it.
 */
export async function turnFlag(stage: Stage, turned: Turned): Promise<void> {
  const { enabled } = turned;
  const flag = `the flag ${enabled ? "on" : "off"}`;
  const deadline = performance.now() + 90_000;
  for (;;) {
    const before = stage.gateway.log();
    editFlag(stage, turned);
    const { words, isApplied } = await waitForReload(stage.gateway.log, before.length);
    if (isApplied) break;
    if (performance.now() > deadline)
      throw new Error(`no reload with ${flag}: ${words}; the log ends with\n${before.slice(-8_000)}`);
  }
  await waitUntilServed(stage.gateway, enabled);
}

/** In the configuration; what the host makes of it is another matter. */
export function editFlag(stage: Stage, { enabled, phase1, hooks }: Turned): void {
  stage.gateway.updateConfig((config) => {
    const { entries } = config["plugins"] as { entries: { coordination: Json } };
    const sweepMs = PHASE1.sweepMs + ++edits;
    entries.coordination["config"] = createPluginConfig({ ...PHASE1, ...phase1, enabled, sweepMs });
    if (hooks) entries.coordination["hooks"] = hooks;
  });
}
