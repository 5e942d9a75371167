/** Owns: the settings of the export of spans. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/** The schema of the settings below `telemetry`. */
export const telemetrySchema = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      "Export spans of coordinations and workflow runs to a collector of OpenTelemetry, by OTLP over HTTP.",
    ),
  endpoint: z
    .url({ protocol: /^https?$/u })
    .max(BOUNDS.resourceCharsMax)
    .optional()
    .describe(
      "The collector's address. Absent: what OTEL_EXPORTER_OTLP_ENDPOINT says, or port 4318 of this machine.",
    ),
  headers: z
    .record(z.string().min(1).max(BOUNDS.nameCharsMax), z.string().max(BOUNDS.resourceCharsMax))
    .refine((headers) => Object.keys(headers).length <= BOUNDS.telemetryHeadersMax)
    .default({})
    .describe("Headers of each request, such as a key of the collector; `${VARIABLE}` works."),
});
/** Settings of the export of spans. */
export type TelemetryConfig = z.output<typeof telemetrySchema>;
