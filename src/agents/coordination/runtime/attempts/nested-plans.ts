/**
 * Owns: the plans that the child of a step submitted, one after another. The step goes on as long as one of them runs, they
 * end with the attempt whose child submitted them, and what they used counts for it.
 */
import { addMs, DELIVERY_STEP_ID, type CoordinationId } from "../../contracts/ids.ts";
import type { ChildEnding, Observation } from "../../contracts/observation.ts";
import { addSpent, isDelivery, spentFromUsage } from "../../ledger/plan-progress.ts";
import { outputOf } from "../../ledger/readable-results.ts";
import { isForNobody } from "../../ledger/given-up.ts";
import {
  isEnded,
  type Coordination,
  type KnownCoordination,
  type OpenCoordination,
  type Spent,
} from "../../ledger/state.ts";
import { nameOfNested } from "../../ledger/summary.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { waitFor } from "../../std/wait-for.ts";
import type { Stoppable, Waiting } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { findTellingRun, observeAttempt } from "./attempt-facts.ts";
import { countAgentUse, createUsage, type SubmittingAttempt } from "./attempt-use.ts";
import { attemptOf } from "./prepare-attempt.ts";

/** An agent, or a plan, that is not stopped by then is out of reach. */
export const CANCEL_MS_MAX = 30_000;
/** Between two looks at a plan that is being ended. */
const LOOK_AGAIN_MS = 1_000;
/** An attempt has one plan at a time, beside those whose child is still being told how they went. */
const NESTED_MAX = 20;

export type NestedDependencies = Pick<RuntimeDependencies, "store" | "runs" | "content">;

/** The newest plan of an attempt's child. */
export interface NestedPlan {
  readonly coordinationId: CoordinationId;
  readonly isOpen: boolean;
  /** Only its delivery is left, and the host has begun, or queued, the turn in which its child is told. */
  readonly isBeingTold: boolean;
  /** The message with its result is in the session of its child. */
  readonly isTold: boolean;
  /** The turn in which its child is told, or was told; absent before that. */
  readonly toldTurn?: Attempt;
  /** The child's first answer when it was told the result. */
  readonly reply?: string;
  /** The sum of what the plans used that the child submitted before. */
  readonly usedBefore: Spent;
  readonly used: Spent;
}

export async function findNestedPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<NestedPlan | undefined> {
  const state = await readNestedState(dependencies, submitting);
  if (!state?.plan) return undefined;
  const output = outputOf(state.steps.get(DELIVERY_STEP_ID)?.phase);
  const text = output && (await dependencies.content.get(output.sha256));
  return {
    coordinationId: state.coordinationId,
    isOpen: state.kind === "open",
    ...describeTelling(state),
    usedBefore: spentFromUsage(state.created.parent?.usedBefore),
    used: state.plan.spent,
    ...(text !== undefined && { reply: readReply(text) }),
  };
}

function describeTelling(state: KnownCoordination): Pick<NestedPlan, "isBeingTold" | "isTold" | "toldTurn"> {
  const toldTurn = findDeliveryTurn(state);
  const status = state.steps.get(DELIVERY_STEP_ID)?.phase.status;
  return {
    isBeingTold: status === "running",
    isTold: status === "completed",
    ...(toldTurn && { toldTurn }),
  };
}

/** Returns what the plan and those before it used. */
export function sumNested({ used, usedBefore }: NestedPlan): Spent {
  return addSpent(usedBefore, used);
}

/**
 * Returns the ending with what its plans used. An ending that was seen after the child was told has its last words; only where it
 * has none does the answer to the newest plan count.
 */
export function withNested(ending: ChildEnding, nested: NestedPlan): ChildEnding {
  const { reply = nested.reply } = ending;
  const usage = addSpent(spentFromUsage(ending.usage), sumNested(nested));
  return { ...ending, usage, ...(reply !== undefined && { reply }) };
}

/** The agent of an attempt that may have submitted plans. */
export interface AgentWithPlans {
  readonly runner: AgentRunner;
  readonly attempt: Attempt;
  readonly submitting: SubmittingAttempt;
}

type EndDependencies = NestedDependencies & Stoppable & Pick<RuntimeDependencies, "runners" | "usage">;
/** An observation of an agent whose run has ended. */
export type Ended = Observation & { readonly kind: "ended" };

/**
 * Returns how an agent ended, with what it and its plans used. One that completed its turn is not done before it was told how its plan went
 * and has ended that turn, too: `undefined` until then. Its last words count, and it fails as that turn fails.
 */
export async function readEndAfterPlan(
  waiting: EndDependencies,
  agent: AgentWithPlans,
  seen: Ended,
): Promise<ChildEnding | undefined> {
  const isCompleted = seen.outcome === "completed";
  if (!isCompleted) await endNested({ ...waiting, waitMs: CANCEL_MS_MAX }, agent.submitting);
  const nested = await findNestedPlan(waiting, agent.submitting);
  if (!nested) return withAgentUse(waiting, agent, seen);
  // Whoever takes the attempt up waits for the end of the plan, and for what it used.
  if (nested.isOpen && waiting.signal.aborted) return undefined;
  const ending = isCompleted ? await readEndOfToldTurn(waiting, agent, nested) : {};
  if (!ending) return undefined;
  const last = await observeAttempt(waiting, agent);
  if (last.kind !== "ended") return undefined;
  return withNested({ ...(await withAgentUse(waiting, agent, last)), ...ending }, nested);
}

async function withAgentUse(
  dependencies: EndDependencies,
  { submitting }: AgentWithPlans,
  ended: Ended,
): Promise<Ended> {
  return { ...ended, ...createUsage(await countAgentUse(dependencies, submitting, ended)) };
}

/** Returns why an agent did not finish with the result of its plan, nothing where it did, and `undefined` while it may be at it. */
async function readEndOfToldTurn(
  waiting: EndDependencies,
  { runner }: AgentWithPlans,
  { isOpen, isTold, toldTurn }: NestedPlan,
): Promise<Partial<ChildEnding> | undefined> {
  if (isOpen) return undefined;
  const run = toldTurn ? await findTellingRun(waiting, toldTurn) : "absent";
  if (run === "unknown") return undefined;
  const seen = run === "absent" ? ABSENT : await observeAttempt(waiting, { runner, attempt: run });
  switch (seen.kind) {
    case "running":
    case "unknown":
      return undefined;
    case "ended":
      return readFailure(seen);
    case "absent":
      return isTold ? {} : { outcome: "failed", message: "the agent could not be told how its plan ended" };
  }
}

const ABSENT: Observation = { kind: "absent" };

function readFailure({ outcome, message, refusal }: ChildEnding): Partial<ChildEnding> {
  if (outcome === "completed") return {};
  return { outcome, ...(message !== undefined && { message }), ...(refusal && { refusal }) };
}

/** Asks for the end of the plans that the child of an attempt has open, because the attempt is over and nobody waits for them. */
export async function cancelNested(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<void> {
  for (const { kind, coordinationId } of await listNested(dependencies, submitting))
    if (kind === "open")
      await dependencies.runs.submit(coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

/**
 * Ends the plans that the child of an attempt has open, and returns what its plans used: also what their steps used that are stopped
 * with them, as far as that is known in time.
 */
export async function endNested(
  waiting: NestedDependencies & Waiting,
  submitting: SubmittingAttempt,
): Promise<Spent> {
  const { clock, signal, waitMs } = waiting;
  await cancelNested(waiting, submitting);
  const untilMs = addMs(clock.now(), waitMs);
  while (clock.now() < untilMs && !signal.aborted && (await hasOpenPlan(waiting, submitting)))
    await waitFor(clock, LOOK_AGAIN_MS, signal);
  const nested = await findNestedPlan(waiting, submitting);
  return nested ? sumNested(nested) : spentFromUsage(undefined);
}

async function hasOpenPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<boolean> {
  return (await listNested(dependencies, submitting)).some(({ kind }) => kind === "open");
}

/** Returns the turn in which the owner of a plan is told how it went, or was told; `undefined` before that. */
export function findDeliveryTurn(state: KnownCoordination): Attempt | undefined {
  const delivery = state.steps.get(DELIVERY_STEP_ID);
  return delivery && attemptOf(state, delivery);
}

/**
 * Ends a plan whose agent is being told the result, where the attempt of that agent was given up: its session must not go on
 * beside the next attempt. That attempt ends the newest plan of its agent by itself, but not those before.
 */
export async function cancelIfGivenUp(
  dependencies: NestedDependencies,
  { state, step }: OpenStep,
): Promise<void> {
  if (isDelivery(step) && (await isOwnerGivenUp(dependencies, state)))
    await dependencies.runs.submit(state.coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

interface FollowDependencies extends Pick<NestedDependencies, "runs"> {
  readonly lookAfter: (runId: CoordinationId, otherId: CoordinationId) => void;
}

/** Hears that the coordination around a plan cannot be read. */
export type NoteUnread = (planId: CoordinationId, aroundId: CoordinationId, error: unknown) => void;

/**
 * Ends a plan that a spawned subagent submitted, once its spawn has ended in any way but completed, what it was spawned by was given
 * up, or the coordination around it was cancelled. Until then the plan is looked at again whenever something is recorded of that
 * coordination. A plan that the session submitted after the end of its spawn goes on, unless the session was given up. A log around it
 * that cannot be read does not hold the plan up.
 */
export async function endPlanWithSpawn(
  dependencies: FollowDependencies,
  plan: Coordination,
  noteUnread: NoteUnread,
): Promise<void> {
  if (plan.kind !== "open" || plan.cancelledBy === "parent") return;
  const { coordinationId, created } = plan;
  const aroundId = created.parent?.coordinationId;
  if (aroundId === undefined) return;
  const { runs, lookAfter } = dependencies;
  const reading = runs.findOnDisk(aroundId, (around) => readSpawnOf(plan, around));
  const status = await reading.catch((error: unknown) => {
    noteUnread(coordinationId, aroundId, error);
    return undefined;
  });
  if (status === "open") lookAfter(coordinationId, aroundId);
  if (status === "over") await runs.submit(coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

/** Returns whether the spawn of a plan's owner goes on, or ends the plan; `undefined` where the plan does not depend on it. */
function readSpawnOf(
  { created: { parent, ownerSession }, createdAtMs }: OpenCoordination,
  around: Coordination,
): "open" | "over" | "ended" | undefined {
  if (around.kind === "unopened") return undefined;
  const step = parent && around.steps.get(parent.stepId);
  if (!step || step.spec.planned) return undefined;
  if (!isEnded(step.phase)) return "open";
  // Such a session may submit no plan: this one was opened before it was given up, or at the same moment.
  if (isForNobody(around, ownerSession)) return "over";
  if (createdAtMs > step.phase.endedAtMs) return undefined;
  if (step.phase.status !== "completed" || around.cancelledBy !== undefined) return "over";
  return around.kind;
}

/** True when the owner of a plan is the agent of an attempt that was given up. A log around it that cannot be read says nothing. */
export async function isOwnerGivenUp(
  { runs }: Pick<NestedDependencies, "runs">,
  { created: { parent, ownerSession } }: OpenCoordination,
): Promise<boolean> {
  if (!parent) return false;
  const around = await runs.state(parent.coordinationId).catch(ignoreDamage);
  if (!around) return false;
  return around.kind === "open" ? isForNobody(around, ownerSession) : isEndedPlan(around);
}

/** A spawn that completed may leave a plan behind; a step of a plan does not complete before its agent was told. */
function isEndedPlan(around: Coordination): boolean {
  return around.kind === "ended" && around.plan !== undefined;
}

async function readNestedState(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<KnownCoordination | undefined> {
  const found = await dependencies.store.find(nameOfNested(submitting.runId, submitting.stepId));
  return found && readIfSubmittedBy(dependencies, submitting, found.runId);
}

/** Lists the newest plans that the child of an attempt submitted. */
export async function listNested(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<KnownCoordination[]> {
  const name = nameOfNested(submitting.runId, submitting.stepId);
  const runIds = await dependencies.store.holders(name, NESTED_MAX);
  const states = await Promise.all(runIds.map((runId) => readIfSubmittedBy(dependencies, submitting, runId)));
  return states.filter((state) => state !== undefined);
}

async function readIfSubmittedBy(
  { runs }: NestedDependencies,
  { attempt, session }: SubmittingAttempt,
  runId: CoordinationId,
): Promise<KnownCoordination | undefined> {
  const state = await runs.state(runId);
  if (state.kind === "unopened" || state.created.ownerSession !== session) return undefined;
  return (state.created.parent?.attempt ?? attempt) === attempt ? state : undefined;
}

function readReply(json: string): string {
  const outputs = JSON.parse(json) as { text?: unknown };
  return typeof outputs.text === "string" ? outputs.text : json;
}
