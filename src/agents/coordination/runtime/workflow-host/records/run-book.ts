/** Owns: finding runs and the graphs they follow, with those kept in memory that were used last. */
import { CoordinationError } from "../../../contracts/errors.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import {
  readWorkflowDefinition,
  type WorkflowDefinition,
} from "../../../contracts/workflows/workflow-definition.ts";
import type { WorkflowStore } from "../../../ports/workflow-store.ts";
import { rememberNewest } from "../../../std/remember-newest.ts";
import { evolveWorkflow, foldWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../../workflow/state/graph.ts";
import type { NodeGraph } from "../../../workflow/state/node-graph.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { readLog } from "../../log/read-pages.ts";
import type { WorkflowHostDependencies } from "./workflow-dependencies.ts";

/** A run as its log tells, and the graph that it follows. */
export interface LoadedRun {
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
  load(runId: CoordinationId): Promise<LoadedRun | undefined>;
  /** Returns the run with what is on disk behind a known state. @throws CoordinationError */
  catchUp(loadedRun: LoadedRun): Promise<LoadedRun>;
  keep(loadedRun: LoadedRun): void;
  /** Returns the workflow whose definition has this hash. @throws CoordinationError `EVENT_UNREADABLE` */
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

/** Runs kept in memory, the ended ones too: whoever started one looks at it. */
const RUNS_MAX = 2_000;
/** Characters of the values of all of them. */
const RUNS_CHARS_MAX = 64_000_000;
const GRAPHS_MAX = 1_000;

/**
 * Creates the store of workflow runs and their graphs, which loads them from the ledger and keeps in memory those that
 * were used last.
 */
export function createRunBook(dependencies: BookDependencies): RunBook {
  const book: RunBookState = {
    ...dependencies,
    runs: new Map(),
    chars: 0,
    graphs: new Map(),
    shared: new Map(),
    stored: new Set(),
  };
  for (const definition of dependencies.definitions) {
    const { workflow } = compileDefinition(book, definition);
    if (!workflow) continue;
    book.shared.set(definition.id, workflow);
    book.graphs.set(workflow.graph.definition, workflow.graph);
  }
  return {
    load: (runId) => loadRun(book, runId),
    catchUp: (loadedRun) => catchUpRun(book, loadedRun),
    keep: (loadedRun) => {
      keepRun(book, loadedRun);
    },
    runnable: (sha256) => loadRunnableWorkflow(book, sha256),
    workflow: async (tenant, workflowId) => {
      const common = book.shared.get(workflowId);
      // A tenant's registration goes before the workflows of all; nobody can register anything but tests.
      return common && !book.conformance
        ? common
        : ((await findRegisteredWorkflow(book, tenant, workflowId)) ?? common);
    },
    compile: (definition) => compileDefinition(book, definition),
    store: (workflow, tenant) => storeDefinition(book, workflow, tenant),
  };
}

type BookDependencies = Pick<WorkflowHostDependencies, "store" | "sha256" | "definitions" | "conformance">;

/** The collaborators and the memory of one run book. */
interface RunBookState extends BookDependencies {
  readonly runs: Map<CoordinationId, LoadedRun>;
  /** Characters of their values. */
  chars: number;
  readonly graphs: Map<string, NodeGraph>;
  /** Workflows that every tenant may run. */
  readonly shared: Map<string, RunnableWorkflow>;
  /** Hashes of definitions that are on disk. */
  readonly stored: Set<string>;
}

/** Keeps a run in memory as the newest, and forgets the oldest ones where there is no room. */
function keepRun(book: RunBookState, loadedRun: LoadedRun): void {
  const { runId, chars } = loadedRun.run;
  forgetRun(book, runId);
  book.chars += chars;
  book.runs.set(runId, loadedRun);
  for (const oldest of book.runs.keys()) {
    if (book.runs.size <= RUNS_MAX && book.chars <= RUNS_CHARS_MAX) return;
    forgetRun(book, oldest);
  }
}

function forgetRun(book: RunBookState, runId: CoordinationId): void {
  book.chars -= book.runs.get(runId)?.run.chars ?? 0;
  book.runs.delete(runId);
}

function compileDefinition(
  { sha256 }: RunBookState,
  definition: WorkflowDefinition,
): ReturnType<RunBook["compile"]> {
  const text = JSON.stringify(definition);
  const compiled = compileWorkflow(definition, sha256(text));
  return compiled.ok
    ? { workflow: { graph: compiled.graph, definition, text }, problems: [] }
    : { problems: compiled.problems };
}

/**
 * Returns the run from memory, where it may be older than its log, or from its log; `undefined` where the ledger does
 * not have it any more.
 */
async function loadRun(book: RunBookState, runId: CoordinationId): Promise<LoadedRun | undefined> {
  // Another process may have ended it since, and any may have pruned it then.
  const entry = await book.store.entry(runId);
  if (!entry) {
    forgetRun(book, runId);
    return undefined;
  }
  const cachedRun = book.runs.get(runId);
  if (cachedRun) return cachedRun;
  let run: WorkflowRun | undefined;
  for await (const page of readLog(book.store, runId))
    run = run ? page.reduce<WorkflowRun>(evolveWorkflow, run) : foldWorkflow(page, entry.origin);
  return run && { run, graph: await loadGraph(book, run.started.definition) };
}

async function catchUpRun(book: RunBookState, { run, graph }: LoadedRun): Promise<LoadedRun> {
  let newest = run;
  for await (const page of readLog(book.store, run.runId, { from: run.nextSequence }))
    newest = page.reduce<WorkflowRun>(evolveWorkflow, newest);
  return { run: newest, graph };
}

async function loadGraph(book: RunBookState, sha256: string): Promise<NodeGraph> {
  const cachedGraph = book.graphs.get(sha256);
  if (cachedGraph) return cachedGraph;
  const { graph } = await loadRunnableWorkflow(book, sha256);
  rememberNewest(book.graphs, sha256, graph, book.shared.size + GRAPHS_MAX);
  return graph;
}

/**
 * Reads the stored workflow definition with that hash and compiles it. @throws CoordinationError `EVENT_UNREADABLE`
 * where it is not there, or cannot be run any more.
 */
export async function loadRunnableWorkflow(
  { store: from }: { readonly store: Pick<WorkflowStore, "definition"> },
  sha256: string,
): Promise<RunnableWorkflow> {
  const found = compileStoredDefinition(await from.definition(sha256), sha256);
  if (!found) throw new CoordinationError("EVENT_UNREADABLE", `the definition ${sha256} cannot be read`);
  return found;
}

async function findRegisteredWorkflow(
  book: RunBookState,
  tenant: string,
  workflowId: string,
): Promise<RunnableWorkflow | undefined> {
  const ownWorkflow = await book.store.registered(tenant, workflowId);
  const runnable = ownWorkflow && compileStoredDefinition(ownWorkflow.text, ownWorkflow.sha256);
  if (runnable) book.stored.add(runnable.graph.definition);
  return runnable;
}

/** Compiles the text of a definition; `undefined` where it is none any more. */
function compileStoredDefinition(text: string | undefined, sha256: string): RunnableWorkflow | undefined {
  const parsed = text === undefined ? undefined : readWorkflowDefinition(JSON.parse(text));
  const compiled = parsed?.ok ? compileWorkflow(parsed.value, sha256) : undefined;
  return text !== undefined && parsed?.ok && compiled?.ok
    ? { graph: compiled.graph, definition: parsed.value, text }
    : undefined;
}

/** Writes a definition to the ledger once; with a tenant, registers it for that one, too. */
async function storeDefinition(
  { store: on, stored }: RunBookState,
  { graph: { definition: sha256, workflowId }, text }: RunnableWorkflow,
  tenant?: string,
): Promise<void> {
  if (tenant === undefined && stored.has(sha256)) return;
  await on.putDefinition({ sha256, workflowId, text, ...(tenant !== undefined && { tenant }) });
  stored.add(sha256);
}
