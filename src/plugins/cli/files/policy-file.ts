/** Owns: reading the policy that a history is looked at under, or a fork goes on under. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../../agents/coordination/contracts/config/replay-policy.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { describeSlips, loadPlanFile } from "./plan-file.ts";

/** JSON or YAML. @throws CoordinationError `INPUT_INVALID` */
export async function readPolicyFile(file: string): Promise<ReplayPolicy> {
  const value = await loadPolicyFile(file);
  return parseReplayPolicy(value);
}

/** Loads a policy as it is written, once it is known to be one. @throws CoordinationError `INPUT_INVALID` */
export async function loadPolicyFile(file: string): Promise<unknown> {
  const value = await readPolicyValue(file);
  refusePack(file, value);
  parseReplayPolicy(value);
  return value;
}

/** A pack has the same rules below `settings`, and more. */
function refusePack(file: string, value: unknown): void {
  if (!isRecord(value) || !isRecord(value["settings"]) || value["version"] === undefined) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${file}: this is a policy pack; \`policy test ${file}\` tries it on what the ledger has recorded`,
  );
}

/** Reads a value as it is written, JSON or YAML. @throws CoordinationError `INPUT_INVALID` with the place of each problem */
export async function readPolicyValue(file: string): Promise<unknown> {
  const loaded = await loadPlanFile(file);
  if (loaded.ok) return loaded.value;
  throw new CoordinationError("INPUT_INVALID", `${file}: ${describeSlips(loaded.problems)}`);
}
