/**
 * Owns: what a supervisor is told when it is asked: the run, its memory, its workspace and its log as they were when it entered
 * its turn, read anew each time, so that asking again after a crash is asking the same (RFC 0061).
 */
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import { beginWorkflow, evolveWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import type { ModelAsk, NodeError } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { TURN_FILES, formatTurnInputs, type TurnAsk } from "../../../workflow/node-contract/turn-inputs.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { readLog } from "../../log/read-pages.ts";
import { listRunMemory } from "../records/fork-memory.ts";
import { maskText } from "../records/mask-secrets.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import { readWorkspaceFiles } from "../records/run-workspace.ts";

type TurnDependencies = Pick<WorkflowHostDependencies, "store" | "secrets" | "sha256">;

/**
 * Returns the model request with the supervisor's turn as its last message, or the error for which its inputs cannot
 * be read; a request without a turn as it is.
 */
export async function addTurnMessage(
  dependencies: TurnDependencies,
  loadedRun: LoadedRun,
  request: ModelAsk,
): Promise<{ readonly request: ModelAsk } | { readonly error: NodeError }> {
  const { turn, ...rest } = request;
  if (!turn) return { request };
  const text = await composeTurnText(dependencies, loadedRun, turn);
  if (typeof text !== "string") return { error: text };
  return { request: { ...rest, messages: [...rest.messages, { role: "user", content: text }] } };
}

/**
 * Returns the text of the turn: the run, its memory, workspace and log as they were when it was entered; or the error
 * for which the workspace cannot be read.
 */
async function composeTurnText(
  dependencies: TurnDependencies,
  loadedRun: LoadedRun,
  turn: TurnAsk,
): Promise<string | NodeError> {
  const { store, secrets } = dependencies;
  const run = await readRunAt(dependencies, loadedRun, turn.sequence);
  const reading = turn.workspace && { ...turn.workspace, before: turn.sequence, contentsMax: TURN_FILES };
  const files = reading && (await readWorkspaceFiles(store, run, reading));
  if (files && "error" in files) return files.error;
  const memory = turn.memory && (await readMemoryAt(dependencies, run, turn));
  const transcript = await readEventsBeforeTurn(dependencies, run, turn);
  const inputs = {
    run,
    graph: loadedRun.graph,
    transcript,
    ...(memory && { memory }),
    ...(files && { workspace: files.files }),
  };
  return formatTurnInputs(inputs, (text) => maskText(text, secrets));
}

/** Reads the run as it was with the event of this sequence, and nothing after it. */
async function readRunAt(
  { store }: TurnDependencies,
  { run }: LoadedRun,
  sequence: number,
): Promise<WorkflowRun> {
  if (run.nextSequence === sequence + 1) return run;
  let at: WorkflowRun | undefined;
  for await (const page of readLog(store, run.runId, { to: sequence + 1 }))
    for (const event of page) at = beginOrEvolve(at, event, run);
  return at ?? run;
}

/** Returns the run after the event; the first one begins it. */
function beginOrEvolve(
  at: WorkflowRun | undefined,
  event: WorkflowEvent,
  { origin }: WorkflowRun,
): WorkflowRun {
  return at ? evolveWorkflow(at, event) : beginWorkflow(event, origin);
}

/** Reads the last events before the turn, as many as it asks for. */
async function readEventsBeforeTurn(
  { store }: TurnDependencies,
  run: WorkflowRun,
  turn: TurnAsk,
): Promise<WorkflowEvent[]> {
  const from = Math.max(0, turn.sequence - turn.transcript);
  return from === turn.sequence ? [] : store.read(run.runId, { from, limit: turn.sequence - from });
}

/**
 * Reads the memory entries that there were at the turn, the newest first and up to its limit; any of the tags is
 * enough.
 */
async function readMemoryAt(
  dependencies: TurnDependencies,
  run: WorkflowRun,
  { memory, sequence, atMs }: TurnAsk,
): Promise<readonly Values[]> {
  if (!memory) return [];
  const { scope, tags, limit } = memory;
  const query = {
    now: atMs,
    limit: Math.min(limit, WORKFLOW_BOUNDS.memoryListMax),
    asOf: { runId: run.runId, sequence },
  };
  if (tags.length === 0)
    return (await listRunMemory(dependencies, run, scope, query)).map((entry) => ({ ...entry }));
  const found = new Map<string, Values>();
  for (const tag of tags)
    for (const entry of await listRunMemory(dependencies, run, scope, { ...query, tag }))
      found.set(entry.id, { ...entry });
  return [...found.values()]
    .toSorted(
      (one, other) =>
        readCreationTime(other) - readCreationTime(one) || (String(one["id"]) < String(other["id"]) ? -1 : 1),
    )
    .slice(0, limit);
}

function readCreationTime({ createdAt }: Values): number {
  return Date.parse(String(createdAt));
}
