/** Owns: which refused calls of a child are recorded: the first ones of each step, because a model may try for ever. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";

/** Records that a call was refused by the privileges of its session. Calls beyond the bound are refused all the same. */
export function recordRefusedCall(
  { steps }: OpenCoordination,
  { type: _, ...payload }: Command & { type: "recordRefusedCall" },
): Decision {
  const { stepId } = payload;
  const step = steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const count = step.refusedCalls?.length ?? 0;
  if (count >= BOUNDS.privilegeRefusalsMax) return { kind: "replay", stepId };
  return accept([{ type: "privilege.refused", payload }], stepId);
}
