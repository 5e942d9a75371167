/** Owns: the situations that schedules must reach: a simulator whose gateways refuse everything would find nothing. */
import type { FactType } from "../../src/agents/coordination/contracts/facts.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { makeSchedule } from "./make-schedule.ts";
import { playSchedule } from "./play.ts";
import type { Simulation } from "./simulation.ts";
import { makeWorkflowSchedule } from "./workflows/make-workflow-schedule.ts";
import { playWorkflows } from "./workflows/play-workflows.ts";
import type { ControlPromise } from "./workflows/workflow-promises.ts";
import type { WorkflowWorld } from "./workflows/workflow-world.ts";
import type { World } from "./world.ts";

/** Says by the name of a situation whether a play reached it. */
type Table<W> = Readonly<Record<string, (world: W) => boolean>>;

const hasFact =
  (type: FactType) =>
  ({ journal }: World): boolean =>
    journal.filter(type).length > 0;

interface Answering {
  readonly answer?: { readonly kind: string };
}

const isAccepted = ({ answer }: Answering): boolean => answer?.kind === "accepted";

const SITUATIONS: Table<World> = {
  "a plan is accepted": ({ promises }) => promises.plans.some(isAccepted),
  "a spawn is admitted": ({ promises }) => promises.spawns.some(({ admitted }) => admitted !== undefined),
  "an agent of a plan spawns": ({ journal }) =>
    journal
      .filter("step.admitted")
      .some(({ runId, payload }) => runId.startsWith("plan-") && payload.parentStepId !== undefined),
  "a child is confirmed": ({ promises }) => promises.spawns.some(({ confirmed }) => confirmed !== undefined),
  "an answer is accepted": ({ promises }) => promises.answers.some(isAccepted),
  "a write is granted": ({ promises }) => promises.grants.length > 0,
  "a fork is accepted": ({ promises }) => promises.forks.some(isAccepted),
  "a retry is asked for and accepted": ({ promises }) =>
    promises.requests.some((request) => request.kind === "retry" && isAccepted(request)),
  "a cancellation is accepted": ({ promises }) =>
    promises.requests.some((request) => request.kind === "cancel" && isAccepted(request)),
  "a failed attempt is tried again": ({ journal }) =>
    journal.events.some(({ type, payload }) => type === "step.dispatched" && payload.attempt > 1),
  "a plan inside is lent budget": hasFact("budget.lent"),
  "a result is sent back": hasFact("result.revised"),
  "two writers meet": hasFact("conflict.detected"),
  "a worktree is merged": hasFact("worktree.merged"),
  "people let a plan go on": ({ journal }) =>
    journal.filter("escalation.closed").some(({ payload }) => payload.resolution === "continued"),
  "a process dies": ({ deaths }) => deaths.length > 0,
};

interface WorkflowAnswering {
  readonly answered?: { readonly kind: string };
}

const isDone = ({ answered }: WorkflowAnswering): boolean => answered?.kind === "done";

const hasControlled =
  (kind: ControlPromise["kind"]) =>
  ({ promises }: WorkflowWorld): boolean =>
    promises.controlled.some((promise) => promise.kind === kind && isDone(promise));

const hasEvent =
  (type: WorkflowEvent["type"]) =>
  ({ ledger }: WorkflowWorld): boolean =>
    [...ledger.runs.values()].some(({ events }) => events.some((text) => text.includes(`"type":"${type}"`)));

const WORKFLOW_SITUATIONS: Table<WorkflowWorld> = {
  "a run is begun": ({ promises }) => promises.created.some(isDone),
  "a run is forked": ({ promises }) => promises.forks.some(isDone),
  "an answer is taken": ({ promises }) => promises.answers.some(isDone),
  "a run is cancelled": hasControlled("cancel"),
  "a run is paused": hasControlled("hold"),
  "a run goes on after its pause": hasControlled("resume"),
  "a worker is begun": hasEvent("node.dispatched"),
  "a result is judged": hasEvent("agent.verified"),
  "a tool is called": hasEvent("agent.toolCalled"),
  "a failed node is tried again": hasEvent("node.retried"),
  "a run completes": hasEvent("run.completed"),
  "a process dies": ({ endedProcesses }) => endedProcesses.size > 0,
};

/** Plays schedules until all situations have been reached, and names those that were not. */
async function findUnreachedOf<W>(
  table: Table<W>,
  { firstSeed, schedules }: Seeds,
  play: (seed: number) => Promise<{ readonly world: W }>,
): Promise<string[]> {
  let unreached = Object.entries(table);
  for (let seed = firstSeed; seed < firstSeed + schedules && unreached.length > 0; seed += 1) {
    const { world } = await play(seed);
    unreached = unreached.filter(([, isReached]) => !isReached(world));
  }
  return unreached.map(([situation]) => situation);
}

export interface Seeds {
  readonly firstSeed: number;
  readonly schedules: number;
}

/** Returns the situations that no schedule of these seeds reaches. */
export function findUnreached(world: Simulation["world"], seeds: Seeds): Promise<string[]> {
  return world === "coordinations"
    ? findUnreachedOf(SITUATIONS, seeds, (seed) => playSchedule(makeSchedule(seed)))
    : findUnreachedOf(WORKFLOW_SITUATIONS, seeds, (seed) => playWorkflows(makeWorkflowSchedule(seed)));
}
