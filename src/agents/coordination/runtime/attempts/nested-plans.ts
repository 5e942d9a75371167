/**
 * Owns: the plans that the child of a step submitted, one after another. The step goes on as long as one of them runs, they
 * end with the attempt whose child submitted them, and what they used counts for it.
 */
import { addMs, DELIVERY_STEP_ID, type CoordinationId } from "../../contracts/ids.ts";
import type { ChildEnding, Observation } from "../../contracts/observation.ts";
import { addSpent, isDelivery, spentFromUsage } from "../../ledger/plan-progress.ts";
import { findCompletedOutput } from "../../ledger/readable-results.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import {
  isEnded,
  type Coordination,
  type KnownCoordination,
  type OpenCoordination,
  type SpentBudget,
} from "../../ledger/state.ts";
import { nameNestedPlanReference } from "../../ledger/summary.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import type { StoppableWait, LimitedWait } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { findTellingRun, observeAttempt } from "./attempt-facts.ts";
import { countAgentUse, createUsageField, type SubmittingAttempt } from "./attempt-use.ts";
import { findNewestAttempt } from "./prepare-attempt.ts";

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
  readonly usedBefore: SpentBudget;
  readonly used: SpentBudget;
}

/**
 * Returns the newest plan that the child of an attempt submitted, with what it and those before it used; `undefined`
 * where it submitted none.
 */
export async function findNestedPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<NestedPlan | undefined> {
  const state = await readNewestNestedPlan(dependencies, submitting);
  if (!state?.plan) return undefined;
  const output = findCompletedOutput(state.steps.get(DELIVERY_STEP_ID)?.phase);
  const text = output && (await dependencies.content.get(output.sha256));
  return {
    coordinationId: state.coordinationId,
    isOpen: state.kind === "open",
    ...readTellingState(state),
    usedBefore: spentFromUsage(state.created.parent?.usedBefore),
    used: state.plan.spent,
    ...(text !== undefined && { reply: parseReply(text) }),
  };
}

function readTellingState(state: KnownCoordination): Pick<NestedPlan, "isBeingTold" | "isTold" | "toldTurn"> {
  const toldTurn = findDeliveryTurn(state);
  const status = state.steps.get(DELIVERY_STEP_ID)?.phase.status;
  return {
    isBeingTold: status === "running",
    isTold: status === "completed",
    ...(toldTurn && { toldTurn }),
  };
}

/** Returns the sum of what a nested plan and those that the same attempt submitted before it used. */
export function sumNestedUse({ used, usedBefore }: NestedPlan): SpentBudget {
  return addSpent(usedBefore, used);
}

/**
 * Returns the ending of an agent with what its plans used added. An ending that was seen after the child was told has
 * its last words; only where it has none does the answer to the newest plan count.
 */
export function withNestedUse(ending: ChildEnding, nested: NestedPlan): ChildEnding {
  const { reply = nested.reply } = ending;
  const usage = addSpent(spentFromUsage(ending.usage), sumNestedUse(nested));
  return { ...ending, usage, ...(reply !== undefined && { reply }) };
}

/** The agent of an attempt that may have submitted plans. */
export interface AgentWithPlans {
  readonly runner: AgentRunner;
  readonly attempt: Attempt;
  readonly submitting: SubmittingAttempt;
}

type EndDependencies = NestedDependencies & StoppableWait & Pick<RuntimeDependencies, "runners" | "usage">;
/** An observation of an agent whose run has ended. */
export type EndedObservation = Observation & { readonly kind: "ended" };

/**
 * Returns how an agent ended, with what it and its plans used; plans of one that did not complete are ended first. One
 * that completed its turn is not done before it was told how its plan went and has ended that turn, too: `undefined`
 * until then. Its last words count, and it fails as that turn fails.
 */
export async function readEndAfterPlan(
  waiting: EndDependencies,
  agent: AgentWithPlans,
  seen: EndedObservation,
): Promise<ChildEnding | undefined> {
  const isCompleted = seen.outcome === "completed";
  if (!isCompleted) await endNestedPlans({ ...waiting, waitMs: CANCEL_MS_MAX }, agent.submitting);
  const nested = await findNestedPlan(waiting, agent.submitting);
  if (!nested) return withAgentUse(waiting, agent, seen);
  // Whoever takes the attempt up waits for the end of the plan, and for what it used.
  if (nested.isOpen && waiting.signal.aborted) return undefined;
  const ending = isCompleted ? await readEndOfToldTurn(waiting, agent, nested) : {};
  if (!ending) return undefined;
  const lastObservation = await observeAttempt(waiting, agent);
  if (lastObservation.kind !== "ended") return undefined;
  return withNestedUse({ ...(await withAgentUse(waiting, agent, lastObservation)), ...ending }, nested);
}

/** Returns the ending with what the agent itself used, in place of what its runner says. */
async function withAgentUse(
  dependencies: EndDependencies,
  { submitting }: AgentWithPlans,
  ended: EndedObservation,
): Promise<EndedObservation> {
  return { ...ended, ...createUsageField(await countAgentUse(dependencies, submitting, ended)) };
}

/**
 * Returns why an agent failed in the turn in which it was told how its plan ended, or could not be told; `{}` where
 * neither is so, and `undefined` while its plan is open or the turn may be under way.
 */
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
      return pickFailureFields(seen);
    case "absent":
      return isTold ? {} : { outcome: "failed", message: "the agent could not be told how its plan ended" };
  }
}

const ABSENT: Observation = { kind: "absent" };

function pickFailureFields({ outcome, message, refusal }: ChildEnding): Partial<ChildEnding> {
  if (outcome === "completed") return {};
  return { outcome, ...(message !== undefined && { message }), ...(refusal && { refusal }) };
}

/**
 * Records the request to cancel each plan that the child of an attempt has open, because the attempt is over and
 * nobody waits for them; does not wait for their end.
 */
export async function cancelNestedPlans(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<void> {
  for (const { kind, coordinationId } of await listNestedPlans(dependencies, submitting))
    if (kind === "open")
      await dependencies.runs.submit(coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

/**
 * Cancels the plans that the child of an attempt has open, waits for their end up to `waitMs`, and returns what its
 * plans used: also what their steps used that are stopped with them, as far as that is known in time.
 */
export async function endNestedPlans(
  waiting: NestedDependencies & LimitedWait,
  submitting: SubmittingAttempt,
): Promise<SpentBudget> {
  const { clock, signal, waitMs } = waiting;
  await cancelNestedPlans(waiting, submitting);
  const untilMs = addMs(clock.now(), waitMs);
  while (clock.now() < untilMs && !signal.aborted && (await hasOpenPlan(waiting, submitting)))
    await waitForDuration(clock, LOOK_AGAIN_MS, signal);
  const nested = await findNestedPlan(waiting, submitting);
  return nested ? sumNestedUse(nested) : spentFromUsage(undefined);
}

async function hasOpenPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<boolean> {
  return (await listNestedPlans(dependencies, submitting)).some(({ kind }) => kind === "open");
}

/**
 * Returns the newest attempt of a plan's delivery, the turn in which the owner is told how the plan went; `undefined`
 * before that.
 */
export function findDeliveryTurn(state: KnownCoordination): Attempt | undefined {
  const delivery = state.steps.get(DELIVERY_STEP_ID);
  return delivery && findNewestAttempt(state, delivery);
}

/**
 * Cancels a plan whose agent is being told the result, where the attempt of that agent was given up: its session must
 * not go on beside the next attempt. Does nothing for any other step. That attempt ends the newest plan of its agent
 * by itself, but not those before.
 */
export async function cancelPlanOfGivenUpAgent(
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
 * Cancels a plan that a spawned subagent submitted, once its spawn has ended in any way but completed, what it was
 * spawned by was given up, or the coordination around it was cancelled. Until then the plan is looked at again
 * whenever something is recorded of that coordination. A plan that the session submitted after the end of its spawn
 * goes on, unless the session was given up. A log around it that cannot be read is only noted and does not hold the
 * plan up.
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
  const reading = runs.findOnDisk(aroundId, (around) => readStatusOfSpawn(plan, around));
  const status = await reading.catch((error: unknown) => {
    noteUnread(coordinationId, aroundId, error);
    return undefined;
  });
  if (status === "open") lookAfter(coordinationId, aroundId);
  if (status === "over") await runs.submit(coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

/** Returns whether the spawn of a plan's owner goes on, or ends the plan; `undefined` where the plan does not depend on it. */
function readStatusOfSpawn(
  { created: { parent, ownerSession }, createdAtMs }: OpenCoordination,
  around: Coordination,
): "open" | "over" | "ended" | undefined {
  if (around.kind === "unopened") return undefined;
  const step = parent && around.steps.get(parent.stepId);
  if (!step || step.spec.planned) return undefined;
  if (!isEnded(step.phase)) return "open";
  // Such a session may submit no plan: this one was opened before it was given up, or at the same moment.
  if (isWorkingForNobody(around, ownerSession)) return "over";
  if (createdAtMs > step.phase.endedAtMs) return undefined;
  if (step.phase.status !== "completed" || around.cancelledBy !== undefined) return "over";
  return around.kind;
}

/**
 * True when the owner of a plan is the agent of an attempt in another coordination that was given up, or that belonged
 * to a plan which has ended. False where the log of that coordination is damaged.
 */
export async function isOwnerGivenUp(
  { runs }: Pick<NestedDependencies, "runs">,
  { created: { parent, ownerSession } }: OpenCoordination,
): Promise<boolean> {
  if (!parent) return false;
  const around = await runs.state(parent.coordinationId).catch(ignoreDamage);
  if (!around) return false;
  return around.kind === "open" ? isWorkingForNobody(around, ownerSession) : isEndedPlan(around);
}

/** A spawn that completed may leave a plan behind; a step of a plan does not complete before its agent was told. */
function isEndedPlan(around: Coordination): boolean {
  return around.kind === "ended" && around.plan !== undefined;
}

async function readNewestNestedPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<KnownCoordination | undefined> {
  const found = await dependencies.store.find(nameNestedPlanReference(submitting.runId, submitting.stepId));
  return found && readIfSubmittedBy(dependencies, submitting, found.runId);
}

/**
 * Lists the states of the plans that the child of an attempt submitted, the newest ones up to a bound, open or ended.
 */
export async function listNestedPlans(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<KnownCoordination[]> {
  const name = nameNestedPlanReference(submitting.runId, submitting.stepId);
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

function parseReply(json: string): string {
  const outputs = JSON.parse(json) as { text?: unknown };
  return typeof outputs.text === "string" ? outputs.text : json;
}
