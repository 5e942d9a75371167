/** Owns: what must be true when a schedule is over: every run has its end, every promise is kept, and the host agrees. */
import { isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { problemsOf } from "../crash/plan-check.ts";
import type { PlayedPlan } from "../crash/plan-play.ts";
import { checkForks } from "./check-forks.ts";
import { checkJudgements } from "./check-judgements.ts";
import { checkPromises } from "./check-promises.ts";
import { checkReplay } from "./check-replay.ts";
import { checkSpawns } from "./check-spawns.ts";
import { checkWorktreesAtEnd } from "./check-worktrees.ts";
import type { World } from "./world.ts";

export async function checkEnd(world: World): Promise<void> {
  const { ledger, problems } = world;
  for (const [runId, { summary }] of ledger.runs)
    if (summary.status === "running") problems.push(`D5: ${runId} has no end`);
  const { claims } = ledger;
  for (const { runId, stepId, resource } of claims.entries.values())
    problems.push(`A2: ${runId}/${stepId} holds ${resource} for ever`);
  problems.push(
    ...checkPromises(world),
    ...checkForks(world),
    ...checkJudgements(world),
    ...checkWorktreesAtEnd(world),
    ...checkSpawns(world),
    ...(await checkReplay(world)),
  );
  for (const runId of world.journal.runIds()) problems.push(...checkPlan(world, runId));
}

/** The checks of the sweep of plans, for one plan of several. */
function checkPlan(world: World, runId: string): string[] {
  const { journal, ledger, deaths, hasGoneBack, areClocksApart } = world;
  const all = journal.eventsOf(runId);
  const events = all.filter((event) => !isOfSpawn(event));
  const [created] = events;
  if (created?.type !== "coordination.created" || !created.payload.plan) return [];
  const played = {
    schedule: undefined as never,
    events,
    spawns: all.filter(isFact).filter(isOfSpawn),
    ledger,
    host: hostOf(world, runId),
    // `checkPromises` holds the answers against the log.
    answers: [],
    deaths,
    hasGoneBack,
    areClocksApart,
    problems: [],
    calls: undefined as never,
  } satisfies PlayedPlan;
  const found = problemsOf(played);
  // Spawns of the agents of the plan count for its budget, and are not among these events.
  const isCounted = (problem: string): boolean =>
    events.length === all.length || !problem.startsWith("people were asked after");
  return found
    .filter((problem) => isFair(world, problem) && isCounted(problem))
    .map((each) => `${runId}: ${each}`);
}

/** True for what is recorded of a spawn of an agent, which `checkSpawns` looks at. */
function isOfSpawn({ payload }: RunEvent): boolean {
  return "stepId" in payload && payload.stepId?.startsWith("@step-") === true;
}

/** A gateway that took a plan over cannot stop the agents of another one, nor ask its host. */
function isFair({ schedule }: World, problem: string): boolean {
  const isOfAnotherHost = /was left at work|was at work after the end|which is gone|which did not come back/u;
  return schedule.setup.gateways === 1 || !isOfAnotherHost.test(problem);
}

/** The host of a plan is the host of every gateway that drove it, without the turns that tell of what its agents spawned. */
function hostOf({ gateways, journal }: World, runId: string): PlayedPlan["host"] {
  const turnsOfSpawns = new Set(
    journal.eventsOf(runId).flatMap((event) => (isOfSpawn(event) ? listToldTurns(event) : [])),
  );
  const isOfRun = (key: string): boolean => key.startsWith(`${runId}:`) && !turnsOfSpawns.has(key);
  const hosts = gateways.map(({ agents }) => agents);
  return {
    runner: undefined as never,
    runs: hosts.flatMap(({ runs }) => runs.filter(({ key }) => isOfRun(key))),
    asked: sumCounts(hosts.map((host) => new Map([...host.asked].filter(([key]) => isOfRun(key))))),
    cancels: hosts.flatMap(({ cancels }) => cancels.filter(({ key }) => isOfRun(key))),
    refused: new Set(hosts.flatMap(({ refused }) => [...refused].filter(isOfRun))),
    processDied: () => undefined,
  };
}

/** Names the turns in which a session may be told of an event: of a question, its answer, or what became of a result. */
function listToldTurns({ type, runId, payload }: RunEvent): string[] {
  if (type === "coordination.escalated")
    return ["question", "answer"].map((kind) => `${runId}:${kind}:${payload.escalationId}:told`);
  return type === "step.dispatched" ? [`${runId}:result:${payload.stepId}:${payload.attempt}:told`] : [];
}

function sumCounts<K>(counts: readonly ReadonlyMap<K, number>[]): Map<K, number> {
  const sum = new Map<K, number>();
  for (const count of counts) for (const [key, times] of count) sum.set(key, (sum.get(key) ?? 0) + times);
  return sum;
}
