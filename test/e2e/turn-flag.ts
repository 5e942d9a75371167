/** Turning the flag while the gateway runs. */
import type { Json } from "../support/gateway.ts";
import { waitForReload } from "../support/gateway-reload.ts";
import { waitFor } from "../support/wait-for.ts";
import { waitUntilServed } from "./gateway-pool.ts";
import { PHASE1, createPluginConfig, type Stage } from "./stage.ts";

/** The position of the flag, and the configuration that changes with it. */
export interface FlagSetting {
  readonly enabled: boolean;
  /** Beside the flag. */
  readonly phase1?: Json;
  readonly hooks?: Json;
}

/** Makes every edit differ from the one before: the host does nothing about one that changes nothing. */
let edits = 0;

/**
 * Turns it and waits until the host says that it has applied the edit, and serves what the plugin then registers.
 * The host refuses a reload while the plugin is at work, and does not try again by itself: the edit is made again,
 * after a pause, since what the host does for one edit may be the work for which it refuses the next.
 */
export async function turnFlag(stage: Stage, turned: FlagSetting): Promise<void> {
  const { enabled } = turned;
  const logBefore = stage.gateway.log();
  const tryOnce = async (): Promise<boolean> => {
    const { length } = stage.gateway.log();
    editFlag(stage, turned);
    const { words, isApplied } = await waitForReload(stage.gateway.log, length);
    if (!isApplied) throw new Error(words);
    return true;
  };
  const limits = {
    what: `a reload with the flag ${enabled ? "on" : "off"}`,
    timeoutMs: 90_000,
    everyMs: 4_000,
  };
  await waitFor(tryOnce, limits).catch((cause: unknown) => {
    const message = `${String(cause)}; before the first edit the log said of runs\n${listRunLines(logBefore)}`;
    throw new Error(message, { cause });
  });
  await waitUntilServed(stage.gateway, enabled);
}

/** The lines that say which agents' runs began and ended: the host refuses to reload a plugin that one of them uses. */
function listRunLines(log: string): string {
  const isOfRun = (line: string): boolean =>
    /run (?:registered|cleared)|embedded run (?:start|done)/u.test(line);
  return log.split("\n").filter(isOfRun).slice(-60).join("\n");
}

/** Does as docs/operations.md says where the host takes no reload: starts the gateway again. */
export async function turnFlagOrRestart(stage: Stage, turned: FlagSetting): Promise<void> {
  try {
    await turnFlag(stage, turned);
  } catch (error) {
    console.error(error);
    await stage.gateway.stop();
    await stage.restart();
    await turnFlag(stage, turned);
  }
}

/** In the configuration; what the host makes of it is another matter. */
export function editFlag(stage: Stage, { enabled, phase1, hooks }: FlagSetting): void {
  stage.gateway.updateConfig((config) => {
    const { entries } = config["plugins"] as { entries: { coordination: Json } };
    const sweepMs = PHASE1.sweepMs + ++edits;
    entries.coordination["config"] = createPluginConfig({ ...PHASE1, ...phase1, enabled, sweepMs });
    if (hooks) entries.coordination["hooks"] = hooks;
  });
}
