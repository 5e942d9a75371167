/**
 * Owns: how the histories `after-0.1.0-*.jsonl` were recorded: `node test/replay/record-histories.ts` writes those that are not
 * there, each with the states that it folds to (`*.folded.jsonl`). It never writes over one: a release that records differently
 * gives its histories another name. Coordinators and workflow hosts are real; the simulator, with the seeds below, plays what
 * is around them, so that the same seeds may play something else once the simulator has changed.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { makeSchedule } from "../simulator/make-schedule.ts";
import { playSchedule } from "../simulator/play.ts";
import { makeWorkflowSchedule } from "../simulator/workflows/make-workflow-schedule.ts";
import { playWorkflows } from "../simulator/workflows/play-workflows.ts";
import { foldThroughout, foldWithNotes, foldWorkflowEvents } from "./fold-histories.ts";
import { recordNotes } from "./record-notes.ts";

interface ChosenRun {
  readonly seed: number;
  readonly runId: string;
}

/** One run of each family, and small ones. Runs of one file have different ids. */
const CHOSEN: Readonly<Record<string, readonly ChosenRun[]>> = {
  // One seed each, because claims have their tokens from the ledger.
  // A result that people let through, with a late answer that does not count.
  "claims-and-gate": [{ seed: 29, runId: "co-g1-1-1" }],
  "claims-approved": [{ seed: 500, runId: "co-g1-1-1" }],
  "claims-denied": [{ seed: 821, runId: "plan-2" }],
  "claims-renewed": [{ seed: 328, runId: "co-g1-1-1" }],
  // A write into which another is merged, and a claim that is delegated.
  "claims-merged": [{ seed: 197, runId: "plan-2" }],
  // A retry, steps that are skipped, a budget that runs out, and a plan inside another that came after a first one.
  plans: [
    { seed: 171, runId: "plan-1" },
    { seed: 94, runId: "plan-3" },
    { seed: 12, runId: "inside-1" },
  ],
  // A question that is forwarded, a retry that a person grants, and what their answers close.
  questions: [
    { seed: 47, runId: "co-g1-1-1" },
    { seed: 339, runId: "plan-1" },
  ],
  // A plan that people do not let begin, verdicts, and a check without one.
  gates: [
    { seed: 151, runId: "plan-1" },
    { seed: 96, runId: "fork-3" },
  ],
  // A fork that takes over what its source had completed, with that source.
  forks: [
    { seed: 371, runId: "plan-1" },
    { seed: 371, runId: "fork-2" },
  ],
  // Work that is merged back, and work that cannot be.
  worktrees: [
    { seed: 206, runId: "plan-2" },
    { seed: 131, runId: "fork-3" },
  ],
  // A plan that lends some of its budget, and a fork whose result is revised.
  loans: [
    { seed: 321, runId: "inside-1" },
    { seed: 207, runId: "fork-3" },
  ],
};

/** A run with a run within it, whose supervisor asks an agent and hands over to a worker, and with a question. */
const WORKFLOW = {
  seed: 279,
  runIds: ["asked-3", "run-0e40069533ce8a4b8d57cf775d2b9ad1", "run-2c11569f427be2e32601912d4700d640"],
};

async function recordChosen(chosen: readonly ChosenRun[]): Promise<RunEvent[][]> {
  const runs: RunEvent[][] = [];
  for (const { seed, runId } of chosen) {
    const { world } = await playSchedule(makeSchedule(seed));
    runs.push(findRun(world.ledger.events(), runId));
  }
  return runs;
}

async function recordWorkflow(): Promise<WorkflowEvent[][]> {
  const { world } = await playWorkflows(makeWorkflowSchedule(WORKFLOW.seed));
  const runs = [...world.ledger.runs.values()].map(({ events }) =>
    events.map((text) => JSON.parse(text) as WorkflowEvent),
  );
  return WORKFLOW.runIds.map((runId) => findRun(runs, runId));
}

function findRun<Event extends { readonly runId: string }>(
  runs: readonly (readonly Event[])[],
  runId: string,
): Event[] {
  const found = runs.find(([first]) => first?.runId === runId);
  if (!found) throw new Error(`the seed plays no ${runId} any more`);
  return [...found];
}

function writeLines(name: string, lines: readonly object[]): void {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(join(import.meta.dirname, name), text, { flag: "wx" });
}

async function writeHistory<Event extends object>(
  name: string,
  record: () => Promise<Event[][]>,
  foldOne: (events: readonly Event[]) => object,
): Promise<void> {
  if (existsSync(join(import.meta.dirname, `${name}.jsonl`))) return;
  const runs = await record();
  writeLines(`${name}.jsonl`, runs.flat());
  writeLines(
    `${name}.folded.jsonl`,
    runs.map((events) => foldThroughout(events, foldOne)),
  );
}

for (const [family, chosen] of Object.entries(CHOSEN))
  await writeHistory(`after-0.1.0-${family}`, () => recordChosen(chosen), foldWithNotes);
await writeHistory("after-0.1.0-notes", recordNotes, foldWithNotes);
await writeHistory("after-0.1.0.workflow", recordWorkflow, foldWorkflowEvents);
