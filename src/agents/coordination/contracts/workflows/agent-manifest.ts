/**
 * Owns: what an agent's manifest must be (agent-manifest.schema.json, RFC 0003), and the agent as a host has it installed: the
 * manifest with everything that it refers to, so that a run needs no file of the pack any more.
 */
import { z } from "zod";
import { parseBounded, type Parsed } from "../validation.ts";

/** Every limit on agents of manifests and their invocations, by name. Sizes are in UTF-16 code units for text. */
export const AGENT_BOUNDS = {
  manifestCharsMax: 400_000,
  depthMax: 40,
  /** One prompt or schema of a pack, in bytes. */
  packFileBytesMax: 200_000,
  agentsPerPackMax: 200,
  agentsMax: 1_000,
  packsMax: 500,
  /** Turns of one invocation. */
  turnsMax: 16,
  toolCallsMax: 64,
  toolsMax: 128,
  toolCharsMax: 20_000,
  toolsCharsMax: 200_000,
  argsCharsMax: 50_000,
  answerCharsMax: 150_000,
  toolResultCharsMax: 50_000,
  /** Answers of model and tools in one invocation, in all. */
  charsMax: 800_000,
  tokensMax: 400_000,
  answerTokensMax: 8_000,
} as const;

/** The id of an agent in a manifest; `host:` ids are for hosts only. */
export const AGENT_ID = /^(core|vendor|community|private|local)\.[a-z][a-z0-9_-]*(\.[a-z][a-zA-Z0-9_-]*)+$/;

const SEMVER = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`;
const TEMPLATE = "[a-z0-9][a-z0-9._-]{0,127}";
const template = z.string().regex(new RegExp(`^${TEMPLATE}$`));
/** JSON Schema counts code points, not code units. */
const declareText = (min: number, max?: number) =>
  z.string().refine(
    (value) => {
      const length = countCodePoints(value);
      return length >= min && (max === undefined || length <= max);
    },
    { error: `a text of ${min}${max === undefined ? " or more" : ` to ${max}`} characters` },
  );

function countCodePoints(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}

/** prompt-ref.schema.json. */
export const promptRefSchema = z.union([
  z.string().regex(new RegExp(`^prompt:${TEMPLATE}(@${SEMVER})?$`)),
  z.strictObject({
    libraryId: template.optional(),
    templateId: template,
    version: z
      .string()
      .regex(new RegExp(`^${SEMVER}$`))
      .optional(),
    variableOverrides: z.record(z.string(), z.unknown()).optional(),
  }),
]);

/** Classes of models that a manifest may ask for (OpenWOP RFC 0003). */
export const MODEL_CLASSES = [
  "reasoning",
  "writing",
  "coding",
  "research",
  "classification",
  "general",
] as const;
/** One of the model classes. */
export type ModelClass = (typeof MODEL_CLASSES)[number];

const promptOverrides = z.strictObject({
  system: promptRefSchema.optional(),
  user: promptRefSchema.optional(),
  "few-shot": promptRefSchema.optional(),
  "schema-hint": promptRefSchema.optional(),
});

/** The schema of an agent's manifest (OpenWOP RFC 0003). */
export const agentManifestSchema = z
  .strictObject({
    agentId: declareText(3, 256).regex(AGENT_ID),
    persona: declareText(1, 200),
    modelClass: z.enum(MODEL_CLASSES),
    systemPrompt: declareText(1).optional(),
    systemPromptRef: declareText(1).optional(),
    evalSuiteRef: declareText(1).optional(),
    toolAllowlist: z.array(declareText(1)).optional(),
    requiresCapabilities: z
      .array(declareText(1))
      .refine((keys) => new Set(keys).size === keys.length, { error: "keys that differ" })
      .optional(),
    memoryShape: z
      .strictObject({
        scratchpad: z.boolean().optional(),
        conversation: z.boolean().optional(),
        longTerm: z.boolean().optional(),
      })
      .optional(),
    confidence: z.strictObject({ defaultThreshold: z.number().min(0).max(1).optional() }).optional(),
    handoff: z
      .strictObject({ taskSchemaRef: declareText(1).optional(), returnSchemaRef: declareText(1).optional() })
      .optional(),
    label: declareText(1, 100).optional(),
    description: declareText(0, 500).optional(),
    promptLibraryRef: template.optional(),
    promptOverrides: promptOverrides.optional(),
  })
  .refine(
    ({ systemPrompt, systemPromptRef }) => (systemPrompt === undefined) !== (systemPromptRef === undefined),
    {
      error: "exactly one of systemPrompt and systemPromptRef",
    },
  );
/** An agent's manifest. */
export type AgentManifest = z.infer<typeof agentManifestSchema>;

const record = z.record(z.string(), z.unknown());

/** An agent as it is kept for the runs that it works in; its hash is over this, as JSON. */
export const installedAgentSchema = z.strictObject({
  manifest: agentManifestSchema,
  /** The text of `systemPrompt`, or of the file that `systemPromptRef` names. */
  systemPrompt: z.string(),
  taskSchema: record.optional(),
  returnSchema: record.optional(),
  packName: z.string().min(1),
  packVersion: z.string().min(1),
});
/** A manifest with its prompt, schemas and pack, as the host installed it. */
export type InstalledAgent = z.infer<typeof installedAgentSchema>;

const BOUNDS = { charsMax: AGENT_BOUNDS.manifestCharsMax, depthMax: AGENT_BOUNDS.depthMax };

/** Checks an untrusted value as an agent's manifest, and returns that or the problems found. */
export function readAgentManifest(value: unknown): Parsed<AgentManifest> {
  return parseBounded(agentManifestSchema, value, BOUNDS);
}

const STORED = { charsMax: 4 * AGENT_BOUNDS.manifestCharsMax, depthMax: 2 * AGENT_BOUNDS.depthMax };

/** Checks a stored value as an installed agent, and returns that or the problems found. */
export function readInstalledAgent(value: unknown): Parsed<InstalledAgent> {
  return parseBounded(installedAgentSchema, value, STORED);
}

/** A `WorkflowNode.agent` or the root of a run, as far as it names an agent of a manifest (agent-ref.schema.json). */
export interface AgentPin {
  readonly agentId: string;
  readonly version?: string;
  readonly channel?: string;
}
