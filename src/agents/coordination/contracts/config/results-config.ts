/** Owns: what operators say about what children say. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/** The schema of the settings below `results`. */
export const resultsSchema = z.strictObject({
  parentCharsMax: z
    .int()
    .min(BOUNDS.parentCharsMin)
    .max(BOUNDS.parentCharsMax)
    .default(16_000)
    .describe(
      "How many characters of a child's result its parent is shown: of more, its beginning and its end, with how to read the rest.",
    ),
});

/** The schema of the settings below `chat`. */
export const chatSchema = z.strictObject({
  childText: z
    .enum(["block", "allow"])
    .default("block")
    .describe(
      "Whether what a child's own session says may go to a chat. `block`: only its parent, or a person, says it there.",
    ),
});
