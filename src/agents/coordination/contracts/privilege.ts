/**
 * Owns: what a step may do at most: which tools its child may call, and which files it may change. Does not own: how several of
 * them hold a session together (`privileges/`).
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { coordinationIdSchema, stepIdSchema } from "./ids.ts";

/** The groups of tools that the host expands. `group:plugins` is none of them: what is in it is not known call by call. */
export const TOOL_GROUPS = [
  "group:runtime",
  "group:fs",
  "group:sessions",
  "group:memory",
  "group:web",
  "group:ui",
  "group:automation",
  "group:messaging",
  "group:nodes",
  "group:agents",
  "group:media",
  "group:openclaw",
] as const;

/** A name, the beginning of one before `*`, or `*` alone; the host does not tell upper from lower case. */
const toolNameSchema = z
  .string()
  .max(BOUNDS.nameCharsMax)
  .trim()
  .toLowerCase()
  .regex(/^(?:[\w.-]+\*?|\*)$/u);
const toolEntriesSchema = z
  .array(z.union([z.enum(TOOL_GROUPS), toolNameSchema]))
  .max(BOUNDS.privilegeToolsMax);

/** A path in which `*` and `?` stand for parts of a name and `**` for folders. It says what is in, so it cannot begin with `!`. */
const writeGlobSchema = z
  .string()
  .min(1)
  .max(BOUNDS.resourceCharsMax)
  .regex(/^[^!\p{Cc}][^\p{Cc}]*$/u);
const writeGlobsSchema = z
  .array(writeGlobSchema)
  .max(BOUNDS.resourcesPerStepMax)
  .refine((globs) => globs.reduce((chars, glob) => chars + glob.length, 0) <= BOUNDS.policyCharsMax);

/** The schema of a privilege: it can only narrow, and says nothing where a field is absent. */
export const privilegeSchema = z.strictObject({
  tools: z
    .strictObject({
      allow: toolEntriesSchema
        .optional()
        .describe(
          "Only these tools may be called: names, groups of the host, or the beginning of a name and `*`.",
        ),
      deny: toolEntriesSchema.optional().describe("These tools may not be called, whatever `allow` says."),
    })
    .optional()
    .describe("Which tools may be called. Absent: all that the host offers."),
  write: writeGlobsSchema
    .optional()
    .describe("Files that may be changed, as globs; an empty list: none. Absent: all."),
});
/** The tools that a step may call at most, and the files that it may change. */
export type Privilege = z.infer<typeof privilegeSchema>;

/** Who narrows: the operator by the agent's name, a plan for its step, or the session that spawned. */
export const privilegeSourceSchema = z.enum(["policy", "step", "spawn"]);
/** Who said what a step may do. */
export type PrivilegeSource = z.infer<typeof privilegeSourceSchema>;

/** Bounds on a step from its admission on, and on everything that comes from it. */
export const admittedPrivilegeSchema = z.object({
  /** Bounds set by its plan, or by the session that spawned it. */
  asked: privilegeSchema.optional(),
  /** Bounds that the operator's configuration set for its agent then. */
  policy: privilegeSchema.optional(),
});
/** A step's own part of what holds it; the rest is that of the steps above it. */
export type AdmittedPrivilege = z.infer<typeof admittedPrivilegeSchema>;

/** The rule that a refused call broke. */
export const privilegeRuleSchema = z.enum([
  "tools.allow",
  "tools.deny",
  /** It would change a file that no glob names. */
  "write",
  /** The files that it would change cannot be told. */
  "write.unknown",
  /** The file has other names, which may lie elsewhere. */
  "write.linked",
]);
/** Which rule refused a call. */
export type PrivilegeRule = z.infer<typeof privilegeRuleSchema>;

/** Where a rule comes from: the step itself, or one above it. */
export const privilegeOriginSchema = z.object({
  by: privilegeSourceSchema,
  stepId: stepIdSchema,
  /** Where it is a step of another coordination. */
  coordinationId: coordinationIdSchema.optional(),
});
/** The step that a rule was set for, and who set it. */
export type PrivilegeOrigin = z.infer<typeof privilegeOriginSchema>;
