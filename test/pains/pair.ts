/**
 * Owns: two gateways that the same stories are played in: the plain host, with the plugin installed and its flag off, and the
 * host with the flag on. Does not own: the stories.
 */
import { createPluginConfig, PHASE1, type Stage } from "../e2e/stage.ts";
import { openWritesStage } from "../e2e/writes-stage.ts";

export interface Pair {
  readonly plain: Stage;
  readonly coordinated: Stage;
  close(): Promise<void>;
}

export async function openPair(): Promise<Pair> {
  const plain = await openWritesStage({}, { pluginConfig: createPluginConfig({ enabled: false }) });
  const coordinated = await openWritesStage({}, { pluginConfig: createPluginConfig(PHASE1) });
  return {
    plain,
    coordinated,
    close: async () => {
      await coordinated.close();
      await plain.close();
    },
  };
}
