/**
 * Owns: two gateways that the same stories are played in: the plain host, with the plugin installed and its flag off, and the
 * host with the flag on. Does not own: the stories.
 *
 * With `PAINS_WITHOUT_PLUGIN=1` the flag is off in both: then each story has to fail, since nothing ends its pain.
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
  /** Settings of the gateway with the flag on, beside `enabled`. */
  readonly phase1?: Json;
  /** Fixtures that both gateways load beside `writing-tools`. */
  readonly plugins?: readonly string[];
  /** Merged into the configuration of both gateways. */
  readonly configPatch?: Json;
}

export async function openPair({
  createRules = () => [],
  phase1 = {},
  plugins = [],
  configPatch = {},
}: PairOptions = {}): Promise<Pair> {
  const openWith = (settings: Json): Promise<Stage> =>
    openWritesStage({}, { pluginConfig: createPluginConfig(settings), plugins, configPatch }, createRules());
  const isWithout = process.env["PAINS_WITHOUT_PLUGIN"] === "1";
  const [plain, coordinated] = await Promise.all([
    openWith({ enabled: false }),
    openWith({ ...PHASE1, ...phase1, ...(isWithout && { enabled: false }) }),
  ]);
  return {
    plain,
    coordinated,
    close: async () => {
      await Promise.all([coordinated.close(), plain.close()]);
    },
  };
}
