/**
 * Owns: the operations that hosts call, and the loop that keeps every open coordination moving. Recovery is the same loop: it asks
 * the host about open steps at start and again every `sweepMs`.
 */
import type { RunnerKind } from "../contracts/fact-fields.ts";
import type { TreeBudget } from "../contracts/usage.ts";
import type { Gate } from "../contracts/verification.ts";
import {
  createIdempotencyKey,
  type AgentId,
  type CoordinationId,
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
import { isStrict } from "../ledger/withheld-words.ts";
import { gateOf } from "./held-results/gate-of.ts";
import { createQuestionRequests } from "./questions/answer-question.ts";
import { questionPolicyOf } from "./questions/question-policy.ts";
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
import type { PlanDependencies, RuntimeDependencies, Settings } from "./environment/runtime-dependencies.ts";
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
  readonly settings: Settings;
  readonly newCoordinationId: () => CoordinationId;
  /** Present where other gateways reach the ledger, too. */
  readonly shared?: Omit<SharedLedgerDependencies, "owners">;
  /** Holds the use of model calls until it is recorded, and may outlive this coordinator; absent: its own. */
  readonly usage?: UsageBook;
  /** Bounds the use of a coordination that a spawn opens. */
  readonly budget?: TreeBudget;
  /** Texts that were kept back and may outlive this coordinator; absent: its own. */
  readonly withheld?: WithheldTexts;
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
 * Returns the gate of a spawn. An ACP session of the host cannot be held back, so only a strict gate is reason to
 * refuse it.
 */
function spawnGateOf(
  { gates, pluginGates, truth: { onMismatch } }: GateDependencies,
  agentId: AgentId,
  runner: RunnerKind,
): Gate | undefined {
  const gate = gateOf(gates, {
    agentId,
    runner,
    plugins: pluginGates.verifiersFor(agentId),
    onMismatch,
  });
  return runner === "acp" && gate && !isStrict(gate) ? undefined : gate;
}

interface Core extends Omit<CoordinatorDependencies, "usage"> {
  readonly usage: UsageRecorder;
  readonly withheld: WithheldTexts;
  readonly runs: RunLog;
  readonly turns: OwnerTurns;
  readonly dispatcher: Dispatcher;
  readonly childTurns: TurnsByName;
  readonly opening: AdmitDependencies["opening"];
  readonly life: AbortController;
}

function createSpawnRequestDependencies(core: Core): SpawnRequestDependencies {
  const stopping = core.life.signal;
  return {
    ...core,
    stopping,
    ...createAdmitDependencies(core, undefined),
  };
}

function createAdmitDependencies(core: Core, rules: PolicyRules | undefined): AdmitDependencies {
  const ruled = withRules(core, rules);
  return {
    ...ruled,
    ...(rules && { policy: rules.policy }),
    questions: () => questionPolicyOf(ruled),
    gateOf: ({ agentId, runner }) => spawnGateOf(ruled, agentId, runner),
    under: (others) => createAdmitDependencies(core, others),
  };
}

export function createCoordinator(dependencies: CoordinatorDependencies): Coordinator {
  const shared = createShared(dependencies);
  const runs = createRunLog({
    ...dependencies,
    ...(shared && { ownRuns: { ...shared.ownRuns, ownerId: shared.ownerId } }),
    onAppended: (events, ownerSession) => {
      tellOthers(dependencies, events, ownerSession);
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
  const withheld = dependencies.withheld ?? createOwnTexts(dependencies);
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
  const core: Core = { ...common, dispatcher, opening, life: new AbortController() };
  const { lookAt, giveBack } = dispatcher;
  const planning: RuntimeDependencies = { ...core, plans, forks, worktreeTurns, lookAt, giveBack };
  const requested = { ...planning, usage, opening, newCoordinationId: dependencies.newCoordinationId };
  return {
    ...createSpawnRequests(createSpawnRequestDependencies(core)),
    view: (coordinationId) => readView(runs, coordinationId),
    ...createTurnHearing({ turns, arbiter, usage, clock: dependencies.clock }),
    arbiter,
    privileges: createPrivilegeGuard({ ...dependencies, runs }),
    usageRecorder: usage,
    ...createPlanRequests(requested),
    ...createQuestionRequests({ ...requested, waits }),
    heldSessions: createHeldSessions(planning),
    childWatch: createChildWatch(planning),
    childWords: createChildWords(planning),
    ...createLife(core, shared),
  };
}

interface TurnListeners {
  readonly turns: OwnerTurns;
  readonly arbiter: Arbiter;
  readonly usage: UsageRecorder;
  readonly clock: Clock;
}

function createTurnHearing({ turns, arbiter, usage, clock }: TurnListeners): TurnHearing {
  return {
    turnBegan: (session, runId) => turns.began(session, runId, clock.now()),
    turnEnded: async (session, runId) => {
      turns.ended(session, runId, clock.now());
      await Promise.all([arbiter.turnEnded(session), usage.runEnded(session)]);
    },
  };
}

function createLife(core: Core, shared: SharedLedger | undefined): Pick<Coordinator, "start" | "stop"> {
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

function createOwnTexts({ refOf }: CoordinatorDependencies): WithheldTexts {
  return createWithheldTexts((session, text) => refOf(`${session}\0${text}`).sha256);
}

function createShared({ shared, store, clock, logger }: CoordinatorDependencies) {
  if (!shared) return undefined;
  const { owners } = store;
  return { ...createSharedLedger({ ...shared, owners, clock, logger }), ownerId: shared.owner.id };
}

function createSharedWork({ runs, dispatcher, logger }: Core): SharedWork {
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

async function readView(runs: RunLog, id: CoordinationId): Promise<CoordinationView | undefined> {
  const state = await runs.state(id);
  return state.kind === "unopened" ? undefined : viewCoordination(state);
}

/** Tells what was appended to those who listen beside the parts of the coordinator. */
function tellOthers(
  { onAppended, gate }: CoordinatorDependencies,
  events: readonly RunEvent[],
  ownerSession: SessionKey,
): void {
  onAppended?.(events, ownerSession);
  leaveGate(gate, events);
}

/**
 * A spawn has its place under the key of its first attempt, whichever attempt ends it: a result may have been revised. The
 * child of a result that is held runs no more.
 */
function leaveGate(gate: SpawnGate, events: readonly RunEvent[]): void {
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
