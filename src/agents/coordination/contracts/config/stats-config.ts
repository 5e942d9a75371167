/** Owns: the targets that an operator measures coordination by. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

const share = z.number().min(0).max(1);
const durationMs = z.int().min(1).max(BOUNDS.durationMsMax);
const count = z.int().min(0).max(BOUNDS.stepsPerCoordinationMax);

/** The schema of the settings below `stats`. */
export const statsSchema = z.strictObject({
  successMin: share.default(0.95).describe("At least this share of the coordinations that ended succeeded."),
  deliveryMin: share.default(0.99).describe("At least this share of the results reached whom they are for."),
  firstResultMs: durationMs
    .default(600_000)
    .describe("95 of 100 coordinations have a first result within this time, in milliseconds."),
  duplicatesMax: count.default(0).describe("At most so many results counted twice."),
  lostUpdatesMax: count
    .default(0)
    .describe("At most so many changes of a file were overwritten before anybody ruled on them."),
  heldMax: share.default(0.2).describe("At most this share of the results was held."),
  answerMs: durationMs
    .default(3_600_000)
    .describe("95 of 100 questions that people answered were answered within this time, in milliseconds."),
});
/** The targets that `stats` compares with. */
export type StatsConfig = z.output<typeof statsSchema>;
