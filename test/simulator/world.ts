/** Owns: the simulated world: several gateways, their hosts, people and files over one ledger, on one virtual clock. */
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { HumanChannel } from "../../src/agents/coordination/ports/human-channel.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { WithheldTexts } from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import { rulerOf, rulePassing, type Ruler } from "../crash/plan-gates.ts";
import { planHost, type PlanHost } from "../crash/plan-host.ts";
import { createFakeClock, START_MS, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger, type MemoryLedger } from "../support/memory-store.ts";
import { createValueFiles, type SceneFiles } from "../support/value-files.ts";
import { checkShownWords } from "./check-shown-words.ts";
import { checkRemoval, checkWrite } from "./check-worktrees.ts";
import { createDecoder } from "./decode-once.ts";
import { createJournal, type Journal } from "./journal.ts";
import { chooseManner } from "./make-plan.ts";
import type { Schedule } from "./moves.ts";
import { createLife, type Life } from "./process-life.ts";
import { createPromises, type Promises } from "./promises.ts";
import { callProcess, countWork, settleLives } from "./simulated-processes.ts";
import { composeGateway } from "./simulated-gateway.ts";
import { checkOut, createRepository, type SimulatedRepository } from "./simulated-worktrees.ts";
import { createSpawnHost, type SpawnedChild, type SpawnHost } from "./spawn-host.ts";

export interface Gateway {
  readonly index: number;
  readonly name: string;
  readonly owner: SessionKey;
  readonly spawns: SpawnHost;
  readonly agents: PlanHost;
  life: Life;
  coordinator: Coordinator;
  texts: WithheldTexts;
  processes: number;
}

export interface World {
  readonly schedule: Schedule;
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly journal: Journal;
  readonly files: SceneFiles;
  readonly repository: SimulatedRepository;
  readonly gateways: readonly Gateway[];
  readonly children: SpawnedChild[];
  readonly promises: Promises;
  readonly problems: string[];
  readonly deaths: number[];
  readonly lines: string[];
  readonly endedProcesses: Set<string>;
  /** The clock was put back at some time: what is compared by it may be off. */
  hasGoneBack: boolean;
  /** When the clock was set, in the order of setting. */
  readonly jumpsAtMs: number[];
  /** Numbers calls of tools. */
  calls: number;
  /** Calls that change files and were not yet answered whether they may. */
  waitingWrites: number;
  /** Counts calls of ports and timers. */
  work: number;
  /** Nothing goes wrong any more. */
  isCalm: boolean;
}

export function createWorld(schedule: Schedule): World {
  const clock = createFakeClock(START_MS, () => settleLives(gateways.map(({ life }) => life)));
  const ledger = createMemoryLedger(createDecoder());
  const gateways: Gateway[] = [];
  const files = createValueFiles();
  if (schedule.setup.hasWorktrees) checkOut(files);
  const world: World = {
    schedule,
    clock,
    ledger,
    journal: createJournal(ledger),
    files,
    repository: createRepository({
      seed: schedule.seed,
      files,
      findRun: (folder) =>
        gateways.flatMap(({ agents }) => agents.runs).findLast(({ order }) => order.folder === folder),
      hearWrite: (write) => void world.problems.push(...checkWrite(world, write)),
      hearRemoval: (name, run) => void world.problems.push(...checkRemoval(world, name, run)),
      report: (problem) => void world.problems.push(problem),
    }),
    gateways,
    children: [],
    promises: createPromises(),
    problems: [],
    deaths: [],
    lines: [],
    endedProcesses: new Set(),
    hasGoneBack: false,
    jumpsAtMs: [],
    calls: 0,
    waitingWrites: 0,
    work: 0,
    isCalm: false,
  };
  for (let index = 0; index < schedule.setup.gateways; index += 1) gateways.push(createGateway(world, index));
  return world;
}

function createGateway(world: World, index: number): Gateway {
  const { schedule, clock, journal, children } = world;
  const dice = diceOf(deriveSeed(schedule.seed, `spawn host ${index}`));
  const gateway: Gateway = {
    index,
    name: `g${index + 1}`,
    owner: (index === 0 ? "agent:main:main" : `agent:main:owner-${index + 1}`) as SessionKey,
    spawns: createSpawnHost({ gateway: index, clock, children, dice }),
    agents: planHost({
      clock,
      mannerOf: (key, isDelivery) => chooseManner(schedule, key, isDelivery),
      isIntended: (key) => journal.hasDispatched(key),
      report: async (session, report) => {
        const answer = await callGateway(gateway, ({ coordinator }) => coordinator.report(session, report));
        return answer?.kind;
      },
    }),
    life: createLife(clock, () => undefined),
    coordinator: undefined as unknown as Coordinator,
    texts: undefined as unknown as WithheldTexts,
    processes: 0,
  };
  return gateway;
}

/** Starts a process of the gateway and lets it take over its work. */
export function bootGateway(world: World, gateway: Gateway): void {
  const { schedule, clock, ledger, files, repository, endedProcesses, lines } = world;
  gateway.processes += 1;
  const process = `${gateway.name}-${gateway.processes}`;
  const onEnd = (downMs: number): void => {
    world.deaths.push(clock.now());
    if (schedule.setup.isOneMachine) endedProcesses.add(process);
    gateway.agents.processDied();
    clock.wakeAt((clock.now() + (world.isCalm ? 0 : downMs)) as EpochMs, () => {
      if (gateway.life === life) bootGateway(world, gateway);
    });
  };
  const life = createLife(
    clock,
    onEnd,
    () => countWork(world),
    (problem) => world.problems.push(problem),
  );
  gateway.life = life;
  const { coordinator, texts } = composeGateway(
    {
      setup: schedule.setup,
      seed: schedule.seed,
      name: gateway.name,
      process,
      clock,
      ledger,
      files,
      worktrees: repository.worktrees,
      spawns: gateway.spawns,
      agents: gateway.agents.runner,
      ruler: chooseRuler(schedule),
      channel: createChannel(world),
      isProcessGone: (each) => endedProcesses.has(each),
      say: (line) => void lines.push(line),
      report: (problem) => void world.problems.push(problem),
    },
    life,
  );
  Object.assign(gateway, { coordinator, texts });
  void coordinator.start().catch((error: unknown) => {
    lines.push(`${process} could not start: ${String(error)}`);
  });
}

/** A spawn's check may hang; the plans' ones are what they are in the sweep of plans. */
function chooseRuler({ seed, setup }: Schedule): Ruler {
  if (setup.focus) return ruleHarshly(seed);
  const manner = diceOf(deriveSeed(seed, "ruler")).oneOf(["passes", "any", "any", "harsh", "harsh"]);
  if (manner === "passes") return rulePassing;
  return manner === "any" ? rulerOf(seed) : ruleHarshly(seed);
}

/** Sends most results back, or fails them, or is not sure. */
function ruleHarshly(seed: number): Ruler {
  return ({ key, result: { stepId, attempt } }) => {
    const dice = diceOf(deriveSeed(seed, `harsh ${stepId}:${attempt}:${key}`));
    const verdict = dice.oneOf(["pass", "revise", "revise", "fail"]);
    const confidence = dice.oneOf([0.2, 0.9, 0.9]);
    if (dice.chance(0.15))
      return Promise.resolve({ kind: "none", because: "unavailable", message: "nobody there" });
    return Promise.resolve({
      kind: "verdict",
      verdict,
      criteria: [key],
      confidence,
      agentId: `check:${key}`,
    });
  };
}

/** People hear of most questions. */
function createChannel(world: World): HumanChannel {
  const { seed } = world.schedule;
  return {
    notify: ({ noticeId, question }) => {
      world.promises.notices.push(noticeId);
      world.problems.push(...checkShownWords(world, question));
      const dice = diceOf(deriveSeed(seed, noticeId));
      if (dice.chance(0.1)) return Promise.reject(new Error("the channel broke"));
      if (dice.chance(0.05)) return new Promise(() => undefined);
      return Promise.resolve(
        dice.chance(0.8)
          ? { kind: "delivered", tries: 1 }
          : { kind: "failed", tries: 3, message: "nobody there" },
      );
    },
  };
}

/** Resolves with nothing where the process died, or the call failed. */
export function callGateway<T>(
  gateway: Gateway,
  work: (gateway: Gateway) => Promise<T>,
): Promise<T | undefined> {
  return callProcess(gateway.life, () => work(gateway));
}

/** Counts the events that are in the ledger now. */
export function countEvents({ journal }: World): number {
  journal.readNew();
  return journal.events.length;
}
