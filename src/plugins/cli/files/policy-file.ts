/** Owns: reading the policy that a history is looked at under, or a fork goes on under. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../../agents/coordination/contracts/config/replay-policy.ts";
import { loadPlanFile } from "./plan-file.ts";

/** JSON or YAML. @throws CoordinationError `INPUT_INVALID` */
export async function readPolicyFile(file: string): Promise<ReplayPolicy> {
  return parseReplayPolicy(await readPolicyValue(file));
}

/** Loads a policy as it is written, once it is known to be one. @throws CoordinationError `INPUT_INVALID` */
export async function loadPolicyFile(file: string): Promise<unknown> {
  const value = await readPolicyValue(file);
  parseReplayPolicy(value);
  return value;
}

/** Reads a value as it is written, JSON or YAML. @throws CoordinationError `INPUT_INVALID` with the place of each problem */
export async function readPolicyValue(file: string): Promise<unknown> {
  const loaded = await loadPlanFile(file);
  if (loaded.ok) return loaded.value;
  const problems = loaded.problems.map(({ path, message }) => `${path}: ${message}`);
  throw new CoordinationError("INPUT_INVALID", `${file}: ${problems.join("; ")}`);
}
