/**
 * Owns: the plans that the child of a step submitted, one after another. The step goes on as long as one of them runs, they
 * end with the attempt whose child submitted them, and what they used counts for it.
 */
import type { Usage } from "../../contracts/fact-fields.ts";
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import { addSpent, isDelivery, spentFromUsage } from "../../ledger/plan-progress.ts";
import type { KnownCoordination, PlanProgress, Spent } from "../../ledger/state.ts";
import { nameOfNested } from "../../ledger/summary.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

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
  /** It was ended with the attempt, so that nobody told its child how it went. */
  readonly isCutOff: boolean;
  /** The child's answer when it was told the result. */
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

/** Returns the ending with what the child said last and with what its plans used. */
export function withNested(ending: ChildEnding, nested: NestedPlan): ChildEnding {
  const { reply = ending.reply } = nested;
  const usage = addSpent(spentFromUsage(ending.usage), sumNested(nested));
  return { ...ending, usage, ...(reply !== undefined && { reply }) };
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
