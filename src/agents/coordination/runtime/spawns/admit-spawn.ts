/**
 * Owns: finding the coordination that a spawn belongs to, or opening one, and recording the intent there.
 *
 * A coordination spans one W3C trace of its owner: what a child spawns joins its parent's; a spawn after the end opens a
 * new one whose `causalRef` names the one before.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { AdmitSpawn, Command } from "../../contracts/commands.ts";
import type { CoordinationEnvelope } from "../../contracts/envelope.ts";
import { assertInvariant } from "../../contracts/errors.ts";
import type { QuestionPolicy } from "../../contracts/escalation.ts";
import type { RunnerKind } from "../../contracts/fact-fields.ts";
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import type { PrivilegesConfig } from "../../contracts/config/privileges-config.ts";
import type { Privilege } from "../../contracts/privilege.ts";
import type { TreeBudget } from "../../contracts/usage.ts";
import type { Gate } from "../../contracts/verification.ts";
import type { AgentId, CoordinationId, EpochMs, SessionKey, StepId } from "../../contracts/ids.ts";
import type { RefusalCode } from "../../dispatch/decision.ts";
import { buildEnvelope } from "../../dispatch/build-envelope.ts";
import { findStopReason } from "../../dispatch/plan-rules.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import type { Coordination } from "../../ledger/state.ts";
import { nameChildReference, nameTraceReference } from "../../ledger/summary.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { Found, LedgerStore } from "../../ports/ledger-store.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import type { OwnerTurns } from "../environment/owner-turns.ts";
import { chooseRules, type PolicyBook, type PolicyRules } from "../environment/policy-rules.ts";
import { explainUngateable } from "../held-results/gate-of.ts";
import { createAdmittedPrivilege } from "../privileges/admitted-privilege.ts";
import type { RunLog, SubmitResult } from "../log/run-log.ts";
import { findStepOfChild, type StepOfChild } from "../log/step-of-child.ts";

/** A coordination may end between finding it and joining it; then a new one is opened. */
const JOIN_ATTEMPTS_MAX = 3;

export interface SpawnRequest {
  readonly sourceSession: SessionKey;
  readonly sourceAgent: AgentId;
  /** The W3C trace; without one the source's run groups its spawns. */
  readonly traceId?: string;
  readonly spawn: Omit<
    AdmitSpawn,
    | "type"
    | "child"
    | "parentStepId"
    | "sourceSession"
    | "input"
    | "timeoutMs"
    | "gate"
    | "privilege"
    | "countsLoans"
  > & {
    /** Bounds on the child, set by the session that spawns it. */
    readonly askedPrivilege?: Privilege;
    /** The host hands the parent a value of a certain form, beside what the child says. */
    readonly hasOutputSchema?: boolean;
    /** Absent: the configured limit. */
    readonly timeoutMs?: number;
  };
  readonly input: ContentInput;
  /** The owner's own task; becomes the objective of a coordination that this spawn opens. */
  readonly objective: ContentInput;
}

/** The envelope of an admitted spawn with the state after it, or why it was refused. */
export type SpawnAdmission =
  | { readonly kind: "admitted"; readonly envelope: CoordinationEnvelope; readonly state: Coordination }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

export interface AdmitDependencies {
  readonly store: LedgerStore;
  readonly runs: RunLog;
  readonly clock: Clock;
  readonly turns: Pick<OwnerTurns, "isUnderWaySince">;
  readonly settings: {
    readonly stepTimeoutMs: number;
    readonly settleMs: number;
    readonly acknowledgeMs: number;
    readonly contentMs: number;
    readonly gateway?: string;
  };
  /** Returns the rules for questions of a coordination that a spawn opens. */
  readonly questions: () => QuestionPolicy;
  readonly gateOf: (spawn: { readonly agentId: AgentId; readonly runner: RunnerKind }) => Gate | undefined;
  readonly privileges?: PrivilegesConfig;
  /** Brings to the log what model calls used. */
  readonly usage: { flush(): Promise<unknown> };
  /** The budget of a coordination that a spawn opens; absent where the operator sets none. */
  readonly budget?: TreeBudget;
  /** Packs that hold for single agents, channels or sessions. Absent: there are none. */
  readonly policies?: PolicyBook;
  /** The pack whose rules these dependencies have; absent: those of the gateway. */
  readonly policy?: PolicyRef;
  /** Returns the dependencies under other rules. */
  readonly under: (rules: PolicyRules | undefined) => AdmitDependencies;
  readonly newCoordinationId: () => CoordinationId;
  /** Looking up and opening take turns by trace, so that parallel calls open one coordination between them. */
  readonly opening: TurnsByName;
}

/**
 * Records the intent of a spawn in the coordination that it joins or opens, and returns whether it is admitted. It is
 * tried again where the coordination ended meanwhile. @throws CoordinationError when the ledger could not record the
 * intent; nothing was recorded then.
 */
export async function admitSpawn(
  dependencies: AdmitDependencies,
  request: SpawnRequest,
): Promise<SpawnAdmission> {
  for (let tries = 1; ; tries += 1) {
    const home = await findOrOpenCoordination(dependencies, request);
    const submitted =
      home.kind === "opened" ? home.submitted : await joinCoordination(dependencies, request, home);
    const again =
      submitted.kind === "refused" && submitted.code === "COORDINATION_ENDED" && tries < JOIN_ATTEMPTS_MAX;
    if (!again) return createAdmission(submitted);
  }
}

/** The refusal of a spawn, with its code and its reason. */
type SpawnRefusal = SpawnAdmission & { readonly kind: "refused" };

/** Refuses a spawn whose result must be held but cannot be kept back; `undefined` for any other. */
function refuseUngateable({ gateOf }: AdmitDependencies, { spawn }: SpawnRequest): SpawnRefusal | undefined {
  const reason = explainUngateable(gateOf(spawn), spawn);
  return reason === undefined ? undefined : { kind: "refused", code: "UNGATEABLE", reason };
}

/**
 * Refuses a spawn for work that was cancelled or has stopped: it would be stopped as soon as it is there. The core
 * admits it all the same, so that older logs are decided as they were, and so that a child which the host made
 * meanwhile has a step that can be stopped.
 */
function refuseStoppedWork(
  state: Coordination,
  { parentStepId, session }: { readonly parentStepId: StepId | undefined; readonly session: SessionKey },
  now: EpochMs,
): SpawnRefusal | undefined {
  if (state.kind === "unopened") return undefined;
  const parent = parentStepId && state.steps.get(parentStepId);
  if ((state.cancelledBy ?? parent?.cancelledBy) !== undefined || isWorkingForNobody(state, session))
    return createStoppedRefusal(
      "the work that this subagent is for was cancelled or given up; end your own, and begin nothing more",
    );
  const { plan, created } = state;
  // A plan that ended before its deadline has not stopped.
  const atMs = state.kind === "ended" ? state.endedAtMs : now;
  const stop = plan && findStopReason({ plan, created }, atMs);
  return (
    stop &&
    createStoppedRefusal(
      `the plan that this work belongs to has stopped: ${stop}; finish without another subagent`,
    )
  );
}

/**
 * Refuses new work of a turn that goes on though its coordination was stopped, also while that has not ended yet. A
 * turn that began after the end is for whoever began it.
 */
export function refuseUnstoppedTurn(
  { turns, clock }: Pick<AdmitDependencies, "turns" | "clock">,
  { state, step }: StepOfChild,
  session: SessionKey,
): SpawnRefusal | undefined {
  const now = clock.now();
  const isUnstopped = state.kind !== "ended" || turns.isUnderWaySince(session, state.endedAtMs, now);
  return isUnstopped ? refuseStoppedWork(state, { parentStepId: step.spec.stepId, session }, now) : undefined;
}

function createStoppedRefusal(reason: string): SpawnRefusal {
  return { kind: "refused", code: "PLAN_STOPPED", reason };
}

function createAdmission(submitted: SubmitResult | SpawnRefusal): SpawnAdmission {
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  const envelope = submitted.stepId && buildEnvelope(submitted.state, submitted.stepId);
  assertInvariant(envelope !== undefined, "an admitted spawn has a step");
  return { kind: "admitted", envelope, state: submitted.state };
}

/** The coordination that a spawn is to join, or that was opened with the spawn in it. */
type CoordinationOfSpawn =
  | {
      readonly kind: "join";
      readonly runId: CoordinationId;
      readonly parentStepId?: StepId;
      readonly policy: PolicyRef | undefined;
    }
  | { readonly kind: "opened"; readonly submitted: SubmitResult | SpawnRefusal };

/** Finds the open coordination that a spawn is to join, or opens one with the spawn in it. */
async function findOrOpenCoordination(
  dependencies: AdmitDependencies,
  request: SpawnRequest,
): Promise<CoordinationOfSpawn> {
  const parent = await findHolder(dependencies, nameChildReference(request.sourceSession));
  if (parent?.open) {
    const { runId, stepId, policy } = parent;
    return { kind: "join", runId, policy, ...(stepId && { parentStepId: stepId }) };
  }
  const trace = nameTraceOfSpawn(dependencies, request);
  // Joining happens outside, so that it is not serial.
  return dependencies.opening.run(trace, async () => {
    const earlier = await findHolder(dependencies, trace);
    if (earlier?.open) return { kind: "join", runId: earlier.runId, policy: earlier.policy };
    return {
      kind: "opened",
      submitted: await openCoordinationWithSpawn(dependencies, request, (earlier ?? parent)?.runId),
    };
  });
}

/** The coordination and step that hold a reference, and whether the former is open. */
interface ReferenceHolder extends Found {
  readonly open: boolean;
  /** The pack that it was opened under. */
  readonly policy: PolicyRef | undefined;
}

/** Finds who holds a reference, and whether that coordination can still be joined. */
async function findHolder(
  { store, runs }: AdmitDependencies,
  name: string,
): Promise<ReferenceHolder | undefined> {
  const found = await store.find(name);
  if (!found) return undefined;
  const state = await runs.state(found.runId);
  const policy = state.kind === "unopened" ? undefined : state.created.policy;
  return { ...found, open: state.kind === "open", policy };
}

/**
 * Finds the open coordination that a spawn of a session which is nobody's child would join, with the policy pack that
 * it is under; `undefined` where none of its trace is open.
 */
export async function findOpenCoordinationOfTrace(
  dependencies: AdmitDependencies,
  request: SpawnRequest,
): Promise<{ readonly coordinationId: CoordinationId; readonly policy: PolicyRef | undefined } | undefined> {
  const holder = await findHolder(dependencies, nameTraceOfSpawn(dependencies, request));
  return holder?.open ? { coordinationId: holder.runId, policy: holder.policy } : undefined;
}

function nameTraceOfSpawn(
  { settings: { gateway } }: AdmitDependencies,
  { sourceSession: session, traceId, spawn }: SpawnRequest,
): string {
  return nameTraceReference({ session, gateway }, traceId ?? spawn.call.runId ?? "none");
}

async function joinCoordination(
  dependencies: AdmitDependencies,
  request: SpawnRequest,
  { runId, parentStepId, policy }: CoordinationOfSpawn & { kind: "join" },
): Promise<SubmitResult | SpawnRefusal> {
  const ruled = dependencies.under(dependencies.policies?.find(policy));
  const state = await dependencies.runs.state(runId);
  // The budget is held against what the log says.
  if (state.kind === "open" && state.created.budget) await dependencies.usage.flush();
  return (
    refuseUngateable(ruled, request) ??
    refuseStoppedWork(state, { parentStepId, session: request.sourceSession }, dependencies.clock.now()) ??
    (await dependencies.runs.submit(
      runId,
      [draftAdmissionOfSpawn(ruled, request, parentStepId)],
      selectKeptTexts(dependencies, [request.input]),
    ))
  );
}

async function openCoordinationWithSpawn(
  dependencies: AdmitDependencies,
  request: SpawnRequest,
  causalRef?: CoordinationId,
): Promise<SubmitResult | SpawnRefusal> {
  const { sourceAgent: agent, sourceSession: session } = request;
  const around = await findStepOfChild(dependencies, session);
  const ruled = dependencies.under(chooseRules(dependencies.policies, around, { agent, session }));
  return (
    refuseUngateable(ruled, request) ??
    (around && refuseUnstoppedTurn(dependencies, around, session)) ??
    (await dependencies.runs.submit(
      dependencies.newCoordinationId(),
      [draftOpeningOfSpawn(ruled, request, causalRef), draftAdmissionOfSpawn(ruled, request)],
      selectKeptTexts(dependencies, [request.input, request.objective]),
    ))
  );
}

function draftOpeningOfSpawn(
  { settings, questions, budget, policy }: AdmitDependencies,
  request: SpawnRequest,
  causalRef?: CoordinationId,
): Command {
  const { runId, spanId } = request.spawn.call;
  const traceId = request.traceId ?? runId;
  return {
    type: "openCoordination",
    origin: "observed",
    ownerSession: request.sourceSession,
    ownerAgent: request.sourceAgent,
    objective: request.objective.ref,
    trace: {
      ...(traceId && { traceId }),
      ...(runId && { runId }),
      ...(spanId && { spanId }),
      ...(causalRef && { causalRef }),
    },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: settings.settleMs,
    acknowledgeMs: settings.acknowledgeMs,
    questions: questions(),
    ...(budget && { budget }),
    ...(policy && { policy }),
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
  };
}

function draftAdmissionOfSpawn(
  { settings, gateOf, privileges }: AdmitDependencies,
  request: SpawnRequest,
  parentStepId?: StepId,
): AdmitSpawn {
  const { askedPrivilege, hasOutputSchema: _, ...spawn } = request.spawn;
  const gate = gateOf(spawn);
  const privilege = createAdmittedPrivilege(privileges, { agentId: spawn.agentId, askedPrivilege });
  return {
    type: "admitSpawn",
    ...spawn,
    ...(gate && { gate }),
    ...(privilege && { privilege }),
    ...(parentStepId && { parentStepId }),
    sourceSession: request.sourceSession,
    input: request.input.ref,
    timeoutMs: request.spawn.timeoutMs ?? settings.stepTimeoutMs,
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
    countsLoans: true,
  };
}

/** Returns the texts that are kept beside the log: none where none are kept, and none that are too long. */
function selectKeptTexts(
  { settings }: AdmitDependencies,
  contents: readonly ContentInput[],
): readonly ContentInput[] {
  return settings.contentMs === 0 ? [] : contents.filter(({ text }) => text.length <= BOUNDS.taskCharsMax);
}
