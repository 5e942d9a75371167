/** Owns: where the log of a forked run comes from, and whose ids its events have (docs/adr/0013). */
import { z } from "zod";
import { coordinationIdSchema, createEventId, type CoordinationId, type EventId } from "../ids.ts";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

/** The schema of a fork's mode. */
export const forkModeSchema = z.enum(["replay", "branch"]);
/** How a run was forked: to replay its source, or to branch off. */
export type ForkMode = z.infer<typeof forkModeSchema>;

const sequence = z.int().min(0);

/** The schema of a fork's origin. */
export const runOriginSchema = z.strictObject({
  mode: forkModeSchema,
  sourceRunId: coordinationIdSchema,
  /** The first event that is not simply the source's. */
  fromSeq: sequence,
  /** Events below it come from the source's log: of a branch `fromSeq`, of a replay the source's length when it was forked. */
  until: sequence,
  /** The run that stands in recorded values: for a replay its source, whose log is equal; for a branch the run itself. */
  identity: coordinationIdSchema,
  /** Whose ids the events have, by rising `before`: those below it. From the last one on, they are the run's own. */
  ids: z
    .array(z.strictObject({ before: sequence, runId: coordinationIdSchema }))
    .max(WORKFLOW_BOUNDS.forksMax),
  /** Who asked for it: the owner is its source's. */
  by: z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax).optional(),
  /** Options that a branch's caller put in place of the source's. */
  configurable: z.record(z.string(), z.unknown()).optional(),
});

/** Where a forked run comes from (OpenWOP, replay and fork). */
export type RunOrigin = z.infer<typeof runOriginSchema>;

/**
 * Returns the id of the event at a place of a workflow run's log; for events that were copied from another run, the id
 * that they have there.
 */
export function findEventId(runId: CoordinationId, origin: RunOrigin | undefined, at: number): EventId {
  const owner = origin?.ids.find(({ before }) => at < before)?.runId ?? runId;
  return createEventId(owner, at);
}
