/**
 * Owns: the plan that the child of a step submitted. The step goes on as long as that plan runs, and the plan ends with
 * the attempt whose child submitted it.
 */
import type { CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import type { Coordination } from "../ledger/state.ts";
import { nestedName } from "../ledger/summary.ts";
import type { RuntimeParts } from "./runtime-parts.ts";

type NestedParts = Pick<RuntimeParts, "store" | "runs" | "content">;

/** The attempt whose child may have submitted a plan. */
interface Around {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  /** D3: what the child of another attempt submitted is not of this one. */
  readonly session: SessionKey;
}

export type Nested =
  | { readonly kind: "open"; readonly reply?: undefined }
  /** What the child said when it was told the result. */
  | { readonly kind: "ended"; readonly reply?: string };

export async function nestedPlan(parts: NestedParts, around: Around): Promise<Nested | undefined> {
  const state = await nestedState(parts, around);
  if (!state || state.kind === "unopened") return undefined;
  if (state.kind === "open") return { kind: "open" };
  const told = [...state.steps.values()].find(isDelivery)?.phase;
  const output = told?.status === "completed" ? told.output : undefined;
  const text = output && (await parts.content.get(output.sha256));
  return { kind: "ended", ...(text !== undefined && { reply: repliedIn(text) }) };
}

/** The attempt is over, so nobody waits for what its child submitted. */
export async function cancelNested(parts: NestedParts, around: Around): Promise<void> {
  const state = await nestedState(parts, around);
  if (state?.kind !== "open") return;
  await parts.runs.submit(state.coordinationId, [{ type: "cancelCoordination", by: "parent" }]);
}

async function nestedState(
  { store, runs }: NestedParts,
  { runId, stepId, session }: Around,
): Promise<Coordination | undefined> {
  const found = await store.find(nestedName(runId, stepId));
  if (!found) return undefined;
  const state = await runs.state(found.runId);
  return state.kind !== "unopened" && state.created.ownerSession === session ? state : undefined;
}

function repliedIn(json: string): string {
  const outputs = JSON.parse(json) as { text?: unknown };
  return typeof outputs.text === "string" ? outputs.text : json;
}
