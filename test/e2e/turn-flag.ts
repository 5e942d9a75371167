/** Turning the flag while the gateway runs. */
import type { Json } from "../support/gateway.ts";
import { waitFor } from "../support/wait-for.ts";
import { PHASE1, pluginConfig, type Stage } from "./stage.ts";

export interface Turned {
  readonly enabled: boolean;
  /** Beside the flag. */
  readonly phase1?: Json;
  readonly hooks?: Json;
}

/** Turns it and waits until the host has replaced the plugin, and serves what it then registers. */
export async function turnFlag(stage: Stage, { enabled, phase1, hooks }: Turned): Promise<void> {
  const reloads = (): number => stage.gateway.log().split("loading coordination from").length;
  const before = reloads();
  let edits = 0;
  await waitFor(
    async () => {
      // The host refuses a reload at times and does not try again by itself: the edit must differ to be seen.
      if (edits++ % 40 === 0) {
        stage.gateway.updateConfig((config) => {
          const { entries } = config["plugins"] as { entries: { coordination: Json } };
          const sweepMs = PHASE1.sweepMs + edits;
          entries.coordination["config"] = pluginConfig({ ...PHASE1, ...phase1, enabled, sweepMs });
          if (hooks) entries.coordination["hooks"] = hooks;
        });
      }
      // An edit made again may be loaded only during the next turn: what is served counts too.
      return reloads() >= before + 2 && (await servesMethods(stage)) === enabled;
    },
    { what: `the plugin to be reloaded with the flag ${enabled ? "on" : "off"}`, timeoutMs: 60_000 },
  );
}

async function servesMethods(stage: Stage): Promise<boolean> {
  try {
    await stage.gateway.call("coordination.questions");
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes("unknown method")) return false;
    throw error;
  }
}
