/** Owns: what models read of the limits of plans and steps: time, budget, and what a child may do. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";

export const declareDuration = (description: string) => ({
  type: "integer",
  minimum: 1,
  maximum: BOUNDS.durationMsMax,
  description,
});

export const BUDGET = {
  type: "object",
  description: "What may be used before the work stops.",
  properties: {
    spawns: { type: "integer", minimum: 1 },
    tokens: { type: "integer", minimum: 1 },
    costUsd: { type: "number", exclusiveMinimum: 0 },
    wallMs: declareDuration("Wall time."),
  },
};

const TOOL_ENTRIES = {
  type: "array",
  items: { type: "string", maxLength: BOUNDS.nameCharsMax },
  maxItems: BOUNDS.privilegeToolsMax,
};

export const TOOLS = {
  type: "object",
  description:
    'Which tools the agent may call, as do all that it spawns. Names, "group:fs", or "sessions_*". Left out: all that it has.',
  properties: { allow: TOOL_ENTRIES, deny: TOOL_ENTRIES },
};

export const WRITE = {
  type: "array",
  items: { type: "string", maxLength: BOUNDS.resourceCharsMax },
  maxItems: BOUNDS.resourcesPerStepMax,
  description:
    'Which files the agent may change, as globs from its folder such as "docs/**"; an empty list: none. Left out: all.',
};
