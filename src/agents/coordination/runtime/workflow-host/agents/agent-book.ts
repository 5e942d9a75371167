/**
 * Owns: the agents that are installed, and those that runs were begun with: a run has the agent as it was then, by its hash,
 * whatever becomes of the folder that it came from.
 */
import {
  readInstalledAgent,
  type AgentPin,
  type InstalledAgent,
} from "../../../contracts/workflows/agent-manifest.ts";
import { workflowDefinitionSchema } from "../../../contracts/workflows/workflow-definition.ts";
import { createAgentWorkflowId } from "../../../workflow/node-contract/agent-tools.ts";
import { AGENT } from "../../../workflow/state/graph.ts";
import type { NodeGraph } from "../../../workflow/state/node-graph.ts";
import { canInvokeAgent } from "../../../workflow/nodes/node-types.ts";
import type { AgentHostDependencies } from "../records/agent-dependencies.ts";
import type { RunBook, RunnableWorkflow } from "../records/run-book.ts";
import type { HashedStore } from "../records/workflow-dependencies.ts";

export interface AgentBook {
  /** By their ids. */
  readonly installed: readonly InstalledAgent[];
  find(agentId: string): InstalledAgent | undefined;
  /** Returns why a reference cannot be meant here, or nothing. */
  problemOf(pin: AgentPin): string | undefined;
  /** Keeps the agents that nodes of the graph name, and returns the hash of each. */
  pin(graph: NodeGraph): Promise<Readonly<Record<string, string>>>;
  /** @throws CoordinationError */
  load(sha256: string): Promise<InstalledAgent | undefined>;
  /** The workflow of a run that is one agent's. */
  workflowOf(agentId: string): RunnableWorkflow | undefined;
}

type WorkflowCompiler = Pick<RunBook, "compile">;

/** The collaborators and the memory of one agent book. */
interface AgentBookState extends HashedStore {
  readonly compiler: WorkflowCompiler;
  readonly entries: ReadonlyMap<string, AgentBookEntry>;
  /** By hash; those of runs that began before the folder changed too. */
  readonly known: Map<string, InstalledAgent>;
  readonly workflows: Map<string, RunnableWorkflow>;
}

/** An installed agent with its text and hash, and whether that text is stored. */
interface AgentBookEntry {
  readonly agent: InstalledAgent;
  readonly text: string;
  readonly sha256: string;
  isStored: boolean;
}

const KNOWN_MAX = 500;

/**
 * Creates the store of agents: the installed ones by id, and by the hash of the whole agent also those that earlier
 * runs were begun with.
 */
export function createAgentBook(
  dependencies: HashedStore,
  { installed }: AgentHostDependencies,
  compiler: WorkflowCompiler,
): AgentBook {
  const sorted = installed.toSorted((one, other) => (one.manifest.agentId < other.manifest.agentId ? -1 : 1));
  const entries = new Map(
    sorted.map((agent): [string, AgentBookEntry] => {
      const text = JSON.stringify(agent);
      return [agent.manifest.agentId, { agent, text, sha256: dependencies.sha256(text), isStored: false }];
    }),
  );
  const book: AgentBookState = { ...dependencies, compiler, entries, known: new Map(), workflows: new Map() };
  return {
    installed: sorted,
    find: (agentId) => entries.get(agentId)?.agent,
    problemOf: (pin) => findPinProblem(book, pin),
    pin: (graph) => storePinnedAgents(book, graph),
    load: (sha256) => loadAgentByHash(book, sha256),
    workflowOf: (agentId) => compileAgentWorkflow(book, agentId),
  };
}

/**
 * Returns why a node's version or channel of an agent cannot be meant here; `undefined` where it can. An agent that is
 * not installed is no problem here.
 */
function findPinProblem(
  { entries }: AgentBookState,
  { agentId, version, channel }: AgentPin,
): string | undefined {
  if (channel !== undefined) return `agent ${agentId}: this host knows no channels of agents`;
  const entry = entries.get(agentId);
  if (!entry || version === undefined || version === entry.agent.packVersion) return undefined;
  return `agent ${agentId} is installed in version ${entry.agent.packVersion}, and not in ${version.slice(0, 64)}`;
}

/**
 * Lists the agents that nodes of a graph name, with version and channel as far as they are stated; nodes of types that
 * may run no agent are left out.
 */
export function listAgentPins({ nodes }: NodeGraph): AgentPin[] {
  return [...nodes.values()].flatMap(({ node: { typeId, agent, config } }) => {
    const named = agent?.agentId ?? config["agentId"];
    if (!canInvokeAgent(typeId) || typeof named !== "string") return [];
    const [version, channel] = [agent?.["version"], agent?.["channel"]];
    return [
      {
        agentId: named,
        ...(typeof version === "string" && { version }),
        ...(typeof channel === "string" && { channel }),
      },
    ];
  });
}

/** Stores the installed agents that the graph's nodes name, and returns their hashes by agent id. */
async function storePinnedAgents(
  { entries, store }: AgentBookState,
  graph: NodeGraph,
): Promise<Readonly<Record<string, string>>> {
  const pins: Record<string, string> = {};
  for (const { agentId } of listAgentPins(graph)) {
    const entry = entries.get(agentId);
    if (!entry) continue;
    const { sha256, text } = entry;
    if (!entry.isStored) await store.putDefinition({ sha256, workflowId: agentId, text });
    entry.isStored = true;
    pins[agentId] = sha256;
  }
  return pins;
}

/** Returns the agent from the cache or the ledger; `undefined` where none is stored that can be read. */
async function loadAgentByHash(book: AgentBookState, sha256: string): Promise<InstalledAgent | undefined> {
  const cachedAgent = book.known.get(sha256);
  if (cachedAgent) return cachedAgent;
  const text = await book.store.definition(sha256);
  const parsed = text === undefined ? undefined : readInstalledAgent(JSON.parse(text));
  if (!parsed?.ok) return undefined;
  if (book.known.size >= KNOWN_MAX) book.known.clear();
  book.known.set(sha256, parsed.value);
  return parsed.value;
}

/**
 * Returns the one-node workflow that runs the agent, compiled once; `undefined` if it is not installed or its workflow
 * does not compile.
 */
function compileAgentWorkflow(book: AgentBookState, agentId: string): RunnableWorkflow | undefined {
  const entry = book.entries.get(agentId);
  if (!entry) return undefined;
  const cachedWorkflow = book.workflows.get(agentId);
  if (cachedWorkflow) return cachedWorkflow;
  const { packVersion, manifest } = entry.agent;
  const definition = workflowDefinitionSchema.parse({
    id: createAgentWorkflowId(agentId),
    name: manifest.persona,
    version: packVersion,
    nodes: [{ id: "agent", typeId: AGENT, agent: { agentId }, outputRole: "primary" }],
  });
  const { workflow } = book.compiler.compile(definition);
  if (workflow) book.workflows.set(agentId, workflow);
  return workflow;
}
