/** Owns: the settings of the metrics for Prometheus. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";

/** The schema of the settings below `metrics`. */
export const metricsSchema = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      "Let Prometheus read metrics at /coordination/metrics of the gateway, with the gateway's token.",
    ),
});
