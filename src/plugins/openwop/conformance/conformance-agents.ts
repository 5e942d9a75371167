/** Owns: the agents that a host has installed where the conformance suite is to look at it. */
import type { InstalledAgent } from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";

export const CONFORMANCE_AGENT = "core.conformance.agent";
/** Its results are of a schema. */
export const STRICT_AGENT = "core.conformance.strict-handoff";

const PACK = { packName: "core.conformance", packVersion: "1.0.0" };

export const CONFORMANCE_AGENTS: readonly InstalledAgent[] = [
  {
    ...PACK,
    manifest: {
      agentId: CONFORMANCE_AGENT,
      persona: "Conformance Agent",
      modelClass: "general",
      systemPrompt: "Do the task that you are given, and answer in a few words.",
      toolAllowlist: [],
    },
    systemPrompt: "Do the task that you are given, and answer in a few words.",
  },
  {
    ...PACK,
    manifest: {
      agentId: STRICT_AGENT,
      persona: "Strict Conformance Agent",
      modelClass: "general",
      systemPrompt: "Answer the question that you are given.",
      toolAllowlist: [],
      handoff: { returnSchemaRef: "schemas/strict.return.schema.json" },
    },
    systemPrompt: "Answer the question that you are given.",
    returnSchema: {
      type: "object",
      properties: { answer: { type: "string" } },
      required: ["answer"],
      additionalProperties: false,
    },
  },
];
