/**
 * Owns: the operations that hosts call, and the wiring of what answers them. The loop that keeps every open coordination moving is
 * in `effects/dispatcher.ts`.
 */
import type { RunnerKind } from "../contracts/fact-fields.ts";
import type { TreeBudget } from "../contracts/usage.ts";
import type { Gate } from "../contracts/verification.ts";
import {
  createIdempotencyKey,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
} from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Clock } from "../ports/clock.ts";
import type { SpawnObserver } from "../ports/spawn-observer.ts";
import type { LaneRunner } from "../ports/lane-runner.ts";
import type { ContentStore } from "../ports/content-store.ts";
import { viewCoordination, type CoordinationView } from "./log/coordination-view.ts";
import { createChildWatch, type ChildWatch } from "./spawns/child-watch.ts";
import { createArbiter, type Arbiter } from "./arbiter/arbiter.ts";
import type { ArbitrationDependencies } from "./arbiter/arbiter-dependencies.ts";
import { createDispatcher, type Dispatcher } from "./effects/dispatcher.ts";
import { createOwnerTurns, type OwnerTurns } from "./environment/owner-turns.ts";
import type { GateDependencies } from "./environment/gate-dependencies.ts";
import { isStrictGate } from "../ledger/withheld-words.ts";
import { buildGate } from "./held-results/gate-of.ts";
import { createQuestionRequests } from "./questions/answer-question.ts";
import { createQuestionPolicy } from "./questions/question-policy.ts";
import type { QuestionRequests } from "./questions/question-requests.ts";
import { createQuestionWaits } from "./questions/question-waits.ts";
import { createHeldSessions, type HeldSessions } from "./held-results/withhold-text.ts";
import { createChildWords, type ChildWords } from "./results/child-words.ts";
import { createWithheldTexts, type WithheldTexts } from "./environment/withheld-texts.ts";
import { createPrivilegeGuard, type PrivilegeGuard } from "./privileges/privilege-guard.ts";
import type { PlanRequests } from "./plans/plan-requests.ts";
import { createForkSources } from "./log/carried-results.ts";
import { createPlanSource } from "./log/plan-source.ts";
import { createRunLog, type RunLog, type RunLogDependencies } from "./log/run-log.ts";
import type {
  PlanDependencies,
  RuntimeDependencies,
  RuntimeSettings,
} from "./environment/runtime-dependencies.ts";
import { createTurnsByName, type TurnsByName } from "../std/turns-by-name.ts";
import type { AdmitDependencies } from "./spawns/admit-spawn.ts";
import { withRules, type PolicyRules } from "./environment/policy-rules.ts";
import type { SpawnGate } from "./spawns/spawn-gate.ts";
import {
  createSpawnRequests,
  type SpawnRequestDependencies,
  type SpawnRequests,
} from "./spawns/spawn-requests.ts";
import { createPlanRequests } from "./plans/submit-plan.ts";
import {
  createSharedLedger,
  type SharedLedger,
  type SharedLedgerDependencies,
  type SharedWork,
} from "./ownership/shared-ledger.ts";
import { describeError } from "../std/describe-error.ts";
import { createUsageBook, type UsageBook } from "./usage/usage-book.ts";
import { createUsageRecorder, type UsageRecorder } from "./usage/usage-recorder.ts";

export interface CoordinatorDependencies
  extends Omit<RunLogDependencies, "ownRuns">, PlanDependencies, ArbitrationDependencies, GateDependencies {
  readonly content: ContentStore;
  readonly runner: SpawnObserver;
  readonly lanes: LaneRunner;
  readonly gate: SpawnGate;
  readonly settings: RuntimeSettings;
  readonly newCoordinationId: () => CoordinationId;
  /** Present where other gateways reach the ledger, too. */
  readonly shared?: Omit<SharedLedgerDependencies, "owners">;
  /** Holds the use of model calls until it is recorded, and may outlive this coordinator; absent: its own. */
  readonly usage?: UsageBook;
  /** Bounds the use of a coordination that a spawn opens. */
  readonly budget?: TreeBudget;
  /** Texts that were kept back and may outlive this coordinator; absent: its own. */
  readonly withheld?: WithheldTexts;
  /** When the process began, which may outlive this coordinator; absent: when that is made. */
  readonly beganAtMs?: EpochMs;
  /** Turns under way, which may outlive this coordinator; absent: its own. */
  readonly turns?: OwnerTurns;
}

/** Hears of the turns of sessions. */
export interface TurnHearing {
  turnBegan(session: SessionKey, runId: string): void;
  turnEnded(session: SessionKey, runId: string): Promise<void>;
}

export interface Coordinator extends SpawnRequests, PlanRequests, QuestionRequests, TurnHearing {
  /** Which sessions are gated, and what their agents say. */
  readonly heldSessions: HeldSessions;
  /** Compares what was asked of children with what really runs. */
  readonly childWatch: ChildWatch;
  /** Whose child a session is, and what becomes of what it says. */
  readonly childWords: ChildWords;
  /** Rules on what tool calls change. */
  readonly arbiter: Omit<Arbiter, "appended" | "opened" | "turnEnded">;
  /** Tells what sessions may do at most, by the ledger. */
  readonly privileges: PrivilegeGuard;
  /** Records what model calls used, and asks whether the budget stops a child. */
  readonly usageRecorder: Omit<UsageRecorder, "stop">;
  /** Returns a coordination as it is now; `undefined` for one that the ledger does not know. */
  view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
  /** Asks the host about every open step, then keeps sweeping. Resolves when the first pass is through. */
  start(): Promise<void>;
  /** Stops timers and waits for work under way; the ledger is closed by whoever opened it. */
  stop(): Promise<void>;
}

/**
 * Returns the gate that is to hold the result of a spawn, where there is one. An ACP session of the host cannot be
 * held back, so only a strict gate is reason to refuse it.
 */
function chooseSpawnGate(
  { gates, pluginGates, truth: { onMismatch } }: GateDependencies,
  agentId: AgentId,
  runner: RunnerKind,
): Gate | undefined {
  const gate = buildGate(gates, {
    agentId,
    runner,
    plugins: pluginGates.verifiersFor(agentId),
    onMismatch,
  });
  return runner === "acp" && gate && !isStrictGate(gate) ? undefined : gate;
}

/** The collaborators that the parts of one coordinator share. */
interface CoordinatorCore extends Omit<CoordinatorDependencies, "usage"> {
  readonly usage: UsageRecorder;
  readonly withheld: WithheldTexts;
  readonly runs: RunLog;
  readonly turns: OwnerTurns;
  readonly dispatcher: Dispatcher;
  readonly childTurns: TurnsByName;
  readonly opening: AdmitDependencies["opening"];
  readonly life: AbortController;
}

function createSpawnRequestDependencies(core: CoordinatorCore): SpawnRequestDependencies {
  const stopping = core.life.signal;
  return {
    ...core,
    stopping,
    ...createAdmitDependencies(core, undefined),
  };
}

/** Creates what admitting a spawn needs, under the given rules or, without any, under the configured ones. */
function createAdmitDependencies(core: CoordinatorCore, rules: PolicyRules | undefined): AdmitDependencies {
  const ruled = withRules(core, rules);
  return {
    ...ruled,
    ...(rules && { policy: rules.policy }),
    questions: () => createQuestionPolicy(ruled),
    gateOf: ({ agentId, runner }) => chooseSpawnGate(ruled, agentId, runner),
    under: (others) => createAdmitDependencies(core, others),
  };
}

/**
 * Returns the coordinator made of its parts, such as the run log, dispatcher, arbiter and requests. Nothing runs
 * before its `start`.
 */
export function createCoordinator(dependencies: CoordinatorDependencies): Coordinator {
  const shared = createOptionalSharedLedger(dependencies);
  const runs = createRunLog({
    ...dependencies,
    ...(shared && { ownRuns: { ...shared.ownRuns, ownerId: shared.ownerId } }),
    onAppended: (events, ownerSession) => {
      announceAppendedEvents(dependencies, events, ownerSession);
      arbiter.appended(events);
      if (events[0]) dispatcher.lookAt(events[0].runId);
      if (events.some(({ type }) => type === "escalation.closed")) waits.changed();
    },
    onDecided: (state, basis) => dispatcher.decided(state, basis),
  });
  const turns = dependencies.turns ?? createOwnerTurns();
  const childTurns = createTurnsByName();
  const worktreeTurns = createTurnsByName();
  const waits = createQuestionWaits(dependencies.clock);
  const withheld = dependencies.withheld ?? createOwnWithheldTexts(dependencies);
  const plans = createPlanSource(dependencies);
  const forks = createForkSources(dependencies);
  const arbiter = createArbiter({ ...dependencies, plans, runs });
  const book = dependencies.usage ?? createUsageBook("own");
  const usage = createUsageRecorder({ ...dependencies, runs, book });
  const common = { ...dependencies, runs, usage, turns, withheld, childTurns };
  const dispatcher: Dispatcher = createDispatcher({
    ...common,
    plans,
    forks,
    ...(shared && { ownRuns: shared.ownRuns, homes: shared.homes }),
    onOpen: arbiter.opened,
    arbiter,
    merging: createTurnsByName(),
    worktreeTurns,
    waits,
  });
  const opening = createTurnsByName();
  const core: CoordinatorCore = { ...common, dispatcher, opening, life: new AbortController() };
  const { lookAt, giveBack } = dispatcher;
  const planning: RuntimeDependencies = { ...core, plans, forks, worktreeTurns, lookAt, giveBack };
  const requested = { ...planning, usage, opening, newCoordinationId: dependencies.newCoordinationId };
  return {
    ...createSpawnRequests(createSpawnRequestDependencies(core)),
    view: (coordinationId) => readCurrentView(runs, coordinationId),
    ...createTurnHearing({ turns, arbiter, usage, clock: dependencies.clock }),
    arbiter,
    privileges: createPrivilegeGuard({
      ...dependencies,
      runs,
      beganAtMs: dependencies.beganAtMs ?? dependencies.clock.now(),
      isAway: (state) => shared?.homes.nameAway(state) !== undefined,
    }),
    usageRecorder: usage,
    ...createPlanRequests(requested),
    ...createQuestionRequests({ ...requested, waits }),
    heldSessions: createHeldSessions(planning),
    childWatch: createChildWatch(planning),
    childWords: createChildWords(planning),
    ...createStartAndStop(core, shared),
  };
}

interface TurnListeners {
  readonly turns: OwnerTurns;
  readonly arbiter: Arbiter;
  readonly usage: UsageRecorder;
  readonly clock: Clock;
}

/** Returns the handlers that tell the parts of the coordinator when a turn of a session begins and ends. */
function createTurnHearing({ turns, arbiter, usage, clock }: TurnListeners): TurnHearing {
  return {
    turnBegan: (session, runId) => turns.began(session, runId, clock.now()),
    turnEnded: async (session, runId) => {
      turns.ended(session, runId, clock.now());
      await Promise.all([arbiter.turnEnded(session), usage.runEnded(session)]);
    },
  };
}

function createStartAndStop(
  core: CoordinatorCore,
  shared: SharedLedger | undefined,
): Pick<Coordinator, "start" | "stop"> {
  const { usage, dispatcher, life } = core;
  return {
    start: async () => {
      await shared?.start(createSharedWork(core));
      if (!life.signal.aborted) await dispatcher.start();
    },
    stop: async () => {
      life.abort();
      // The dispatcher stops at once: nothing is recorded of agents that are ended meanwhile.
      await Promise.all([dispatcher.stop(), usage.stop(), shared?.stop()]);
      await shared?.leave();
    },
  };
}

function createOwnWithheldTexts({ refOf }: CoordinatorDependencies): WithheldTexts {
  return createWithheldTexts((session, text) => refOf(`${session}\0${text}`).sha256);
}

/** Creates the shared ledger with the id of its owner; `undefined` where no other gateway reaches the ledger. */
function createOptionalSharedLedger({ shared, store, clock, logger }: CoordinatorDependencies) {
  if (!shared) return undefined;
  const { owners } = store;
  return { ...createSharedLedger({ ...shared, owners, clock, logger }), ownerId: shared.owner.id };
}

/** Returns what this gateway does when it takes over a run, loses one, or others appended to one. */
function createSharedWork({ runs, dispatcher, logger }: CoordinatorCore): SharedWork {
  return {
    adopt: async (runId) => {
      try {
        await runs.catchUp(runId);
      } catch (error) {
        logger.warn({ runId }, `could not read what others appended: ${describeError(error)}`);
      }
      await dispatcher.adopt(runId);
    },
    drop: dispatcher.drop,
    follow: async (runId) => {
      await runs.catchUp(runId);
      dispatcher.lookAt(runId);
    },
  };
}

async function readCurrentView(runs: RunLog, id: CoordinationId): Promise<CoordinationView | undefined> {
  const state = await runs.state(id);
  return state.kind === "unopened" ? undefined : viewCoordination(state);
}

/** Tells `onAppended` of the events, and frees the places of the spawns that ended with them. */
function announceAppendedEvents(
  { onAppended, gate }: CoordinatorDependencies,
  events: readonly RunEvent[],
  ownerSession: SessionKey,
): void {
  onAppended?.(events, ownerSession);
  giveBackPlacesOfEnded(gate, events);
}

/**
 * Frees the places that the ended spawns have in the gate. A spawn has its place under the key of its first attempt,
 * whichever attempt ends it: a result may have been revised. The child of a result that is held runs no more.
 */
function giveBackPlacesOfEnded(gate: SpawnGate, events: readonly RunEvent[]): void {
  for (const { type, runId, payload } of events) {
    if (
      type === "result.held" ||
      type === "step.completed" ||
      type === "step.failed" ||
      type === "step.timed_out" ||
      type === "step.skipped"
    )
      gate.leave(createIdempotencyKey(runId, payload.stepId, 1));
  }
}
