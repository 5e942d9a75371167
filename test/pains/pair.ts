/**
 * Owns: two gateways that the same stories are played in: the plain host, with the plugin installed and its flag off, and the
 * host with the flag on. Does not own: the stories.
 */
import { createPluginConfig, PHASE1, type Stage } from "../e2e/stage.ts";
import type { Json } from "../support/gateway.ts";
import type { Rule } from "../support/scripted-model.ts";
import { openWritesStage } from "../e2e/writes-stage.ts";

export interface Pair {
  readonly plain: Stage;
  readonly coordinated: Stage;
  close(): Promise<void>;
}

export interface PairOptions {
  /** Asked once for each gateway, because a rule may remember what it answered. */
  readonly createRules?: () => readonly Rule[];
  /** Of both gateways, in place of what the stage sets. */
  readonly configPatch?: Json;
}

export async function openPair({ createRules = () => [], configPatch }: PairOptions = {}): Promise<Pair> {
  const openWith = (phase1: Record<string, unknown>): Promise<Stage> => {
    const pluginConfig = createPluginConfig(phase1);
    return openWritesStage({}, configPatch ? { pluginConfig, configPatch } : { pluginConfig }, createRules());
  };
  const [plain, coordinated] = await Promise.all([openWith({ enabled: false }), openWith(PHASE1)]);
  return {
    plain,
    coordinated,
    close: async () => {
      await coordinated.close();
      await plain.close();
    },
  };
}
