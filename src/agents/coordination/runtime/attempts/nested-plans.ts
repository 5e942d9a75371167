/**
 * Owns: the plans that the child of a step submitted, one after another. The step goes on as long as one of them runs, they
 * end with the attempt whose child submitted them, and what they used counts for it.
 */
import type { Usage } from "../../contracts/fact-fields.ts";
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import { addSpent, isDelivery, spentFromUsage } from "../../ledger/plan-progress.ts";
import { isGivenUp } from "../../ledger/given-up.ts";
import type {
  Coordination,
  KnownCoordination,
  OpenCoordination,
  PlanProgress,
  Spent,
  Step,
} from "../../ledger/state.ts";
import { nameOfNested } from "../../ledger/summary.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import type { Stoppable } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { observeAttempt } from "./attempt-facts.ts";

export type NestedDependencies = Pick<RuntimeDependencies, "store" | "runs" | "content">;

/** D3: the attempt whose child may have submitted plans. Those of another attempt are not its own. */
export interface SubmittingAttempt {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly session: SessionKey;
}

/** The newest plan of an attempt's child. */
export interface NestedPlan {
  readonly coordinationId: CoordinationId;
  readonly isOpen: boolean;
  /** Only its delivery is left, and the host has begun, or queued, the turn in which its child is told. */
  readonly isBeingTold: boolean;
  /** It was ended with the attempt, so that nobody told its child how it went. */
  readonly isCutOff: boolean;
  /** The child's first answer when it was told the result. */
  readonly reply?: string;
  /** The sum of what the plans used that the child submitted before. */
  readonly usedBefore: Spent;
  readonly used: Spent;
  /** The most that it may use by its budget, and what it uses where no budget limits it; what it used where it has ended. */
  readonly mayUse: Spent;
}

export async function findNestedPlan(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<NestedPlan | undefined> {
  const state = await readNestedState(dependencies, submitting);
  if (!state?.plan) return undefined;
  const deliveryPhase = [...state.steps.values()].find(isDelivery)?.phase;
  const output = deliveryPhase?.status === "completed" ? deliveryPhase.output : undefined;
  const text = output && (await dependencies.content.get(output.sha256));
  return {
    coordinationId: state.coordinationId,
    isOpen: state.kind === "open",
    isBeingTold: deliveryPhase?.status === "running",
    isCutOff: state.cancelledBy === "parent",
    usedBefore: spentFromUsage(state.created.parent?.usedBefore),
    used: state.plan.spent,
    mayUse: computeMostUse(state, state.plan),
    ...(text !== undefined && { reply: readReply(text) }),
  };
}

function computeMostUse({ kind, created }: KnownCoordination, { spent, allowedFrom }: PlanProgress): Spent {
  if (kind !== "open") return spent;
  const { spawns = 0, tokens = 0, costMicroUsd = 0 } = created.plan?.budget ?? {};
  return {
    spawns: Math.max(spent.spawns, allowedFrom.spawns + spawns),
    tokens: Math.max(spent.tokens, allowedFrom.tokens + tokens),
    costMicroUsd: Math.max(spent.costMicroUsd, allowedFrom.costMicroUsd + costMicroUsd),
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

/** Returns how an agent ended once it had been told how its plan went: its last words count. `undefined` before that. */
export async function readEndAfterPlan(
  waiting: Stoppable,
  agent: { readonly runner: AgentRunner; readonly attempt: Attempt },
  { nested, seen }: { readonly nested: NestedPlan; readonly seen: ChildEnding },
): Promise<ChildEnding | undefined> {
  if (nested.isOpen && seen.outcome === "completed") return undefined;
  const last = await observeAttempt(waiting, agent);
  return last.kind === "ended" ? withNested(last, nested) : undefined;
}

/**
 * Ends the plan that the child of an attempt has open, because the attempt is over and nobody waits for it. Returns what the
 * child's plans used until then.
 */
export async function cancelNested(
  dependencies: NestedDependencies,
  submitting: SubmittingAttempt,
): Promise<{ readonly usage?: Usage }> {
  const open = await readNestedState(dependencies, submitting);
  if (open?.kind === "open")
    await dependencies.runs.submit(open.coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
  const nested = await findNestedPlan(dependencies, submitting);
  return nested ? { usage: sumNested(nested) } : {};
}

/**
 * Ends a plan whose agent is being told the result, where the attempt of that agent was given up: its session must not go on
 * beside the next attempt. That attempt ends the newest plan of its agent by itself, but not those before.
 */
export async function cancelIfGivenUp(
  { runs }: NestedDependencies,
  { state, step }: { readonly state: OpenCoordination; readonly step: Step },
): Promise<void> {
  const { parent, ownerSession } = state.created;
  if (!parent || !isDelivery(step)) return;
  const around = await runs.state(parent.coordinationId);
  const isVain = around.kind === "open" ? isGivenUp(around, ownerSession) : isEndedPlan(around);
  if (isVain) await runs.submit(state.coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

/** A spawn that completed may leave a plan behind; a step of a plan does not complete before its agent was told. */
function isEndedPlan(around: Coordination): boolean {
  return around.kind === "ended" && around.plan !== undefined;
}

async function readNestedState(
  { store, runs }: NestedDependencies,
  { runId, stepId, attempt, session }: SubmittingAttempt,
): Promise<KnownCoordination | undefined> {
  const found = await store.find(nameOfNested(runId, stepId));
  if (!found) return undefined;
  const state = await runs.state(found.runId);
  if (state.kind === "unopened" || state.created.ownerSession !== session) return undefined;
  return (state.created.parent?.attempt ?? attempt) === attempt ? state : undefined;
}

function readReply(json: string): string {
  const outputs = JSON.parse(json) as { text?: unknown };
  return typeof outputs.text === "string" ? outputs.text : json;
}
