/** Owns: playing a schedule of workflow runs to its end, with all checks after every move. */
import { verifyWorkflowRuns } from "../../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { hasStopped, playMoves, settle } from "../simulated-processes.ts";
import type { Finding } from "../simulation.ts";
import { checkWorkflowEnd } from "./check-workflow-end.ts";
import { createWorkflowLogCheck } from "./check-workflow-log.ts";
import { endTroubles, giveAnswer, performWorkflowMove } from "./perform-workflow-move.ts";
import type { WorkflowMove, WorkflowSchedule } from "./workflow-moves.ts";
import {
  bootHost,
  callHost,
  CALLERS,
  createWorkflowWorld,
  listOpenRuns,
  listQuestions,
  type WorkflowWorld,
} from "./workflow-world.ts";

export interface PlayedWorkflows {
  readonly finding?: Finding;
  readonly world: WorkflowWorld;
}

/** A run that goes on for longer than that hangs: each ends by its own limit before. */
const LONG_MS = 3 * 3_600_000;
const PACE_MS = 5_000;
/** After the end, for what comes too late. */
const AFTERMATH_MS = 40_000;

export async function playWorkflows(schedule: WorkflowSchedule): Promise<PlayedWorkflows> {
  const world = createWorkflowWorld(schedule);
  const check = createWorkflowLogCheck(world);
  for (const host of world.hosts) bootHost(world, host);
  await settle();
  const { problems: found } = world;
  const perform = (move: WorkflowMove): Promise<void> => performWorkflowMove(world, move);
  const finding = await playMoves({ moves: schedule.moves, problems: found, perform, check });
  if (finding) return { world, finding };
  await playToEnd(world);
  check();
  if (world.problems.length === 0) world.problems.push(...checkWorkflowEnd(world));
  const { problems } = await verifyWorkflowRuns(world.ledger.open());
  world.problems.push(...problems.map(({ message }) => `verify: ${message}`));
  if (world.problems.length === 0) return { world };
  return { world, finding: { problems: [...world.problems], atMove: schedule.moves.length } };
}

/** Answers whatever is asked, and resumes whatever is paused. */
async function answerAndResume(world: WorkflowWorld): Promise<void> {
  const [host] = world.hosts;
  if (host) {
    for (const question of listQuestions(world))
      giveAnswer(world, host, { question, value: "yes", by: "alice" });
    for (const runId of listOpenRuns(world)) void callHost(host, (each) => each.resume(CALLERS.alice, runId));
  }
  await world.clock.advance(PACE_MS);
}

/** Whatever is asked is answered, whatever is paused goes on, until every run has ended. */
async function playToEnd(world: WorkflowWorld): Promise<void> {
  await endTroubles(world);
  const { clock, hosts } = world;
  const endMs = clock.now() + LONG_MS;
  const isOpen = (): boolean =>
    clock.now() < endMs && world.problems.length === 0 && listOpenRuns(world).length > 0;
  // Calls under way may still open something.
  do {
    await clock.advance(AFTERMATH_MS);
    while (isOpen()) await answerAndResume(world);
    await clock.advance(AFTERMATH_MS);
  } while (isOpen());
  for (const { host } of hosts)
    if (!(await hasStopped(host.stop()))) world.problems.push("the last stop() waits for something");
}
