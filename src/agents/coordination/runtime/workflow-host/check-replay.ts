/**
 * Owns: deriving a stored run again and telling where it first differs from its record. No run is made of it, nothing is performed
 * and nothing is written; models are taken at their recorded words.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import type { WorkflowEntry, WorkflowStore } from "../../ports/workflow-store.ts";
import { beginWorkflow } from "../../workflow/state/evolve-workflow.ts";
import type { NodeGraph } from "../../workflow/state/node-graph.ts";
import { needsPlay } from "../../workflow/node-contract/conformance-parts.ts";
import type { NodePlay, WorkflowSettings } from "../../workflow/node-contract/node-type.ts";
import { replayPart, type ReplayedPart } from "../../workflow/replay-workflow.ts";
import type { WorkflowRun } from "../../workflow/state/workflow-state.ts";
import { loadRunnableWorkflow } from "./records/run-book.ts";

export interface CheckedRun {
  readonly runId: CoordinationId;
  /** The first event that was derived. */
  readonly from: number;
  /** The first event that was not looked at. */
  readonly to: number;
  readonly difference?: {
    readonly sequence: number;
    readonly type: string;
    readonly nodeId?: string;
    readonly why: string;
  };
}

type ReplayReads = Pick<WorkflowStore, "read" | "entry" | "definition" | "pruned">;

/** The collaborators with which a run is derived again. */
export interface ReplayCheck {
  readonly from: number;
  readonly settings: WorkflowSettings;
  /** Loads what plays the conformance suite's scripts; asked only for a run that was played. */
  readonly loadPlay?: () => Promise<NodePlay>;
}

const PAGE = 1_000;

/**
 * Derives a workflow run again from its log, and returns the first difference between what it would append and what is
 * recorded, if any. Writes nothing. @throws CoordinationError `COORDINATION_NOT_FOUND`, `EVENT_UNREADABLE`,
 * `INPUT_INVALID`, `LEDGER_CORRUPT`
 */
export async function checkReplay(
  store: ReplayReads,
  runId: CoordinationId,
  check: ReplayCheck,
): Promise<CheckedRun> {
  const { from } = check;
  const entry = await store.entry(runId);
  if (!entry)
    throw new CoordinationError("COORDINATION_NOT_FOUND", `no workflow run ${JSON.stringify(runId)}`);
  const [first] = await store.read(runId, { from: 0, limit: 1 });
  if (!first) throw await createShortLogError(store, entry, 0);
  if (from > entry.length)
    throw new CoordinationError("INPUT_INVALID", `--from: the log ends before ${from}, at ${entry.length}`);
  const begun = beginWorkflow(first, entry.origin);
  const { graph } = await loadRunnableWorkflow({ store }, begun.started.definition);
  // Events that a fork took are its source's, and derived with it.
  const derivesFrom = Math.max(from, entry.origin?.until ?? 0);
  const { run, difference } = await deriveRun(store, begun, {
    graph,
    settings: await addPlayIfNeeded(graph, check),
    derivesFrom,
    entry,
  });
  return { runId, from: derivesFrom, to: run.nextSequence, ...(difference && { difference }) };
}

/** Returns the settings, with the conformance play where the graph has nodes that need it. */
async function addPlayIfNeeded(
  graph: NodeGraph,
  { settings, loadPlay }: ReplayCheck,
): Promise<WorkflowSettings> {
  return loadPlay && needsPlay(graph) ? { ...settings, play: await loadPlay() } : settings;
}

/** The graph and the settings that a run is derived with, and from which event on. */
interface DerivationInput {
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly derivesFrom: number;
  /** The run as it was when its log was first read. */
  readonly entry: WorkflowEntry;
}

/** A run that was derived from its log, and the first event that differs. */
interface DerivedRun {
  readonly run: WorkflowRun;
  readonly difference?: NonNullable<CheckedRun["difference"]>;
}

/** Derives the run from its log page by page, up to its end or to the first event that differs. */
async function deriveRun(
  store: ReplayReads,
  begun: WorkflowRun,
  deriving: DerivationInput,
): Promise<DerivedRun> {
  const { graph, settings, derivesFrom, entry } = deriving;
  const { length } = entry;
  let run = begun;
  let limit = PAGE;
  let askedEffectId: string | undefined;
  while (run.nextSequence < length) {
    const wanted = Math.min(limit, length - run.nextSequence);
    const events = await store.read(run.runId, { from: run.nextSequence, limit: wanted });
    const recorded = { events, isAll: run.nextSequence + events.length >= length };
    const part: ReplayedPart = replayPart(run, { graph, settings, derivesFrom, askedEffectId }, recorded);
    ({ run } = part);
    if (part.then.kind === "diverged") return { run, difference: describeDivergence(part.then.divergence) };
    if (part.then.kind === "over") return { run };
    if (part.then.kind === "ask") askedEffectId = part.then.effect.id;
    else if (part.events.length > 0) limit = PAGE;
    else if (events.length < wanted)
      throw await createShortLogError(store, entry, run.nextSequence + events.length);
    else limit *= 2;
  }
  return { run };
}

/** Creates the error for a log that ends before its counted length: it was pruned meanwhile, or is damaged. */
async function createShortLogError(
  store: ReplayReads,
  { runId, length }: WorkflowEntry,
  end: number,
): Promise<CoordinationError> {
  if (await store.pruned.find(runId))
    return new CoordinationError("COORDINATION_NOT_FOUND", `${runId} was pruned from the ledger meanwhile`);
  const message = `the log of ${runId} ends at ${end}, its run counts ${length} events`;
  return new CoordinationError("LEDGER_CORRUPT", message);
}

function describeDivergence({
  event,
  point,
}: (ReplayedPart["then"] & { readonly kind: "diverged" })["divergence"]): NonNullable<
  CheckedRun["difference"]
> {
  const { sequence, type, nodeId } = event;
  return { sequence, type, why: point, ...(nodeId !== undefined && { nodeId }) };
}
