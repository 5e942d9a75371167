/**
 * Owns: the operations that hosts call, and the loop that keeps every open coordination moving.
 *
 * D1 the intent is on disk before `admitSpawn` resolves, hence before the host acts. H3 whose child a session is follows
 * from the ledger's reference for its key. Recovery is the same loop: it asks the host about open steps at start and
 * again every `sweepMs`.
 */
import type { Command } from "../contracts/commands.ts";
import type { CoordinationEnvelope } from "../contracts/envelope.ts";
import { stepError } from "../contracts/facts.ts";
import type { CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { ChildEnding, ObservedChild } from "../contracts/observation.ts";
import { envelopeOf } from "../dispatch/envelope-of.ts";
import { outcomeCommand } from "../dispatch/rule-on-observation.ts";
import { childOf, type Step } from "../ledger/state.ts";
import { childName } from "../ledger/summary.ts";
import type { AgentRunner } from "../ports/agent-runner.ts";
import type { LaneRunner } from "../ports/lane-runner.ts";
import type { ContentStore } from "../ports/content-store.ts";
import { admitSpawn, type Admission, type SpawnRequest } from "./admit-spawn.ts";
import { createDispatcher, type Dispatcher } from "./dispatcher.ts";
import { createOwnerTurns } from "./owner-turns.ts";
import { createRunLog, type RunLog, type RunLogParts, type Submitted } from "./run-log.ts";

export interface Settings {
  /** How long a step may run when the spawn names no limit of its own. */
  readonly stepTimeoutMs: number;
  /** Quiet time after which a coordination without open steps ends. */
  readonly settleMs: number;
  /** How long a spawn may stay unconfirmed by the host. */
  readonly acknowledgeMs: number;
  /** How often open steps are compared with the host's records. */
  readonly sweepMs: number;
  /** How long texts are kept; 0 keeps none. */
  readonly contentMs: number;
}

export interface CoordinatorParts extends RunLogParts {
  readonly content: ContentStore;
  readonly runner: AgentRunner;
  readonly lanes: LaneRunner;
  readonly settings: Settings;
  readonly newCoordinationId: () => CoordinationId;
}

/** Names the attempt that an envelope speaks of, with the session that asked for it. */
export interface SpawnClaim {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly sourceSession: SessionKey;
  readonly toolCallId?: string;
}

export interface Coordinator {
  /** Records the intent to spawn and returns the envelope. @throws CoordinationError when it could not be recorded. */
  admitSpawn(request: SpawnRequest): Promise<Admission>;
  /** Records that the host created the child. Returns the envelope with its target, or nothing for a claim that the ledger does not bear out. */
  confirmSpawn(claim: SpawnClaim, child: ObservedChild): Promise<CoordinationEnvelope | undefined>;
  /** Records that the host did not create a child. */
  refuseSpawn(claim: SpawnClaim, message: string): Promise<void>;
  /** Records how a child ended; sessions that are no child of ours are ignored. */
  endChild(childSessionKey: SessionKey, ending: ChildEnding): Promise<void>;
  /** The envelope of the step that a session works on (H3). */
  envelopeForChild(childSessionKey: SessionKey): Promise<CoordinationEnvelope | undefined>;
  turnBegan(session: SessionKey, runId: string): void;
  turnEnded(session: SessionKey, runId: string): void;
  /** Asks the host about every open step, then keeps sweeping. Resolves when the first pass is through. */
  start(): Promise<void>;
  /** Stops timers and waits for work under way; the ledger is closed by whoever opened it. */
  stop(): Promise<void>;
}

interface Core extends CoordinatorParts {
  readonly runs: RunLog;
  readonly dispatcher: Dispatcher;
}

export function createCoordinator(parts: CoordinatorParts): Coordinator {
  const runs = createRunLog(parts);
  const turns = createOwnerTurns();
  const dispatcher = createDispatcher({ ...parts, runs, turns });
  const core: Core = { ...parts, runs, dispatcher };
  const admitting = { ...parts, runs, opening: new Map<string, Promise<unknown>>() };
  return {
    admitSpawn: async (request) => {
      const admission = await admitSpawn(admitting, request);
      if (admission.kind === "admitted") dispatcher.watch(admission.state);
      return admission;
    },
    confirmSpawn: (claim, child) => confirmSpawn(core, claim, child),
    refuseSpawn: (claim, message) => refuseSpawn(core, claim, message),
    endChild: (childSessionKey, ending) => endChild(core, childSessionKey, ending),
    envelopeForChild: async (childSessionKey) => {
      const found = await parts.store.find(childName(childSessionKey));
      return found?.stepId && envelopeOf(await runs.state(found.runId), found.stepId);
    },
    turnBegan: (session, runId) => {
      turns.began(session, runId, parts.clock.now());
    },
    turnEnded: (session, runId) => {
      turns.ended(session, runId, parts.clock.now());
    },
    start: () => dispatcher.start(),
    stop: () => dispatcher.stop(),
  };
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
  const step = await claimedStep(core, claim);
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
  const spawn = { runner, agentId, sourceSession, input, timeoutMs, collect, call };
  const adopted = await submit(core, coordinationId, [
    { type: "admitSpawn", ...spawn, ...(parentStepId && { parentStepId }), ...(name && { name }), child },
  ]);
  return adopted.kind === "refused" || !adopted.stepId
    ? undefined
    : envelopeOf(adopted.state, adopted.stepId);
}

async function refuseSpawn(core: Core, claim: SpawnClaim, message: string): Promise<void> {
  const step = await claimedStep(core, claim);
  if (!step) return;
  const { attempt } = step.phase;
  const error = stepError("spawn_refused", message);
  const { coordinationId, stepId } = claim;
  await submit(core, coordinationId, [
    { type: "failStep", stepId, attempt, error, cancelled: false, via: "hook" },
  ]);
}

/** H3: a claim counts only where the ledger has the same spawn from the same session. */
async function claimedStep(core: Core, claim: SpawnClaim): Promise<Step | undefined> {
  const { coordinationId: runId, stepId, sourceSession, toolCallId } = claim;
  const state = await core.runs.state(runId);
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId);
  const sameCall = toolCallId === undefined || step?.spec.call.toolCallId === toolCallId;
  if (step?.spec.sourceSession === sourceSession && sameCall) return step;
  core.logger.warn({ runId, stepId }, "a spawn's envelope is not the ledger's: ignored");
  return undefined;
}

async function endChild(core: Core, childSessionKey: SessionKey, ending: ChildEnding): Promise<void> {
  const found = await core.store.find(childName(childSessionKey));
  if (!found?.stepId) return;
  const { runId, stepId } = found;
  const state = await core.runs.state(runId);
  const step = state.kind === "open" ? state.steps.get(stepId) : undefined;
  // D3: the child of an older attempt says nothing about this one.
  if (step && childOf(step.phase)?.childSessionKey === childSessionKey)
    await submit(core, runId, [outcomeCommand({ stepId, attempt: step.phase.attempt }, ending, "hook")]);
}
