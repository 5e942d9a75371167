/**
 * Owns: what is settled before an agent's model is asked (RFC 0077, steps 1 to 4 and the task of step 6): its model, its prompt,
 * its tools, its memory. The outcome is recorded and holds for the invocation, whatever happens meanwhile.
 */
import { AGENT_BOUNDS, type InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { BoundTool } from "../../../contracts/workflows/agent-events.ts";
import type { WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import type { McpTool, TraceContext } from "../../../ports/outbound.ts";
import type { AgentEffect, AgentOutcome } from "../../../workflow/node-contract/agent-effects.ts";
import { chooseCallName, unwrapTask, NATIVE_TOOLS } from "../../../workflow/node-contract/agent-tools.ts";
import {
  findRoutedModel,
  readAiOption,
  readOptionName,
  readNumberWithin,
} from "../../../workflow/state/model-options.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { resolveMemoryScope } from "../../../workflow/state/memory-scope.ts";
import type { AgentBook } from "./agent-book.ts";
import type { AgentHostDependencies } from "../records/agent-dependencies.ts";
import type { PlayedAgent } from "../records/conformance-play.ts";
import { describeOtherProvider, shortenName } from "../models/model-request.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface PrepareDependencies extends Pick<
  WorkflowHostDependencies,
  "chat" | "contract" | "tools" | "settings" | "logger" | "conformance"
> {
  readonly agentBook: AgentBook;
  readonly agentHost: AgentHostDependencies;
}

export interface AgentPreparation {
  readonly run: WorkflowRun;
  readonly effect: AgentEffect & { readonly kind: "prepare_agent" };
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
}

type PreparationOutcome = AgentOutcome & { readonly kind: "agent_prepared" };
type PreparationRefusal = NonNullable<PreparationOutcome["refusal"]>;

export async function prepareAgent(
  dependencies: PrepareDependencies,
  preparing: AgentPreparation,
): Promise<PreparationOutcome> {
  const agent = await dependencies.agentBook.load(preparing.effect.manifest);
  if (!agent) return createUnreadableAgentOutcome(preparing);
  const played = dependencies.conformance?.agentOf(preparing.run.started.configurable);
  const ai = collectAiOptions(preparing.run.started.configurable ?? {});
  const model = played ? { resolved: played.model } : await resolveModel(dependencies, agent, ai);
  const task = await checkTask(dependencies, agent, { task: preparing.effect.task, played });
  const bound = {
    ...(await bindToolsAndMemory(dependencies, preparing, { agent, played })),
    task: task.task,
    ...model.resolved,
    ...pickSamplingOptions(ai),
  };
  const refusal = task.refusal ?? model.refusal;
  const started = createStartedPayload(preparing, agent, bound);
  const prompt = createPromptResolution(preparing, agent);
  return { kind: "agent_prepared", started, prompt, bound, ...(refusal && { refusal }) };
}

interface AgentWithPlay {
  readonly agent: InstalledAgent;
  readonly played: PlayedAgent | undefined;
}

type BoundAgent = PreparationOutcome["bound"];

async function bindToolsAndMemory(
  dependencies: PrepareDependencies,
  preparing: AgentPreparation,
  { agent, played }: AgentWithPlay,
): Promise<Omit<BoundAgent, "task">> {
  const { invocationId, agentId, memoryRef = `agent:${agentId}` } = preparing.effect;
  const hasMemory = agent.manifest.memoryShape?.longTerm === true;
  const agentSurface = await listAllowedTools(dependencies, preparing, { agent, hasMemory });
  return {
    invocationId,
    agentId,
    tools: [...agentSurface, ...(played?.tools ?? [])],
    threshold: readEscalationThreshold(dependencies, agent, preparing.run),
    ...(hasMemory && { memoryScope: resolveMemoryScope(preparing.run, memoryRef) }),
  };
}

function pickSamplingOptions({
  temperature,
  maxTokens,
}: AiOptions): Pick<BoundAgent, "temperature" | "maxTokens"> {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
}

function createStartedPayload(
  { effect }: AgentPreparation,
  { manifest }: InstalledAgent,
  { model, provider, tools, memoryScope }: BoundAgent,
): PreparationOutcome["started"] {
  const { invocationId, agentId, source } = effect;
  return {
    invocationId,
    agentId,
    source,
    manifest: effect.manifest,
    modelClass: manifest.modelClass,
    ...(model !== undefined && { resolvedModel: model }),
    ...(provider !== undefined && { resolvedProvider: provider }),
    toolSurfaceCount: tools.length,
    memoryBound: memoryScope !== undefined,
  };
}

function createUnreadableAgentOutcome({ effect }: AgentPreparation): PreparationOutcome {
  const { invocationId, agentId, source, nodeId, manifest } = effect;
  const reason = "the agent cannot be read";
  return {
    kind: "agent_prepared",
    started: { invocationId, agentId, source, manifest },
    bound: { invocationId, agentId, tools: [], task: null, threshold: 1 },
    prompt: {
      nodeId,
      kind: "system",
      agentId,
      resolved: null,
      chain: [{ layer: "agent-intrinsic", applied: false, reason }],
    },
    refusal: { code: "agent_not_installed", message: reason },
  };
}

interface AiOptions {
  readonly model?: string;
  readonly provider?: string;
  readonly modelClass?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
}

function collectAiOptions(configurable: Values): AiOptions {
  const readTextOption = (key: string) => {
    const value = readAiOption(configurable, key, readOptionName);
    return value === undefined ? {} : { [key]: value };
  };
  const readNumberOption = (key: string, max?: number) => {
    const value = readAiOption(configurable, key, (candidate) => readNumberWithin(candidate, 0, max));
    return value === undefined ? {} : { [key]: value };
  };
  return {
    ...readTextOption("model"),
    ...readTextOption("provider"),
    ...readTextOption("modelClass"),
    ...readNumberOption("temperature", 2),
    ...readNumberOption("maxTokens"),
  };
}

interface ResolvedModel {
  readonly resolved: { readonly model?: string; readonly provider?: string };
  readonly refusal?: PreparationRefusal;
}

/**
 * Returns the model to ask: the one that the run names, else the host's model for the class (step 1). Refuses a run
 * that names a provider which this host does not ask.
 */
async function resolveModel(
  { chat, agentHost }: PrepareDependencies,
  { manifest }: InstalledAgent,
  { model: named, provider, modelClass = manifest.modelClass }: AiOptions,
): Promise<ResolvedModel> {
  const { modelClasses } = agentHost;
  const ofClass = Object.hasOwn(modelClasses, modelClass) ? modelClasses[modelClass] : undefined;
  const model = named ?? ofClass;
  const target = (await chat()).target?.({ ...(model !== undefined && { model }) });
  if (!target) return resolveRoutedModel(findRoutedModel({ model: named, provider }, ofClass), provider);
  const resolved = { model: shortenName(target.model), provider: shortenName(target.provider) };
  if (provider === undefined || provider === resolved.provider) return { resolved };
  return {
    resolved,
    refusal: { code: "not_configured", message: describeOtherProvider(provider, resolved.provider) },
  };
}

/** Returns the model for a host that routes to several providers. Without a model's name it would choose the provider itself. */
function resolveRoutedModel(model: string | undefined, provider: string | undefined): ResolvedModel {
  if (model !== undefined) return { resolved: { model } };
  const message = "neither the run nor the agent's class names a model of the provider that the run names";
  return { resolved: {}, ...(provider !== undefined && { refusal: { code: "not_configured", message } }) };
}

function readEscalationThreshold(
  { settings }: PrepareDependencies,
  { manifest }: InstalledAgent,
  { started }: WorkflowRun,
): number {
  const statedThreshold = started.configurable?.["escalationThreshold"];
  if (typeof statedThreshold === "number" && statedThreshold >= 0 && statedThreshold <= 1)
    return statedThreshold;
  return manifest.confidence?.defaultThreshold ?? settings.escalationThreshold;
}

const TEMPLATE_CHARS_MAX = 127;
const SEMVER = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/;

function createPromptResolution(
  { effect }: AgentPreparation,
  agent: InstalledAgent,
): WorkflowPayloads["agent.promptResolved"] {
  const { nodeId, agentId } = effect;
  const { promptOverrides, promptLibraryRef } = agent.manifest;
  const template = agentId.toLowerCase().slice(0, TEMPLATE_CHARS_MAX);
  const version = SEMVER.test(agent.packVersion) ? `@${agent.packVersion}` : "";
  const resolved = `prompt:${template}${version}`.slice(0, WORKFLOW_BOUNDS.nameCharsMax);
  const none = "no candidate at this layer";
  const later = "superseded by the agent's own prompt";
  const override = formatPromptRef(promptOverrides?.system);
  return {
    nodeId,
    kind: "system",
    agentId,
    resolved,
    chain: [
      { layer: "node", applied: false, reason: none },
      { layer: "agent-intrinsic", source: resolved, applied: true },
      {
        layer: "agent-overrides",
        ...(override !== undefined && { source: override }),
        applied: false,
        reason: override === undefined ? none : later,
      },
      {
        layer: "agent-library-default",
        applied: false,
        reason: promptLibraryRef === undefined ? none : later,
      },
      { layer: "workflow-defaults", applied: false, reason: none },
      { layer: "host-defaults", applied: false, reason: none },
    ],
  };
}

type PromptRef = NonNullable<NonNullable<InstalledAgent["manifest"]["promptOverrides"]>["system"]>;

function formatPromptRef(ref: PromptRef | undefined): string | undefined {
  if (ref === undefined) return undefined;
  const text =
    typeof ref === "string"
      ? ref
      : `prompt:${ref.templateId}${ref.version === undefined ? "" : `@${ref.version}`}`;
  return text.slice(0, WORKFLOW_BOUNDS.nameCharsMax);
}

interface CheckedTask {
  readonly task: unknown;
  readonly refusal?: PreparationRefusal;
}

/**
 * Checks the task, or else the value that it wraps, by the agent's task schema (step 6). Returns the one that fits, or
 * the task with a refusal.
 */
async function checkTask(
  { contract }: PrepareDependencies,
  { taskSchema }: InstalledAgent,
  { task, played }: { readonly task: unknown; readonly played: PlayedAgent | undefined },
): Promise<CheckedTask> {
  if (!taskSchema || played?.isTaskChecked === false) return { task };
  const checker = await contract();
  const check = (value: unknown) => checker.check(taskSchema, value);
  const problems = check(task);
  if (problems.length === 0) return { task };
  const inner = unwrapTask(task);
  if (inner !== undefined && check(inner).length === 0) return { task: inner };
  const details = problems.map(({ path, message }) => `${path}: ${message}`);
  const message = `the task is not what the agent's task schema asks for: ${details.join("; ")}`;
  return { task, refusal: { code: "handoff_task_schema_violation", message: message.slice(0, 2_000) } };
}

/**
 * Lists the tools of the agent's allowlist that this host has, as far as there is room for them (step 3). Without an
 * allowlist an agent has no tools.
 */
async function listAllowedTools(
  dependencies: PrepareDependencies,
  preparing: AgentPreparation,
  { agent, hasMemory }: { readonly agent: InstalledAgent; readonly hasMemory: boolean },
): Promise<BoundTool[]> {
  const allowed = [...new Set(agent.manifest.toolAllowlist ?? [])];
  const offered = allowed.some((id) => id.startsWith(MCP))
    ? await fetchOfferedTools(dependencies, preparing)
    : [];
  const surface: BoundTool[] = [];
  const takenNames = new Set<string>();
  let chars = 0;
  const hasRoomFor = (size: number): boolean =>
    size <= AGENT_BOUNDS.toolCharsMax &&
    chars + size <= AGENT_BOUNDS.toolsCharsMax &&
    surface.length < AGENT_BOUNDS.toolsMax;
  for (const id of allowed) {
    const tool = findNativeTool(id, hasMemory) ?? findMcpTool(id, offered);
    if (!tool) continue;
    const size = JSON.stringify(tool).length;
    if (!hasRoomFor(size)) {
      logOmittedTool(dependencies, preparing, id);
      continue;
    }
    const call = chooseCallName(id, takenNames);
    takenNames.add(call);
    chars += size;
    surface.push({ ...tool, id, call });
  }
  return surface;
}

function logOmittedTool(
  { logger }: PrepareDependencies,
  { run: { runId }, effect: { agentId } }: AgentPreparation,
  tool: string,
): void {
  logger.warn(
    { runId, agentId, tool },
    "a tool is left out: it, or all tools of the agent, are more than a model is told",
  );
}

const MCP = "mcp:";
type FoundTool = Omit<BoundTool, "id" | "call">;

function findNativeTool(id: string, hasMemory: boolean): FoundTool | undefined {
  const native = NATIVE_TOOLS.find((tool) => tool.id === id && (hasMemory || !tool.needsMemory));
  return (
    native && { transport: "native", description: native.description, parameters: { ...native.parameters } }
  );
}

interface OfferedTools {
  readonly server: string;
  /** Absent: it could not be asked. */
  readonly tools?: readonly McpTool[];
}

const DESCRIPTION_CHARS_MAX = 2_000;

/** Finds the tool of an id `mcp:<tool>`, `mcp:<server>.<tool>` or `mcp:<server>/<tool>`. */
function findMcpTool(id: string, offered: readonly OfferedTools[]): FoundTool | undefined {
  const found = id.startsWith(MCP) ? findOfferedTool(id.slice(MCP.length), offered) : undefined;
  if (!found) return undefined;
  const { server, tool } = found;
  return {
    transport: "mcp",
    server,
    tool: shortenName(tool.name),
    parameters: { ...tool.inputSchema },
    ...(tool.description !== undefined && { description: tool.description.slice(0, DESCRIPTION_CHARS_MAX) }),
  };
}

/** Finds the tool of the first server that offers it. A named server is never replaced by another one. */
function findOfferedTool(
  wanted: string,
  offered: readonly OfferedTools[],
): { readonly server: string; readonly tool: McpTool } | undefined {
  const named = offered.filter(({ server }) =>
    [`${server}.`, `${server}/`].some((start) => wanted.startsWith(start)),
  );
  for (const { server, tools } of named.length > 0 ? named : offered) {
    if (!tools) return undefined;
    const names = named.length > 0 ? [wanted.slice(server.length + 1), wanted] : [wanted];
    const tool = tools.find(({ name }) => names.includes(name));
    if (tool) return { server, tool };
  }
  return undefined;
}

/** Asks every MCP server for its tools. A server that cannot be asked offers none now. */
async function fetchOfferedTools(
  { tools, agentHost, logger }: PrepareDependencies,
  { signal, trace }: AgentPreparation,
): Promise<readonly OfferedTools[]> {
  const caller = await tools();
  const listed = Object.entries(agentHost.mcpServers).map(async ([server, url]): Promise<OfferedTools> => {
    const answer = await caller.listMcp({ url, signal, ...trace });
    if (answer.kind === "listed") return { server, tools: answer.tools };
    logger.warn({ server, code: answer.code }, "the tools of a server could not be listed");
    return { server };
  });
  return Promise.all(listed);
}
