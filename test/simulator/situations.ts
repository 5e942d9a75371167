/** Owns: the situations that schedules must reach: a simulator whose gateways refuse everything would find nothing. */
import type { FactType } from "../../src/agents/coordination/contracts/facts.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
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

interface AnswerablePromise {
  readonly answer?: { readonly kind: string };
}

const isAccepted = ({ answer }: AnswerablePromise): boolean => answer?.kind === "accepted";

/** A step was admitted under other settings than those of the newest process, and ended after that had begun. */
function hasStepOfTwoConfigurations({ configured, journal }: World): boolean {
  const changed = configured.filter(
    ({ gateway, setup, fromMs }) =>
      configured.findLast((earlier) => earlier.gateway === gateway && earlier.fromMs < fromMs)?.setup !==
      setup,
  );
  const admitted = journal.filter("step.admitted");
  return journal.filter("step.completed").some((completed) => {
    const before = admitted.find(
      ({ runId, payload }) => runId === completed.runId && payload.stepId === completed.payload.stepId,
    );
    const isBetween = (atMs: number): boolean =>
      before !== undefined && Date.parse(before.timestamp) < atMs && atMs < Date.parse(completed.timestamp);
    return changed.some(({ fromMs }) => isBetween(fromMs));
  });
}

/** Two machines wrote to a log, the second one behind the first. */
function hasTimeGoneBack(events: readonly RunEvent[]): boolean {
  return events.some(({ timestamp }, index) => timestamp < (events[index - 1]?.timestamp ?? ""));
}

function isAnyOpenAt(journal: World["journal"], atMs: number): boolean {
  return journal.runIds().some((runId) => {
    const events = journal.eventsOf(runId);
    const end = events.find(({ type }) => type === "coordination.terminal");
    return Date.parse(events[0]?.timestamp ?? "") <= atMs && (!end || Date.parse(end.timestamp) > atMs);
  });
}

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
  "a run goes from a gateway to one with another clock": ({ areClocksApart, journal }) =>
    areClocksApart && journal.runIds().some((runId) => hasTimeGoneBack(journal.eventsOf(runId))),
  "a plan that nothing could be written of for minutes goes on and ends well": ({ fullTimes, journal }) =>
    fullTimes.some(({ fromMs, untilMs }) =>
      journal
        .filter("coordination.terminal")
        .some(
          ({ runId, payload, timestamp }) =>
            (payload.status === "success" || payload.status === "partial") &&
            Date.parse(journal.eventsOf(runId)[0]?.timestamp ?? "") < fromMs &&
            Date.parse(timestamp) >= untilMs &&
            untilMs >= fromMs + 3 * 60_000,
        ),
    ),
  "an attempt fails with a sentence that is cut": ({ hostileStyle, journal }) =>
    hostileStyle !== undefined &&
    journal.filter("step.failed").some(({ payload }) => payload.error.message.length === 300),
  "a process has another configuration": ({ configured, gateways }) => configured.length > gateways.length,
  "a step begun under one configuration ends under another": hasStepOfTwoConfigurations,
  "a run is pruned": ({ ledger }) => ledger.traces.runs.size > 0,
  "a run is pruned while another is open": ({ ledger, journal }) =>
    [...ledger.traces.runs.values()].some(({ prunedAtMs }) => isAnyOpenAt(journal, prunedAtMs)),
  "a pruned run leaves a child that stays bound": ({ ledger }) => ledger.traces.bound.length > 0,
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
