/**
 * Measures what the packed plugin adds to the start of a real gateway, with the flag on and off, beside what two equal gateways without
 * it differ by. A fresh home each time, one gateway at a time, all kinds in turn in every round.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installInto, packProject } from "../../scripts/pack.ts";
import { startGateway } from "../support/gateway.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { alternate, findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";

type Variant = "on" | "off" | "none";

interface GatewaySetup {
  readonly modelBaseUrl: string;
  readonly pluginDir: string;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "coordination-bench-"));
  const model = await startScriptedModel();
  try {
    const pluginDir = await installInto(join(folder, "plugin"), await packProject(folder));
    const starting = { modelBaseUrl: model.baseUrl, pluginDir };
    const variants = ["none", "on", "off", "none"] as const;
    const sides = variants.map((variant) => () => measureStartMs(starting, variant));
    // The first round fills the caches of compiled code.
    await alternate(quick ? 0 : 1, sides);
    const [none = [], on = [], off = [], noneAgain = []] = await alternate(quick ? 1 : 5, sides);
    const noise = divideEach(noneAgain, none);
    return [
      createRow("flag on", { times: on, none, noise }),
      createRow("flag off", { times: off, none, noise }),
    ];
  } finally {
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureStartMs({ modelBaseUrl, pluginDir }: GatewaySetup, variant: Variant): Promise<number> {
  const gateway = await startGateway({
    modelBaseUrl,
    plugin: variant === "none" ? { kind: "none" } : { kind: "path", dir: pluginDir },
    ...(variant !== "none" && {
      pluginConfig: { coordination: { phase1: { enabled: variant === "on" } } },
    }),
  });
  const { readyMs } = gateway;
  // The host writes its cache of compiled code when it ends by itself.
  await gateway.stop();
  await gateway.dispose();
  return readyMs;
}

interface StartTimes {
  readonly times: readonly number[];
  readonly none: readonly number[];
  /** Ratios of two equal gateways without the plugin. */
  readonly noise: readonly number[];
}

function createRow(how: string, { times, none, noise }: StartTimes): BenchRow {
  const ratios = divideEach(times, none);
  const { lowest: noiseLowest, highest: noiseHighest } = spreadOf(noise);
  return {
    name: `start of a gateway, ${how} / without the plugin`,
    compares: `from starting the process until it says ready, ${times.length} fresh homes each; the target is what two equal gateways without it differ by`,
    value: round(findMedian(ratios)),
    unit: "ratio",
    target: { is: "at most", value: noiseHighest },
    detail: {
      ...spreadOf(ratios),
      ms: Math.round(findMedian(times)),
      withoutMs: Math.round(findMedian(none)),
      noiseLowest,
      noiseHighest,
    },
  };
}

function divideEach(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, index) => value / (below[index] ?? Number.NaN));
}
