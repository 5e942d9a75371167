/**
 * Owns: the operations that hosts call, and the loop that keeps every open coordination moving.
 *
 * D1 the intent is on disk before `admitSpawn` resolves, hence before the host acts. H3 whose child a session is follows
 * from the ledger's reference for its key. Recovery is the same loop: it asks the host about open steps at start and
 * again every `sweepMs`.
 */
import type { Command } from "../contracts/commands.ts";
import type { CoordinationEnvelope } from "../contracts/envelope.ts";
import { stepError, type RunnerKind } from "../contracts/fact-fields.ts";
import type { TreeBudget } from "../contracts/usage.ts";
import type { Gate } from "../contracts/verification.ts";
import {
  addMs,
  createIdempotencyKey,
  type AgentId,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../contracts/ids.ts";
import type { ChildEnding, ObservedChild } from "../contracts/observation.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import { envelopeOf } from "../dispatch/envelope-of.ts";
import { isContinuedByUs } from "../dispatch/effects/plan-dispatch.ts";
import { commandFromOutcome } from "../dispatch/effects/rule-on-observation.ts";
import { childOf, type Coordination, type Step } from "../ledger/state.ts";
import type { SpawnObserver } from "../ports/spawn-observer.ts";
import type { LaneRunner } from "../ports/lane-runner.ts";
import type { ContentStore } from "../ports/content-store.ts";
import { admitSpawn, type Admission, type AdmitParts, type SpawnRequest } from "./spawns/admit-spawn.ts";
import { viewCoordination, type CoordinationView } from "./log/coordination-view.ts";
import { createChildWatch, type ChildWatch } from "./spawns/child-watch.ts";
import { createArbiter, type Arbiter } from "./arbiter/arbiter.ts";
import type { ArbitrationParts } from "./arbiter/arbiter-parts.ts";
import { createDispatcher, type Dispatcher } from "./effects/dispatcher.ts";
import { createOwnerTurns } from "./effects/owner-turns.ts";
import type { GateParts } from "./environment/gate-parts.ts";
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
import { createRunLog, type RunLog, type RunLogParts, type Submitted } from "./log/run-log.ts";
import type { PlanParts, RuntimeParts, Settings } from "./environment/runtime-parts.ts";
import { createTurnsByName } from "../std/turns-by-name.ts";
import type { SpawnGate } from "./spawns/spawn-gate.ts";
import { findClaimedStep, type SpawnClaim } from "./spawns/spawn-claim.ts";
import { stepOfChild } from "./log/step-of-child.ts";
import { createPlanRequests } from "./plans/submit-plan.ts";
import { createUsageBook, type UsageBook } from "./usage/usage-book.ts";
import { createUsageRecorder, type UsageRecorder } from "./usage/usage-recorder.ts";

export interface CoordinatorParts extends RunLogParts, PlanParts, ArbitrationParts, GateParts {
  readonly content: ContentStore;
  readonly runner: SpawnObserver;
  readonly lanes: LaneRunner;
  readonly gate: SpawnGate;
  readonly settings: Settings;
  readonly newCoordinationId: () => CoordinationId;
  /** Holds the use of model calls until it is recorded, and may outlive this coordinator; absent: its own. */
  readonly usage?: UsageBook;
  /** Bounds the use of a coordination that a spawn opens. */
  readonly budget?: TreeBudget;
  /** Texts that were kept back and may outlive this coordinator; absent: its own. */
  readonly withheld?: WithheldTexts;
}

/** The requests of a session about its spawns. */
export interface SpawnRequests {
  /** Records the intent to spawn and returns the envelope. @throws CoordinationError when it could not be recorded. */
  admitSpawn(request: SpawnRequest): Promise<Admission>;
  /** Records that the host created the child. Returns the envelope with its target, or nothing for a claim that the ledger does not bear out. */
  confirmSpawn(claim: SpawnClaim, child: ObservedChild): Promise<CoordinationEnvelope | undefined>;
  /** Records that the host did not create a child. */
  refuseSpawn(claim: SpawnClaim, message: string): Promise<void>;
  /** Records what came of a spawn that the host answered with an error: the child, where its own records have one. */
  failSpawn(claim: SpawnClaim, message: string): Promise<void>;
  /** Records how a child ended; sessions that are no child of ours are ignored. */
  endChild(childSessionKey: SessionKey, ending: ChildEnding): Promise<void>;
  /** The envelope of the step that a session works on (H3). */
  envelopeForChild(childSessionKey: SessionKey): Promise<CoordinationEnvelope | undefined>;
}

export interface Coordinator extends SpawnRequests, PlanRequests, QuestionRequests {
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
  turnBegan(session: SessionKey, runId: string): void;
  turnEnded(session: SessionKey, runId: string): Promise<void>;
  /** Asks the host about every open step, then keeps sweeping. Resolves when the first pass is through. */
  start(): Promise<void>;
  /** Stops timers and waits for work under way; the ledger is closed by whoever opened it. */
  stop(): Promise<void>;
}

function createAdmitParts(parts: CoordinatorParts, runs: RunLog): AdmitParts {
  return {
    ...parts,
    runs,
    opening: new Map<string, Promise<unknown>>(),
    questions: () => questionPolicyOf(parts),
    gateOf: ({ agentId, runner }) => spawnGateOf(parts, agentId, runner),
  };
}

/**
 * Returns the gate of a spawn. An ACP session of the host cannot be held back, so only a strict gate is reason to
 * refuse it.
 */
function spawnGateOf(
  { gates, pluginGates, truth: { onMismatch } }: GateParts,
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

interface Core extends Omit<CoordinatorParts, "usage"> {
  readonly usage: UsageRecorder;
  readonly withheld: WithheldTexts;
  readonly runs: RunLog;
  readonly dispatcher: Dispatcher;
}

function createSpawnRequests(core: Core, admission: Parameters<typeof admitThroughGate>[0]): SpawnRequests {
  return {
    admitSpawn: async (request) => {
      // The budget is held against what the log says.
      if (core.budget) await core.usage.flush();
      return admitThroughGate(admission, request);
    },
    confirmSpawn: (claim, child) => confirmSpawn(core, claim, child),
    refuseSpawn: (claim, message) => refuseSpawn(core, claim, message),
    failSpawn: (claim, message) => failSpawn(core, claim, message),
    endChild: (childSessionKey, ending) => endChild(core, childSessionKey, ending),
    envelopeForChild: async (childSessionKey) => {
      const found = await stepOfChild(core, childSessionKey);
      return found && envelopeOf(found.state, found.step.spec.stepId);
    },
  };
}

export function createCoordinator(parts: CoordinatorParts): Coordinator {
  const runs = createRunLog({
    ...parts,
    onAppended: (events, ownerSession) => {
      parts.onAppended?.(events, ownerSession);
      leaveGate(parts.gate, events);
      arbiter.appended(events);
      if (events.some(({ type }) => type === "escalation.closed")) waits.changed();
    },
    onDecided: (state) => dispatcher.changed(state),
  });
  const turns = createOwnerTurns();
  const waits = createQuestionWaits(parts.clock);
  const withheld =
    parts.withheld ?? createWithheldTexts((session, text) => parts.refOf(`${session}\0${text}`).sha256);
  const plans = createPlanSource(parts);
  const forks = createForkSources(parts);
  const arbiter = createArbiter({
    ...parts,
    plans,
    runs: watchRuns(runs, (state) => dispatcher.watch(state)),
  });
  const dispatcher: Dispatcher = createDispatcher({
    ...parts,
    runs,
    turns,
    plans,
    forks,
    withheld,
    onOpen: arbiter.opened,
    arbiter,
    merging: createTurnsByName(),
    isTold: (runId, tellingId) => waits.isClaimed(runId, tellingId),
  });
  const usage = createUsageRecorder({ ...parts, runs, book: parts.usage ?? createUsageBook("own") });
  const core: Core = { ...parts, runs, dispatcher, withheld, usage };
  const { watch, giveBack } = dispatcher;
  const planning: RuntimeParts = { ...core, plans, forks, watch, giveBack };
  const requested = { ...planning, newCoordinationId: parts.newCoordinationId };
  return {
    ...createSpawnRequests(core, { gate: parts.gate, dispatcher, admitting: createAdmitParts(parts, runs) }),
    view: (coordinationId) => readView(runs, coordinationId),
    turnBegan: (session, runId) => turns.began(session, runId, parts.clock.now()),
    turnEnded: async (session, runId) => {
      turns.ended(session, runId, parts.clock.now());
      await Promise.all([arbiter.turnEnded(session), usage.runEnded(session)]);
    },
    arbiter,
    privileges: createPrivilegeGuard({ ...parts, runs }),
    usageRecorder: usage,
    ...createPlanRequests(requested),
    ...createQuestionRequests({ ...requested, waits }),
    heldSessions: createHeldSessions(planning),
    childWatch: createChildWatch(planning),
    childWords: createChildWords(planning),
    start: () => dispatcher.start(),
    stop: () => usage.stop().then(() => dispatcher.stop()),
  };
}

async function readView(runs: RunLog, id: CoordinationId): Promise<CoordinationView | undefined> {
  const state = await runs.state(id);
  return state.kind === "unopened" ? undefined : viewCoordination(state);
}

interface Admitting {
  readonly gate: SpawnGate;
  readonly dispatcher: Dispatcher;
  readonly admitting: AdmitParts;
}

/** A spawn is admitted at once, after a short wait for another to end, or refused in words for its model. */
async function admitThroughGate(
  { gate, dispatcher, admitting }: Admitting,
  request: SpawnRequest,
): Promise<Admission> {
  const entry = await gate.enter(request.sourceSession);
  if (entry.kind === "refused") return { kind: "refused", code: "LANE_FULL", reason: entry.reason };
  try {
    const admission = await admitSpawn(admitting, request);
    if (admission.kind === "refused") return admission;
    const { coordinationId, stepId, parentStepId } = admission.envelope;
    entry.bind(createIdempotencyKey(coordinationId, stepId, 1));
    if (parentStepId) dispatcher.giveBack(coordinationId, parentStepId);
    dispatcher.watch(admission.state);
    return admission;
  } finally {
    entry.leave();
  }
}

/** A question to people is due later, and nothing else may happen until then. */
function watchRuns(runs: RunLog, watch: (state: Coordination) => void): RunLog {
  return {
    ...runs,
    submit: async (...request) => {
      const submitted = await runs.submit(...request);
      watch(submitted.state);
      return submitted;
    },
  };
}

function leaveGate(gate: SpawnGate, events: readonly RunEvent[]): void {
  for (const { type, runId, payload } of events) {
    if (type === "step.completed" || type === "step.failed" || type === "step.timed_out")
      gate.leave(createIdempotencyKey(runId, payload.stepId, payload.attempt));
  }
}

async function submit(core: Core, runId: CoordinationId, commands: readonly Command[]): Promise<Submitted> {
  const submitted = await core.runs.submit(runId, commands);
  if (submitted.kind === "refused") {
    const { code, reason } = submitted;
    core.logger.info({ runId, refusal: code, command: commands[0]?.type }, `refused: ${reason}`);
  }
  core.dispatcher.watch(submitted.state);
  return submitted;
}

async function confirmSpawn(
  core: Core,
  claim: SpawnClaim,
  child: ObservedChild,
): Promise<CoordinationEnvelope | undefined> {
  const step = await findClaimedStep(core, claim);
  if (!step) return undefined;
  const { attempt } = step.phase;
  const { stepId } = claim;
  const submitted = await submit(core, claim.coordinationId, [
    { type: "acknowledgeStep", stepId, attempt, ...child, via: "hook" },
  ]);
  if (submitted.kind !== "refused") return envelopeOf(submitted.state, stepId);
  const { code } = submitted;
  const isExtra = code === "CHILD_TAKEN" || code === "OTHER_CHILD" || code === "STEP_ENDED";
  return isExtra ? adopt(core, claim, { step, child }) : undefined;
}

/**
 * A child beyond those that the ledger expects gets a step of its own: two calls that could not be told apart made two
 * children, or the host made one after its step had been given up.
 */
async function adopt(
  core: Core,
  { coordinationId }: SpawnClaim,
  { step, child }: { readonly step: Step; readonly child: ObservedChild },
): Promise<CoordinationEnvelope | undefined> {
  const { parentStepId, runner, agentId, name, sourceSession, input, timeoutMs, collect, call } = step.spec;
  const { gate, requested, privilege } = step.spec;
  const spawn = {
    runner,
    agentId,
    sourceSession,
    input,
    timeoutMs,
    collect,
    call,
    ...(gate && { gate }),
    ...(requested && { requested }),
    ...(privilege && { privilege }),
  };
  const adopted = await submit(core, coordinationId, [
    { type: "admitSpawn", ...spawn, ...(parentStepId && { parentStepId }), ...(name && { name }), child },
  ]);
  return adopted.kind === "refused" || !adopted.stepId
    ? undefined
    : envelopeOf(adopted.state, adopted.stepId);
}

async function refuseSpawn(core: Core, claim: SpawnClaim, message: string): Promise<void> {
  const step = await findClaimedStep(core, claim);
  if (!step) return;
  const { attempt } = step.phase;
  const error = stepError("spawn_refused", message);
  const { coordinationId, stepId } = claim;
  await submit(core, coordinationId, [
    { type: "failStep", stepId, attempt, error, cancelled: false, via: "hook" },
  ]);
}

/** The host writes the record of a child after it made the child: more than 0.1 s later was seen. */
const RECORD_LATE_MS = 2_000;

/** An error may come after the child was made. Once that is on record, the step is no longer refused. */
async function failSpawn(core: Core, claim: SpawnClaim, message: string): Promise<void> {
  const { clock, dispatcher } = core;
  const { coordinationId, stepId } = claim;
  const isUnanswered = async (): Promise<boolean> =>
    (await findClaimedStep(core, claim))?.phase.status === "dispatched";
  if (!(await isUnanswered())) return;
  await dispatcher.askHost(coordinationId, stepId);
  if (!(await isUnanswered())) return;
  await new Promise<void>((resolve) => clock.wakeAt(addMs(clock.now(), RECORD_LATE_MS), resolve));
  await dispatcher.askHost(coordinationId, stepId);
  await refuseSpawn(core, claim, message);
}

async function endChild(core: Core, childSessionKey: SessionKey, ending: ChildEnding): Promise<void> {
  // The child's last words may still be on their way to the disk, and decide what becomes of it.
  await core.withheld.settled(childSessionKey);
  const found = await stepOfChild(core, childSessionKey);
  if (found?.state.kind !== "open") return;
  const { state, step } = found;
  // D3: the child of an older attempt says nothing about this one.
  if (isFollowed(step) || childOf(step.phase)?.childSessionKey !== childSessionKey) return;
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const isLost = ending.outcome === "completed" && core.withheld.isLost(childSessionKey);
  await submit(core, state.coordinationId, [
    isLost ? createLostResult(about) : commandFromOutcome(about, ending, "hook"),
  ]);
}

/** G1: its parent has a placeholder, and there is nothing to rule on. */
function createLostResult(about: { readonly stepId: StepId; readonly attempt: number }): Command {
  const error = stepError("result_lost", "what the agent said was held back and could not be kept");
  return { type: "failStep", ...about, error, cancelled: false, via: "hook" };
}

/** True when somebody follows the step to its end: the step of a plan, or a spawn that was continued. */
function isFollowed(step: Step): boolean {
  return step.spec.planned !== undefined || isContinuedByUs(step);
}
