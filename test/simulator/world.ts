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
import { spoilWords, type HostileStyle } from "./hostile-words.ts";
import { createJournal, type Journal } from "./journal.ts";
import { chooseManner } from "./make-plan.ts";
import type { Schedule, Setup } from "./moves.ts";
import { createLife, failWrites, type Life } from "./process-life.ts";
import { createMachineClock, type MachineClock } from "./machine-clock.ts";
import { createPromises, type Promises } from "./promises.ts";
import { callProcess, countWork, settleLives } from "./simulated-processes.ts";
import { composeGateway } from "./simulated-gateway.ts";
import { checkOut, createRepository, type SimulatedRepository } from "./simulated-worktrees.ts";
import { createSpawnHost, type SpawnedChild, type SpawnHost } from "./spawn-host.ts";

export interface Gateway {
  readonly index: number;
  readonly name: string;
  readonly owner: SessionKey;
  /** Tells the time of its machine. */
  readonly clock: MachineClock;
  readonly spawns: SpawnHost;
  readonly agents: PlanHost;
  /** With the configuration of the newest process, or of the next one. */
  setup: Setup;
  /** The words that the next process has from the one before. */
  keptTexts?: WithheldTexts | undefined;
  life: Life;
  coordinator: Coordinator;
  texts: WithheldTexts;
  processes: number;
}

/** Which configuration a gateway had from when on. */
export interface ConfigurationPeriod {
  readonly gateway: number;
  readonly setup: Setup;
  readonly fromMs: number;
  /** When its process ended. */
  untilMs: number;
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
  /** The configuration of every process that there was, in the order of their starts. */
  readonly configured: ConfigurationPeriod[];
  /** The clock was put back at some time: what is compared by it may be off. */
  hasGoneBack: boolean;
  /** The clocks of gateways differ: by the world's, timers may be early or late. */
  areClocksApart: boolean;
  /** When the clock was set, in the order of setting. */
  readonly jumpsAtMs: number[];
  /** Numbers calls of tools. */
  calls: number;
  /** Calls that change files and were not yet answered whether they may. */
  waitingWrites: number;
  /** Counts calls of ports and timers. */
  work: number;
  /** Such words are in all that is said; absent: there are none. */
  hostileStyle?: HostileStyle;
  /** When nobody could write. */
  readonly fullTimes: { readonly fromMs: number; readonly untilMs: number }[];
  /** Until when nobody can write. */
  fullUntilMs: number;
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
    configured: [],
    hasGoneBack: false,
    areClocksApart: false,
    fullTimes: [],
    fullUntilMs: 0,
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
  const { schedule, journal, children } = world;
  const clock = createMachineClock(world.clock);
  const dice = diceOf(deriveSeed(schedule.seed, `spawn host ${index}`));
  const gateway: Gateway = {
    index,
    name: `g${index + 1}`,
    owner: (index === 0 ? "agent:main:main" : `agent:main:owner-${index + 1}`) as SessionKey,
    clock,
    spawns: createSpawnHost({ gateway: index, clock, children, dice }),
    agents: planHost({
      clock,
      mannerOf: (key, isDelivery) => chooseManner(schedule, key, isDelivery),
      spoil: (text) => spoilWords(world, text),
      isIntended: (key) => journal.hasDispatched(key),
      report: async (session, report) => {
        const answer = await callGateway(gateway, ({ coordinator }) => coordinator.report(session, report));
        return answer?.kind;
      },
    }),
    setup: schedule.setup,
    life: createLife(clock, () => undefined),
    coordinator: undefined as unknown as Coordinator,
    texts: undefined as unknown as WithheldTexts,
    processes: 0,
  };
  return gateway;
}

/** Starts a process of the gateway and lets it take over its work. */
export function bootGateway(world: World, gateway: Gateway): void {
  const { schedule, ledger, files, repository, endedProcesses, lines } = world;
  const { setup, keptTexts, clock } = gateway;
  gateway.processes += 1;
  gateway.keptTexts = undefined;
  const configured: ConfigurationPeriod = {
    gateway: gateway.index,
    setup,
    fromMs: world.clock.now(),
    untilMs: Infinity,
  };
  world.configured.push(configured);
  const process = `${gateway.name}-${gateway.processes}`;
  const onEnd = (downMs: number): void => {
    world.deaths.push(clock.now());
    configured.untilMs = world.clock.now();
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
  if (world.clock.now() < world.fullUntilMs) failWrites(life, world.fullUntilMs - world.clock.now());
  const { coordinator, texts } = composeGateway(
    {
      setup,
      texts: keptTexts,
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

/** True where some process lets several write one file whatever it is. */
export function mayMergeAll({ configured }: World): boolean {
  return configured.some(({ setup }) => setup.conflicts.strategy === "merge_if_safe");
}
