/**
 * Owns: the plan that the child of a step submitted. The step goes on as long as that plan runs, and the plan ends with
 * the attempt whose child submitted it.
 */
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { KnownCoordination, Spent } from "../../ledger/state.ts";
import { nameOfNested } from "../../ledger/summary.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

export type NestedDependencies = Pick<RuntimeDependencies, "store" | "runs" | "content">;

/** The attempt whose child may have submitted a plan. */
interface Around {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  /** D3: what the child of another attempt submitted is not of this one. */
  readonly session: SessionKey;
}

export type Nested = { readonly kind: "open" } | NestedEnd;

export interface NestedEnd {
  readonly kind: "ended";
  /** The child's answer when it was told the result. */
  readonly reply?: string;
  readonly spent: Spent;
}

export async function findNestedPlan(
  dependencies: NestedDependencies,
  around: Around,
): Promise<Nested | undefined> {
  const state = await readNestedState(dependencies, around);
  if (!state?.plan) return undefined;
  if (state.kind === "open") return { kind: "open" };
  const deliveryPhase = [...state.steps.values()].find(isDelivery)?.phase;
  const output = deliveryPhase?.status === "completed" ? deliveryPhase.output : undefined;
  const text = output && (await dependencies.content.get(output.sha256));
  const { spent } = state.plan;
  return { kind: "ended", spent, ...(text !== undefined && { reply: readReply(text) }) };
}

/** Returns the ending with what the child said last and what its nested plan used. */
export function withNested<E extends ChildEnding>(ending: E, { reply, spent }: NestedEnd): E {
  const { tokens = 0, costMicroUsd = 0 } = ending.usage ?? {};
  const usage = { tokens: tokens + spent.tokens, costMicroUsd: costMicroUsd + spent.costMicroUsd };
  return { ...ending, usage, ...(reply !== undefined && { reply }) };
}

/** The attempt is over, so nobody waits for what its child submitted. */
export async function cancelNested(dependencies: NestedDependencies, around: Around): Promise<void> {
  const state = await readNestedState(dependencies, around);
  if (state?.kind !== "open") return;
  await dependencies.runs.submit(state.coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

async function readNestedState(
  { store, runs }: NestedDependencies,
  { runId, stepId, session }: Around,
): Promise<KnownCoordination | undefined> {
  const found = await store.find(nameOfNested(runId, stepId));
  if (!found) return undefined;
  const state = await runs.state(found.runId);
  return state.kind !== "unopened" && state.created.ownerSession === session ? state : undefined;
}

function readReply(json: string): string {
  const outputs = JSON.parse(json) as { text?: unknown };
  return typeof outputs.text === "string" ? outputs.text : json;
}
