/** Owns: the settings of the operator's page. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/** The schema of the settings below `page`. */
export const pageSchema = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe("Serve the operator's page below /coordination/page/ of the gateway, and show it as a tab."),
  hosts: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z0-9.-]+(?::\d{1,5})?$/u)
        .max(BOUNDS.pageHostCharsMax),
    )
    .max(BOUNDS.pageHostsMax)
    .default([])
    .describe(
      "Names under which browsers reach the page besides localhost, such as gateway.example: a request under another name is refused.",
    ),
});
