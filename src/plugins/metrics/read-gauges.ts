/** Owns: how much is open in a ledger, and how large it is. Bounded: of more, it is enough to know that there are many. */
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { QUESTIONS_NAME } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { LedgerStore } from "../../agents/coordination/ports/ledger-store.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import { giveWay } from "../../platform/give-way.ts";
import { createFoldedRuns, type FoldedRuns } from "./folded-runs.ts";

export interface MeasuredLedger extends Pick<LedgerStore, "read" | "list" | "holders"> {
  counts(): Promise<{ readonly coordinations: number; readonly workflowRuns: number }>;
  measureBytes(): Promise<number>;
}

export interface Gauges {
  readonly openCoordinations: number;
  readonly openSteps: number;
  readonly openQuestions: number;
  readonly bytes: number;
  readonly coordinations: number;
  readonly workflowRuns: number;
}

export const GAUGE_BOUNDS = {
  /** Running coordinations that are counted, and whose open steps are. */
  runningMax: 10_000,
  /** So many of these, with questions, are looked into. */
  askingMax: 1_000,
};

const RUNS_PER_PAGE = 250;
/** The weight of the states that are remembered, in events of their logs. */
const WEIGHT_MAX = 200_000;

/**
 * Creates the function that reads the present gauges of a ledger: open coordinations, steps and questions, its size
 * and its counts. It keeps the states that it has read.
 */
export function createGaugeReader(reader: () => Promise<MeasuredLedger>): () => Promise<Gauges> {
  const asking = createFoldedRuns(reader, WEIGHT_MAX);
  return async () => {
    const ledger = await reader();
    const { lengths, openSteps } = await readRunning(ledger);
    const { coordinations, workflowRuns } = await ledger.counts();
    return {
      openCoordinations: lengths.size,
      openSteps,
      openQuestions: await countAllOpenQuestions(ledger, { lengths, asking }),
      bytes: await ledger.measureBytes(),
      coordinations,
      workflowRuns,
    };
  };
}

/** The coordinations that have not ended, and the number of their open steps. */
interface OpenCoordinations {
  /** How long the log of each is. */
  readonly lengths: ReadonlyMap<CoordinationId, number>;
  readonly openSteps: number;
}

/**
 * Reads which coordinations run, up to `GAUGE_BOUNDS.runningMax`, with the length of each log, and how many steps they
 * have open.
 */
async function readRunning(ledger: MeasuredLedger): Promise<OpenCoordinations> {
  const lengths = new Map<CoordinationId, number>();
  let openSteps = 0;
  const query = { status: "running", limit: RUNS_PER_PAGE } as const;
  let page = await ledger.list(query);
  for (;;) {
    for (const { runId, length, summary } of page) {
      lengths.set(runId, length);
      openSteps += summary.steps.open;
    }
    const after = page.at(-1);
    if (!after || page.length < RUNS_PER_PAGE || lengths.size >= GAUGE_BOUNDS.runningMax)
      return { lengths, openSteps };
    await giveWay();
    page = await ledger.list({ ...query, after });
  }
}

/**
 * Counts the open questions of running coordinations, in at most `GAUGE_BOUNDS.askingMax` of those that ask; a damaged
 * log counts as none.
 */
async function countAllOpenQuestions(
  ledger: MeasuredLedger,
  { lengths, asking }: { readonly lengths: OpenCoordinations["lengths"]; readonly asking: FoldedRuns },
): Promise<number> {
  let questions = 0;
  for (const runId of await ledger.holders(QUESTIONS_NAME, GAUGE_BOUNDS.askingMax)) {
    const length = lengths.get(runId);
    if (length === undefined) asking.drop(runId);
    else questions += await countOpenQuestionsOfRun(asking, runId, length);
  }
  return questions;
}

async function countOpenQuestionsOfRun(
  asking: FoldedRuns,
  runId: CoordinationId,
  length: number,
): Promise<number> {
  // `verify` tells what is damaged there.
  const state = await readUnlessDamaged(() => asking.read(runId, length));
  return state?.kind === "open" ? state.openQuestions.size : 0;
}
