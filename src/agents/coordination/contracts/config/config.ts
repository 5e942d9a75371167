/**
 * Owns: the plugin's configuration as a whole and how it is read, and the settings of lanes, agent programs, conflicts and
 * budgets. The other files of this folder have the settings of everything else.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { escalationsSchema, gatesSchema } from "./gates-config.ts";
import { gatewaySchema, ledgerSchema, type LedgerConfig } from "./ledger-config.ts";
import { chatSchema, resultsSchema } from "./results-config.ts";
import { agentIdSchema } from "../ids.ts";
import { metricsSchema } from "./metrics-config.ts";
import { openWopSchema } from "./openwop-config.ts";
import { pageSchema } from "./page-config.ts";
import { policiesOnlySchema, policiesSchema } from "./policies-config.ts";
import { privilegesSchema } from "./privileges-config.ts";
import { arbiterPolicySchema, conflictStrategySchema } from "../plan.ts";
import { programFields } from "../program-fields.ts";
import { statsSchema } from "./stats-config.ts";
import { telemetrySchema } from "./telemetry-config.ts";
import { parseConfig } from "./parse-config.ts";
import { listRuledPacks, readWrittenSettings } from "./written-settings.ts";

const declareDurationMs = (min: number) => z.int().min(min).max(BOUNDS.durationMsMax);

const declareCount = (max: number) => z.int().min(1).max(max);
const declareConcurrency = (otherwise: number, purpose: string) =>
  declareCount(BOUNDS.laneConcurrencyMax)
    .default(otherwise)
    .describe(`How many steps of plans run at once on the ${purpose} lane.`);

/** How providers that refuse calls are treated. */
const providersSchema = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      "Hold back steps and model calls of subagents while their provider refuses calls because of its rate or its load.",
    ),
  retryAfterMsMax: z
    .int()
    .min(1_000)
    .max(BOUNDS.retryAfterMsMax)
    .default(BOUNDS.retryAfterMsMax)
    .describe("A longer `retry-after` of a provider is cut to this, in milliseconds."),
  callDelayMs: z
    .int()
    .min(1)
    .max(BOUNDS.waitMsMax)
    .default(BOUNDS.waitMsMax)
    .describe("How long one model call of a subagent may be held back, in milliseconds."),
});

const lanesSchema = z.strictObject({
  control: declareConcurrency(4, "control"),
  data: declareConcurrency(8, "data"),
  escalation: declareConcurrency(1, "escalation"),
  queueMax: declareCount(BOUNDS.laneQueueMax)
    .default(256)
    .describe("How many steps may wait for a place on each lane; the rest waits in the ledger."),
  perSessionMax: declareCount(BOUNDS.laneConcurrencyMax)
    .optional()
    .describe("How many steps of plans of one owner session run at once."),
  perAgentMax: declareCount(BOUNDS.laneConcurrencyMax)
    .optional()
    .describe("How many steps of plans run at once on one agent."),
  agingMs: declareDurationMs(1_000)
    .default(60_000)
    .describe("Waiting this long counts as much as one level of priority, in milliseconds."),
  spawnsMax: declareCount(BOUNDS.laneConcurrencyMax)
    .default(256)
    .describe("How many spawns of models may be open at once; more are delayed, then refused."),
  spawnsPerSessionMax: declareCount(BOUNDS.laneConcurrencyMax)
    .optional()
    .describe("How many spawns of one session may be open at once."),
  providers: providersSchema.prefault({}),
});
/** Settings of the lanes: how many spawns run at once, and how many wait. */
export type LanesConfig = z.output<typeof lanesSchema>;

/** A program that speaks the Agent Client Protocol over stdio. Only an operator can name one. */
const acpAgentSchema = z.strictObject({
  ...programFields,
  cwd: z
    .string()
    .min(1)
    .max(BOUNDS.resourceCharsMax)
    .optional()
    .describe("The folder that the agent works in. Absent: the workspace of the host's agent of this name."),
  permissions: z
    .enum(["deny", "allow"])
    .default("deny")
    .describe("What the agent is answered when it asks for permission."),
});
/** Settings of one ACP agent: its program, arguments and bounds. */
export type AcpAgentConfig = z.output<typeof acpAgentSchema>;

const declareResourceNames = (purpose: string) =>
  z
    .array(z.string().min(1).max(BOUNDS.resourceCharsMax))
    .max(BOUNDS.policyOverridesMax)
    .optional()
    .describe(purpose);

/** Says what a call of a tool changes, read off its parameters. A parameter is named by its path, such as `output.path`. */
const watchedToolSchema = z.strictObject({
  paths: declareResourceNames("Parameters that hold a path, or a list of paths."),
  sessions: declareResourceNames("Parameters that hold a session key."),
  queues: declareResourceNames("Parameters that hold the name of a queue."),
  cwd: z
    .string()
    .min(1)
    .max(BOUNDS.resourceCharsMax)
    .optional()
    .describe(
      "The parameter that holds the folder which relative paths are in. Absent: the agent's workspace.",
    ),
});
/** A tool of another plugin whose calls change resources. */
export type WatchedTool = z.output<typeof watchedToolSchema>;

/** Tools of the host whose calls are read as they are; an entry of `tools` has no effect on them. */
export const HOST_TOOLS = [
  "read",
  "write",
  "edit",
  "apply_patch",
  "nodes",
  "exec",
  "bash",
  "process",
  "terminal",
  "sessions_send",
] as const;

/** Says what a shell command changes. Only an operator can declare it. */
const declaredCommandSchema = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(BOUNDS.resourceCharsMax)
    .describe("The command line; `*` stands for anything."),
  outputs: z
    .array(z.string().min(1).max(BOUNDS.resourceCharsMax))
    .max(BOUNDS.resourcesPerStepMax)
    .describe(
      "Files and folders that it changes, from its working directory. An empty list: it changes nothing.",
    ),
});

const conflictsSchema = arbiterPolicySchema.extend({
  strategy: conflictStrategySchema
    .default("owner_wins")
    .describe("Who gets a resource that several steps want to change, where nothing else is said."),
  enabled: z
    .boolean()
    .default(true)
    .describe("Rule on writes of several steps to one resource, before the tool call happens."),
  leaseMs: declareDurationMs(BOUNDS.leaseMsMin)
    .default(5 * 60_000)
    .describe("How long a step holds what it wrote without writing it again, in milliseconds."),
  onConflict: z
    .enum(["refuse", "wait"])
    .default("refuse")
    .describe(
      "Whether the loser's call is refused at once, or first waits up to `waitMs` for the lease to end.",
    ),
  waitMs: z
    .int()
    .min(0)
    .max(BOUNDS.waitMsMax)
    .default(5_000)
    .describe("How long a call waits where `onConflict` is `wait`, in milliseconds."),
  reviewMs: z
    .int()
    .min(1_000)
    .max(BOUNDS.reviewMsMax)
    .default(120_000)
    .describe("How long a person may take to approve a contested write, in milliseconds."),
  unknownWrites: z
    .enum(["allow", "review", "deny"])
    .default("allow")
    .describe("What happens to a shell command that declares no outputs, and to a call that cannot be read."),
  afterCommands: z
    .enum(["off", "held", "all"])
    .default("held")
    .describe(
      "What is looked for when a shell command has ended. `held`: whether it overwrote a file that another step holds. `all`: every file that changed below its folder, too.",
    ),
  tools: z
    .record(z.string().min(1).max(BOUNDS.nameCharsMax), watchedToolSchema)
    .refine((tools) => Object.keys(tools).length <= BOUNDS.watchedToolsMax)
    .default({})
    .describe("What other tools change, by the name of the tool."),
  commands: z
    .array(declaredCommandSchema)
    .max(BOUNDS.policyOverridesMax)
    .default([])
    .describe("What shell commands change; the first entry that fits a command counts."),
});
/** Settings of arbitration. */
export type ConflictsConfig = z.output<typeof conflictsSchema>;

const compactionSchema = z.strictObject({
  tellChildren: z
    .boolean()
    .default(true)
    .describe("Tell a session in its next prompt which subagents it has, after its history was compacted."),
  repeats: z
    .enum(["refuse", "allow"])
    .default("refuse")
    .describe(
      "What happens to a spawn that repeats an open or just completed one from before the compaction: same session, agent and task.",
    ),
  repeatMs: declareDurationMs(0)
    .default(3_600_000)
    .describe("How long a completed subagent counts as just completed, in milliseconds."),
});
/** Settings of what follows a compaction of a session's history. */
export type CompactionConfig = z.output<typeof compactionSchema>;

const truthSchema = z.strictObject({
  onMismatch: z
    .enum(["record", "hold", "refuse"])
    .default("record")
    .describe(
      "What happens to a child that does not run as it was asked. `hold`: its result waits for people. `refuse`: it is stopped before its model is called, and held where that is too late.",
    ),
});
/** Settings of what is done about children that do not run as they were asked. */
export type TruthConfig = z.output<typeof truthSchema>;

const declareTreeLimits = (whose: string) => ({
  tokens: declareCount(BOUNDS.budgetMax)
    .optional()
    .describe(`How many tokens of all kinds ${whose} may use.`),
  costUsd: z
    .number()
    .gt(0)
    .max(BOUNDS.budgetCostUsdMax)
    .optional()
    .describe(`How many US dollars ${whose} may cost, by the prices of the host's configuration.`),
  spawns: declareCount(BOUNDS.stepsPerCoordinationMax)
    .optional()
    .describe(`How many subagents ${whose} may spawn.`),
  depth: declareCount(BOUNDS.stepsPerCoordinationMax)
    .optional()
    .describe(`How many levels below the owner the subagents may be that ${whose} spawn.`),
});

/** Bounds what the sessions of a coordination that a model's spawn opens may use. A plan says its own budget. */
const budgetSchema = z.strictObject({
  ...declareTreeLimits("all sessions of one coordination together"),
  agents: z
    .record(
      agentIdSchema,
      z.strictObject(declareTreeLimits("the sessions of this agent in one coordination")),
    )
    .refine((agents) => Object.keys(agents).length <= BOUNDS.budgetAgentsMax)
    .default({})
    .describe("What the sessions of single agents may use in one coordination, by the agent's id."),
});
/** The operator's budget of coordinations that spawns of models open. */
export type BudgetConfig = z.output<typeof budgetSchema>;

/** `plugins.entries.coordination.config.coordination.phase1`. */
const phase1Schema = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe("Coordinate subagent spawns. Off: the plugin registers its CLI and nothing else."),
  strict: z
    .boolean()
    .default(false)
    .describe(
      "Refuse a spawn that cannot be recorded or comes with a malformed envelope, instead of letting it go on.",
    ),
  agents: z
    .array(agentIdSchema)
    .max(BOUNDS.policyOverridesMax)
    .optional()
    .describe("Only coordinate spawns of these agents. Absent: of all agents."),
  ledger: ledgerSchema.prefault({}),
  gateway: gatewaySchema.prefault({}),
  stepTimeoutMs: declareDurationMs(1_000)
    .default(24 * 3_600_000)
    .describe("How long a step may run when the spawn names no runTimeoutSeconds, in milliseconds."),
  settleMs: declareDurationMs(0)
    .default(3_000)
    .describe("Quiet time after which a coordination without open steps ends, in milliseconds."),
  acknowledgeMs: declareDurationMs(1_000)
    .default(30_000)
    .describe("How long a spawn may stay unconfirmed by the host before it is looked up, in milliseconds."),
  sweepMs: declareDurationMs(1_000)
    .default(15_000)
    .describe("How often open steps are compared with the host's own records, in milliseconds."),
  contentRetentionDays: z
    .int()
    .min(0)
    .max(3_650)
    .default(7)
    .describe("How long objectives and tasks are kept beside the ledger, in days. 0 keeps none."),
  escalateMs: declareDurationMs(1_000)
    .default(24 * 3_600_000)
    .describe("How long a question to people stays open before its default is taken, in milliseconds."),
  lanes: lanesSchema.prefault({}),
  budget: budgetSchema.prefault({}),
  conflicts: conflictsSchema.prefault({}),
  privileges: privilegesSchema.prefault({}),
  results: resultsSchema.prefault({}),
  chat: chatSchema.prefault({}),
  gates: gatesSchema.prefault({}),
  escalations: escalationsSchema.prefault({}),
  compaction: compactionSchema.prefault({}),
  truth: truthSchema.prefault({}),
  acpAgents: z
    .record(agentIdSchema, acpAgentSchema)
    .refine((agents) => Object.keys(agents).length <= BOUNDS.acpAgentsMax)
    .default({})
    .describe("Agents of plan steps that are programs speaking the Agent Client Protocol over stdio, by id."),
  openwop: openWopSchema.prefault({}),
  page: pageSchema.prefault({}),
  metrics: metricsSchema.prefault({}),
  telemetry: telemetrySchema.prefault({}),
  stats: statsSchema.prefault({}),
  policies: policiesSchema.prefault({}),
});

/** The plugin's configuration, `plugins.entries.coordination.config`. The manifest's JSON Schema is generated from it. */
export const pluginConfigSchema = z.strictObject({
  coordination: z.strictObject({ phase1: phase1Schema.prefault({}) }).prefault({}),
});

/** The whole configuration below `coordination.phase1`. */
export type Phase1Config = z.output<typeof phase1Schema>;

/**
 * Reads the plugin's configuration. Where it takes a policy pack into use, the pack holds in place of the defaults, and the
 * configuration in place of the pack.
 *
 * @throws CoordinationError `CONFIG_INVALID`
 */
export function parsePluginConfig(value: unknown): Phase1Config {
  // Alone first: without the pack that it goes by a configuration need not be valid.
  const { default: pack, rules } = parseConfig(policiesOnlySchema, value).coordination.phase1.policies;
  const phase1 =
    pack === undefined
      ? parseConfig(pluginConfigSchema, value).coordination.phase1
      : parseConfigWithPack(value, pack);
  // A pack that cannot hold is told now, and not when somebody spawns.
  if (rules.length > 0) parseRuledConfigs(value);
  return phase1;
}

/**
 * Reads the plugin's configuration once for each pack that holds for single agents, channels or sessions, as if all went by it.
 *
 * @throws CoordinationError `CONFIG_INVALID`
 */
export function parseRuledConfigs(value: unknown): ReadonlyMap<string, Phase1Config> {
  return new Map(listRuledPacks(value).map((pack) => [pack, parseConfigWithPack(value, pack)]));
}

/** Reads the plugin's configuration as if it went by a pack. @throws CoordinationError `CONFIG_INVALID` */
export function parseConfigWithPack(value: unknown, pack: string): Phase1Config {
  const coordination = { phase1: readWrittenSettings(value, pack) };
  return parseConfig(pluginConfigSchema, { coordination }, ` (with the policy pack ${pack} in use)`)
    .coordination.phase1;
}

/** Reads `coordination.phase1.ledger` alone. @throws CoordinationError `CONFIG_INVALID` */
export function parseLedgerConfig(value: unknown): LedgerConfig {
  const coordination = { phase1: { ledger: value } };
  return parseConfig(ledgerOnlySchema, { coordination }).coordination.phase1.ledger;
}

const ledgerOnlySchema = z.strictObject({
  coordination: z.strictObject({ phase1: z.strictObject({ ledger: ledgerSchema.prefault({}) }) }),
});
