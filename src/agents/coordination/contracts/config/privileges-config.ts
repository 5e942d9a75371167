/** Owns: what operators say about what children may do. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { agentIdSchema } from "../ids.ts";
import { privilegeSchema } from "../privilege.ts";

/** The operator's rules for what children may do, by the id of their agent. */
export const privilegesSchema = z.strictObject({
  default: privilegeSchema
    .optional()
    .describe(
      "What children of agents may do that have no entry of their own. Absent: what the host lets them.",
    ),
  agents: z
    .record(agentIdSchema, privilegeSchema)
    .refine((agents) => Object.keys(agents).length <= BOUNDS.policyOverridesMax)
    .default({})
    .describe("What children of an agent may do, by its id. Plans and spawns can only narrow it."),
});
/** Settings of privileges. */
export type PrivilegesConfig = z.output<typeof privilegesSchema>;
