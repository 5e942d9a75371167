/**
 * Owns: what sessions say of the children that their models spawn: that one is about to be, was or was not made, and how it ended.
 *
 * D1 the intent is on disk before `admitSpawn` resolves, hence before the host acts. H3 whose child a session is follows from the
 * ledger's reference for its key.
 */
import type { Command } from "../../contracts/commands.ts";
import type { CoordinationEnvelope } from "../../contracts/envelope.ts";
import { createStepError } from "../../contracts/fact-fields.ts";
import { createIdempotencyKey, type CoordinationId, type SessionKey } from "../../contracts/ids.ts";
import type { ChildEnding, ObservedChild } from "../../contracts/observation.ts";
import { isFollowedByUs } from "../../dispatch/effects/followed-steps.ts";
import { commandFromOutcome } from "../../dispatch/effects/rule-on-observation.ts";
import { buildEnvelope } from "../../dispatch/build-envelope.ts";
import { findChildOfPhase, type Step } from "../../ledger/state.ts";
import type { ContentStore } from "../../ports/content-store.ts";
import type { Logger } from "../../ports/logger.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import { prepareSpawnEnd } from "../attempts/spawn-end.ts";
import type { WithheldTexts } from "../environment/withheld-texts.ts";
import type { SubmitResult } from "../log/run-log.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import {
  admitSpawn,
  findOpenCoordinationOfTrace,
  type SpawnAdmission,
  type AdmitDependencies,
  type SpawnRequest,
} from "./admit-spawn.ts";
import { findClaimedStep, type SpawnClaim } from "./spawn-claim.ts";
import type { SpawnGate } from "./spawn-gate.ts";

/** The requests of a session about its spawns. */
export interface SpawnRequests {
  /** Records the intent to spawn and returns the envelope. @throws CoordinationError when it could not be recorded. */
  admitSpawn(request: SpawnRequest): Promise<SpawnAdmission>;
  /** Records that the host created the child. Returns the envelope with its target, or nothing for a claim that the ledger does not bear out. */
  confirmSpawn(claim: SpawnClaim, child: ObservedChild): Promise<CoordinationEnvelope | undefined>;
  /** Records that the host did not create a child. */
  refuseSpawn(claim: SpawnClaim, message: string): Promise<void>;
  /** Records what came of a spawn that the host answered with an error: the child, where its own records have one. */
  failSpawn(claim: SpawnClaim, message: string): Promise<void>;
  /** Records how a child ended; sessions that are no child of ours are ignored. */
  endChild(childSessionKey: SessionKey, ending: ChildEnding): Promise<void>;
  /** Finds the open coordination that a spawn of a session which is nobody's child would join. */
  findOpenOfTrace(request: SpawnRequest): ReturnType<typeof findOpenCoordinationOfTrace>;
  /** The envelope of the step that a session works on (H3). */
  envelopeForChild(childSessionKey: SessionKey): Promise<CoordinationEnvelope | undefined>;
}

export interface SpawnRequestDependencies extends AdmitDependencies {
  readonly content: ContentStore;
  readonly logger: Logger;
  readonly gate: SpawnGate;
  readonly withheld: WithheldTexts;
  readonly dispatcher: SpawnDispatcher;
  /** Whose child a session is, is looked up and recorded by one at a time. */
  readonly childTurns: TurnsByName;
  /** Aborted when the process stops. */
  readonly stopping: AbortSignal;
}

/** Moves coordinations on. */
interface SpawnDispatcher {
  readonly giveBack: (runId: CoordinationId, stepId: string) => void;
  readonly askHost: (runId: CoordinationId, stepId: string) => Promise<void>;
}

/**
 * Creates the requests about spawns of models: to admit one through the gate, and to record that its child began,
 * failed, was never made or ended.
 */
export function createSpawnRequests(dependencies: SpawnRequestDependencies): SpawnRequests {
  return {
    admitSpawn: (request) => admitThroughGate(dependencies, request),
    confirmSpawn: (claim, child) =>
      dependencies.childTurns.run(child.childSessionKey, () =>
        recordConfirmedSpawn(dependencies, claim, child),
      ),
    refuseSpawn: (claim, message) => recordUnmadeSpawn(dependencies, claim, message),
    failSpawn: (claim, message) => recordFailedSpawn(dependencies, claim, message),
    endChild: (childSessionKey, ending) => recordEndOfChild(dependencies, childSessionKey, ending),
    findOpenOfTrace: (request) => findOpenCoordinationOfTrace(dependencies, request),
    envelopeForChild: async (childSessionKey) => {
      const found = await findStepOfChild(dependencies, childSessionKey);
      return found && buildEnvelope(found.state, found.step.spec.stepId);
    },
  };
}

/** Admits a spawn at once, after a short wait for another to end, or refuses it in words for its model. */
async function admitThroughGate(
  dependencies: SpawnRequestDependencies,
  request: SpawnRequest,
): Promise<SpawnAdmission> {
  const { gate, dispatcher } = dependencies;
  const entry = await gate.enter(request.sourceSession);
  if (entry.kind === "refused") return { kind: "refused", code: "LANE_FULL", reason: entry.reason };
  try {
    const admission = await admitSpawn(dependencies, request);
    if (admission.kind === "refused") return admission;
    const { coordinationId, stepId, parentStepId } = admission.envelope;
    entry.bind(createIdempotencyKey(coordinationId, stepId, 1), coordinationId);
    if (parentStepId) dispatcher.giveBack(coordinationId, parentStepId);
    return admission;
  } finally {
    entry.leave();
  }
}

async function submitOrLogRefusal(
  dependencies: SpawnRequestDependencies,
  runId: CoordinationId,
  commands: readonly Command[],
): Promise<SubmitResult> {
  const submitted = await dependencies.runs.submit(runId, commands);
  if (submitted.kind === "refused") {
    const { code, reason } = submitted;
    dependencies.logger.info({ runId, refusal: code, command: commands[0]?.type }, `refused: ${reason}`);
  }
  return submitted;
}

/**
 * Records that the host made the child of a spawn, also one that the ledger does not expect, and returns its envelope;
 * `undefined` where the ledger does not have that spawn or refuses the child.
 */
async function recordConfirmedSpawn(
  dependencies: SpawnRequestDependencies,
  claim: SpawnClaim,
  child: ObservedChild,
): Promise<CoordinationEnvelope | undefined> {
  const step = await findClaimedStep(dependencies, claim);
  if (!step) return undefined;
  const { attempt } = step.phase;
  const { stepId } = claim;
  const submitted = await submitOrLogRefusal(dependencies, claim.coordinationId, [
    { type: "acknowledgeStep", stepId, attempt, ...child, via: "hook" },
  ]);
  if (submitted.kind !== "refused") return buildEnvelope(submitted.state, stepId);
  const { code } = submitted;
  const isExtra = code === "CHILD_TAKEN" || code === "OTHER_CHILD" || code === "STEP_ENDED";
  return isExtra ? adoptExtraChild(dependencies, claim, { step, child }) : undefined;
}

/**
 * Gives a child that the ledger does not expect, of a call that could not be told apart or a step given up, a step of
 * its own. Returns its envelope; `undefined` where the ledger refuses.
 */
async function adoptExtraChild(
  dependencies: SpawnRequestDependencies,
  { coordinationId }: SpawnClaim,
  { step, child }: { readonly step: Step; readonly child: ObservedChild },
): Promise<CoordinationEnvelope | undefined> {
  const { parentStepId, runner, agentId, name, sourceSession, input, timeoutMs, collect, call } = step.spec;
  const { gate, requested, privilege } = step.spec;
  const { gateway } = dependencies.settings;
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
    ...(gateway !== undefined && { gateway }),
  };
  const adopted = await submitOrLogRefusal(dependencies, coordinationId, [
    { type: "admitSpawn", ...spawn, ...(parentStepId && { parentStepId }), ...(name && { name }), child },
  ]);
  return adopted.kind === "refused" || !adopted.stepId
    ? undefined
    : buildEnvelope(adopted.state, adopted.stepId);
}

async function recordUnmadeSpawn(
  dependencies: SpawnRequestDependencies,
  claim: SpawnClaim,
  message: string,
): Promise<void> {
  const step = await findClaimedStep(dependencies, claim);
  if (!step) return;
  const { attempt } = step.phase;
  const error = createStepError("spawn_refused", message);
  const { coordinationId, stepId } = claim;
  await submitOrLogRefusal(dependencies, coordinationId, [
    { type: "failStep", stepId, attempt, error, cancelled: false, via: "hook", unspawned: true },
  ]);
}

/** The host writes the record of a child after it made the child: more than 0.1 s later was seen. */
const RECORD_LATE_MS = 2_000;

/**
 * Records that the host made no child after an error, unless its records, asked twice, have one: it may have been made
 * before the error. Where the process stops meanwhile, the next one asks the host.
 */
async function recordFailedSpawn(
  dependencies: SpawnRequestDependencies,
  claim: SpawnClaim,
  message: string,
): Promise<void> {
  const { clock, dispatcher, stopping } = dependencies;
  const { coordinationId, stepId } = claim;
  const isUnanswered = async (): Promise<boolean> =>
    (await findClaimedStep(dependencies, claim))?.phase.status === "dispatched";
  if (!(await isUnanswered())) return;
  await dispatcher.askHost(coordinationId, stepId);
  if (!(await isUnanswered())) return;
  await waitForDuration(clock, RECORD_LATE_MS, stopping);
  await dispatcher.askHost(coordinationId, stepId);
  if (!stopping.aborted) await recordUnmadeSpawn(dependencies, claim, message);
}

/**
 * Records how a child ended. A session that works on no open step is ignored, and so is one that we follow to its end
 * ourselves.
 */
async function recordEndOfChild(
  dependencies: SpawnRequestDependencies,
  childSessionKey: SessionKey,
  ending: ChildEnding,
): Promise<void> {
  // The child's last words may still be on their way to the disk, and decide what becomes of it.
  const isKept = await dependencies.withheld.keepAgain(childSessionKey);
  const childStep = await findStepOfChild(dependencies, childSessionKey);
  if (childStep?.state.kind !== "open") return;
  const { state, step } = childStep;
  // D3: the child of an older attempt says nothing about this one.
  if (isFollowedByUs(step) || findChildOfPhase(step.phase)?.childSessionKey !== childSessionKey) return;
  const { coordinationId: runId } = state;
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt };
  const child = { ...about, runId, session: childSessionKey };
  const commands = [commandFromOutcome(about, ending, "hook")];
  await submitOrLogRefusal(
    dependencies,
    runId,
    await prepareSpawnEnd(dependencies, child, { commands, isKept }),
  );
}
