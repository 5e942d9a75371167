/**
 * Owns: the words of arbitration (QM2 2.4, design section 5). Does not own: the rules (`arbitration/`), or what happened
 * (`facts.ts`).
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { prioritySchema } from "./envelope.ts";
import { shortName } from "./fact-fields.ts";
import { coordinationIdSchema, epochMsSchema, stepIdSchema } from "./ids.ts";
import { conflictStrategySchema } from "./plan.ts";

/**
 * `file:<real path>` or `file:@<machine>:<real path>`, `session:<key>`, `queue:<name>`, or a name of a plugin author. A file
 * covers what is below it.
 */
export const resourceSchema = z.string().min(1).max(BOUNDS.resourceCharsMax);

/** A2: the position of a claim among all claims of the ledger, from 1 without a gap. A later claim has a greater one. */
export const fencingTokenSchema = z.int().min(1);

/** The version of a resource: `sha256:<hex>`, `absent`, `folder`, or `stat:<size and times>` for a file too large to read. */
export const changeVersionSchema = z.string().min(1).max(BOUNDS.versionCharsMax);

/** One of those who want a resource, as the ruling sees it. */
export const contestantSchema = z.object({
  stepId: stepIdSchema,
  priority: prioritySchema,
  /**
   * When it came, among the claims: its fencing token, or the one that it would get. 0 for who declared the resource and
   * has not claimed it.
   */
  claimedSequence: z.int().min(0),
  /** Present for a step of another coordination. */
  coordinationId: coordinationIdSchema.optional(),
  /** Its plan names the resource as the step's own. */
  declared: z.boolean().optional(),
  /** Until when its claim counts; absent for who holds none. */
  expiresAtMs: epochMsSchema.optional(),
  /** It holds no claim any more: it changed the resource after the requester last saw it. */
  changedAtMs: epochMsSchema.optional(),
});
/**
 * One that wants a resource: a step, the owner or somebody outside, with all that rules look at (QM2, conflict
 * arbitration).
 */
export type Contestant = z.infer<typeof contestantSchema>;

/** The strategy for a resource, and what chose it. */
export const appliedStrategySchema = z.object({
  strategy: conflictStrategySchema,
  from: z.enum(["high_risk", "operator", "plan", "default"]),
});
/** The strategy that a conflict was ruled by, and where it came from. */
export type AppliedStrategy = z.infer<typeof appliedStrategySchema>;

/** Why a three-way merge could not be made. */
export const mergeObstacleSchema = z.enum([
  "overlapping_changes",
  "not_text",
  "too_large",
  "no_base",
  "not_a_file",
  "being_written",
  "does_not_apply",
  "owned_by_tool",
]);
/** Why two changes could not be merged. */
export type MergeObstacle = z.infer<typeof mergeObstacleSchema>;

/** By what a text was merged, where that was not by line: keys of maps, sections, or the set of its imports. */
export const mergeWaySchema = z.enum(["key", "section", "imports"]);
/** By what a text was merged, where that was not by line. */
export type MergeWay = z.infer<typeof mergeWaySchema>;

/** The result of a three-way merge: versions only, no content. */
export const mergeEvidenceSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("clean"),
    base: changeVersionSchema,
    current: changeVersionSchema,
    merged: changeVersionSchema,
    /** Absent for a merge by line. */
    way: mergeWaySchema.optional(),
  }),
  z.object({ kind: z.literal("obstacle"), obstacle: mergeObstacleSchema }),
]);
/** The texts that a merge found on both sides, as hashes and sizes. */
export type MergeEvidence = z.infer<typeof mergeEvidenceSchema>;

/** The plugins' ruling on a contested write, before the strategy: which plugin, and for whom. Never their words. */
export const pluginRulingSchema = z.object({
  /** `plugin:ID`; absent where they were late, and it cannot be told which of them. */
  plugin: z
    .string()
    .min(1)
    .max(BOUNDS.nameCharsMax)
    .regex(/^plugin:[a-z0-9][a-z0-9._@/-]*$/)
    .optional(),
  award: z.enum(["requester", "holder"]),
  /** It gave no ruling, so that the requester does not get the resource. */
  failed: z.literal(true).optional(),
});
/** A plugin's ruling on a contest, with the plugin's id. */
export type PluginRuling = z.infer<typeof pluginRulingSchema>;

/** The payload schemas of the facts about claims, and about what was written. */
export const CLAIM_FACTS = {
  /** A step may change a resource, and whoever else wants to is ruled on, until the lease ends. */
  "claim.acquired": z.object({
    stepId: stepIdSchema,
    resource: resourceSchema,
    /** A2: the position among all claims of the ledger. */
    token: fencingTokenSchema,
    priority: prioritySchema,
    expiresAtMs: epochMsSchema,
    /** The version of the resource when it was claimed. */
    base: changeVersionSchema.optional(),
  }),
  "claim.renewed": z.object({ stepId: stepIdSchema, token: fencingTokenSchema, expiresAtMs: epochMsSchema }),
  "claim.released": z.object({
    stepId: stepIdSchema,
    token: fencingTokenSchema,
    because: z.enum([
      "step_ended",
      "turn_ended",
      "expired",
      "preempted",
      /** A step that this one spawned, or runs for it, claimed the resource. */
      "delegated",
      /** The call that acquired it changed nothing. */
      "unused",
      "operator",
      "coordination_ended",
    ]),
  }),
  /** A write left the resource in another version. */
  "resource.changed": z.object({
    stepId: stepIdSchema,
    resource: resourceSchema,
    version: changeVersionSchema,
    tool: shortName,
    /** The claim under which it was written (A2); absent where it was found after a command that had claimed nothing. */
    token: fencingTokenSchema.optional(),
  }),
  /** A call may change something, and what it changes could not be told. */
  "write.undetermined": z.object({
    stepId: stepIdSchema,
    tool: shortName,
    because: z.enum(["undeclared", "unreadable", "too_many", "extractor_failed"]),
    /** Who could not tell, where it was an extractor of a plugin. */
    extractor: shortName.optional(),
    action: z.enum(["allowed", "asked", "denied"]),
  }),
} as const;

/** The payload schemas of the facts about conflicts. */
export const CONFLICT_FACTS = {
  "conflict.detected": z.object({
    conflictId: z.string().min(1).max(BOUNDS.idCharsMax),
    resource: resourceSchema,
    claims: z.array(contestantSchema).min(2).max(BOUNDS.claimsMax),
    /** Everything else that the ruling follows from; absent in ledgers of 0.1.0. */
    contest: z
      .object({
        requester: stepIdSchema,
        cause: z.enum(["overlap", "stale_base", "overwritten"]),
        ...appliedStrategySchema.shape,
        atMs: epochMsSchema,
        /** Versions: the one that the requester's change is based on, and the present one. */
        base: changeVersionSchema.optional(),
        current: changeVersionSchema.optional(),
        merge: mergeEvidenceSchema.optional(),
        /** The plugins' ruling on it. */
        hook: pluginRulingSchema.optional(),
        /** Until when people may answer. */
        reviewByMs: epochMsSchema.optional(),
      })
      .optional(),
  }),
  "conflict.resolved": z.object({
    conflictId: z.string().min(1).max(BOUNDS.idCharsMax),
    strategy: conflictStrategySchema,
    winner: stepIdSchema.optional(),
    /** Where the winner is a step of another coordination. */
    winnerCoordinationId: coordinationIdSchema.optional(),
    losers: z.array(stepIdSchema).max(BOUNDS.claimsMax),
    because: shortName,
    /** Which part of the evaluation ruled (QM2 2.4); absent in ledgers of 0.1.0. */
    rule: z.enum(["ownership", "lease", "hook", "strategy", "people"]).optional(),
  }),
} as const;
