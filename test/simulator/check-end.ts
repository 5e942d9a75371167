/** Owns: what must be true when a schedule is over: every run has its end, every promise is kept, and the host agrees. */
import { problemsOf } from "../crash/plan-check.ts";
import type { PlayedPlan } from "../crash/plan-play.ts";
import { checkForks } from "./check-forks.ts";
import { checkJudgements } from "./check-judgements.ts";
import { checkPromises } from "./check-promises.ts";
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
  );
  for (const runId of world.journal.runIds()) problems.push(...checkPlan(world, runId));
  await Promise.resolve();
}

/** The checks of the sweep of plans, for one plan of several. */
function checkPlan(world: World, runId: string): string[] {
  const { journal, ledger, deaths, hasGoneBack } = world;
  const events = journal.eventsOf(runId);
  const [created] = events;
  if (created?.type !== "coordination.created" || !created.payload.plan) return [];
  const played = {
    schedule: undefined as never,
    events,
    ledger,
    host: hostOf(world, runId),
    // `checkPromises` holds the answers against the log.
    answers: [],
    deaths,
    hasGoneBack,
    problems: [],
    calls: undefined as never,
  } satisfies PlayedPlan;
  const found = problemsOf(played);
  return found.filter((problem) => isFair(world, problem)).map((each) => `${runId}: ${each}`);
}

/** A gateway that took a plan over cannot stop the agents of another one, nor ask its host. */
function isFair({ schedule }: World, problem: string): boolean {
  const isOfAnotherHost = /was left at work|was at work after the end|which is gone|which did not come back/u;
  return schedule.setup.gateways === 1 || !isOfAnotherHost.test(problem);
}

/** The host of a plan is the host of every gateway that drove it. */
function hostOf({ gateways }: World, runId: string): PlayedPlan["host"] {
  const isOfRun = (key: string): boolean => key.startsWith(`${runId}:`);
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

function sumCounts<K>(counts: readonly ReadonlyMap<K, number>[]): Map<K, number> {
  const sum = new Map<K, number>();
  for (const count of counts) for (const [key, times] of count) sum.set(key, (sum.get(key) ?? 0) + times);
  return sum;
}
