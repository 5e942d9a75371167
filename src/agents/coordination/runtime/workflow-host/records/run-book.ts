/** Owns: finding runs and the graphs they follow, with those kept in memory that were used last. */
import { CoordinationError } from "../../../contracts/errors.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import {
  readWorkflowDefinition,
  type WorkflowDefinition,
} from "../../../contracts/workflows/workflow-definition.ts";
import { evolveWorkflow, foldWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../../workflow/state/graph.ts";
import { type NodeGraph } from "../../../workflow/state/node-graph.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { WorkflowHostParts } from "./workflow-parts.ts";

/** A run as its log tells, and the graph that it follows. */
export interface KnownRun {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
}

/** A workflow that runs can be made of. */
export interface RunnableWorkflow {
  readonly graph: NodeGraph;
  readonly definition: WorkflowDefinition;
  /** The text that its hash is over. */
  readonly text: string;
}

export interface RunBook {
  /** @throws CoordinationError */
  load(runId: CoordinationId): Promise<KnownRun | undefined>;
  /** What is on disk behind a known state. @throws CoordinationError */
  catchUp(known: KnownRun): Promise<KnownRun>;
  keep(known: KnownRun): void;
  /** What runs follow whose definition has this hash. @throws CoordinationError `EVENT_UNREADABLE` */
  runnable(sha256: string): Promise<RunnableWorkflow>;
  /** Compiled, and its text on disk. */
  workflow(tenant: string, workflowId: string): Promise<RunnableWorkflow | undefined>;
  compile(definition: WorkflowDefinition): {
    readonly workflow?: RunnableWorkflow;
    readonly problems: readonly string[];
  };
  /** Runs follow it from here on. */
  store(workflow: RunnableWorkflow, tenant?: string): Promise<void>;
}

const PAGE = 1_000;
/** Runs kept in memory, the ended ones too: whoever started one looks at it. */
const RUNS_MAX = 2_000;
/** What the values of all of them take. */
const RUNS_CHARS_MAX = 64_000_000;
const GRAPHS_MAX = 1_000;

export function createRunBook(parts: BookParts): RunBook {
  const it: Book = {
    ...parts,
    runs: new Map(),
    chars: 0,
    graphs: new Map(),
    shared: new Map(),
    stored: new Set(),
  };
  for (const definition of parts.definitions) {
    const { workflow } = compile(it, definition);
    if (!workflow) continue;
    it.shared.set(definition.id, workflow);
    it.graphs.set(workflow.graph.definition, workflow.graph);
  }
  return {
    load: (runId) => load(it, runId),
    catchUp: (known) => catchUp(it, known),
    keep: (known) => {
      keep(it, known);
    },
    runnable: (sha256) => runnable(it, sha256),
    workflow: async (tenant, workflowId) => {
      const common = it.shared.get(workflowId);
      // What a tenant registered goes before what all have; nobody can register anything but tests.
      return common && !it.testSeams ? common : ((await registered(it, tenant, workflowId)) ?? common);
    },
    compile: (definition) => compile(it, definition),
    store: (workflow, tenant) => store(it, workflow, tenant),
  };
}

type BookParts = Pick<WorkflowHostParts, "store" | "sha256" | "definitions" | "testSeams">;

interface Book extends BookParts {
  readonly runs: Map<CoordinationId, KnownRun>;
  /** What their values take. */
  chars: number;
  readonly graphs: Map<string, NodeGraph>;
  /** What every tenant may run. */
  readonly shared: Map<string, RunnableWorkflow>;
  /** Hashes of definitions that are on disk. */
  readonly stored: Set<string>;
}

function keep(it: Book, known: KnownRun): void {
  const { runId, chars } = known.run;
  it.chars += chars - (it.runs.get(runId)?.run.chars ?? 0);
  it.runs.delete(runId);
  it.runs.set(runId, known);
  for (const [oldest, { run }] of it.runs) {
    if (it.runs.size <= RUNS_MAX && it.chars <= RUNS_CHARS_MAX) return;
    it.runs.delete(oldest);
    it.chars -= run.chars;
  }
}

function compile({ sha256 }: Book, definition: WorkflowDefinition): ReturnType<RunBook["compile"]> {
  const text = JSON.stringify(definition);
  const compiled = compileWorkflow(definition, sha256(text));
  return compiled.ok
    ? { workflow: { graph: compiled.graph, definition, text }, problems: [] }
    : { problems: compiled.problems };
}

async function load(it: Book, runId: CoordinationId): Promise<KnownRun | undefined> {
  const known = it.runs.get(runId);
  if (known) return known;
  const entry = await it.store.entry(runId);
  const first = entry ? await it.store.read(runId, { from: 0, limit: PAGE }) : [];
  const run = foldWorkflow(first, entry?.origin);
  if (!run) return undefined;
  const graph = await graphOf(it, run.started.definition);
  return first.length < PAGE ? { run, graph } : catchUp(it, { run, graph });
}

async function catchUp(it: Book, { run, graph }: KnownRun): Promise<KnownRun> {
  let newest = run;
  for (;;) {
    const page = await it.store.read(run.runId, { from: newest.nextSequence, limit: PAGE });
    newest = page.reduce<WorkflowRun>(evolveWorkflow, newest);
    if (page.length < PAGE) return { run: newest, graph };
  }
}

async function graphOf(it: Book, sha256: string): Promise<NodeGraph> {
  const known = it.graphs.get(sha256);
  if (known) return known;
  const { graph } = await runnable(it, sha256);
  remember(it.graphs, sha256, graph, it.shared.size + GRAPHS_MAX);
  return graph;
}

async function runnable({ store: from }: Book, sha256: string): Promise<RunnableWorkflow> {
  const found = runnableOf(await from.definition(sha256), sha256);
  if (!found) throw new CoordinationError("EVENT_UNREADABLE", `the definition ${sha256} cannot be read`);
  return found;
}

async function registered(
  it: Book,
  tenant: string,
  workflowId: string,
): Promise<RunnableWorkflow | undefined> {
  const own = await it.store.registered(tenant, workflowId);
  const runnable = own && runnableOf(own.text, own.sha256);
  if (runnable) it.stored.add(runnable.graph.definition);
  return runnable;
}

function runnableOf(text: string | undefined, sha256: string): RunnableWorkflow | undefined {
  const parsed = text === undefined ? undefined : readWorkflowDefinition(JSON.parse(text));
  const compiled = parsed?.ok ? compileWorkflow(parsed.value, sha256) : undefined;
  return text !== undefined && parsed?.ok && compiled?.ok
    ? { graph: compiled.graph, definition: parsed.value, text }
    : undefined;
}

async function store(
  { store: on, stored }: Book,
  { graph: { definition: sha256, workflowId }, text }: RunnableWorkflow,
  tenant?: string,
): Promise<void> {
  if (tenant === undefined && stored.has(sha256)) return;
  await on.putDefinition({ sha256, workflowId, text, ...(tenant !== undefined && { tenant }) });
  stored.add(sha256);
}

function remember<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
