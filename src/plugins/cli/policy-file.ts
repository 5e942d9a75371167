/** Owns: reading the policy that a history is looked at under. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { parseReplayPolicy, type ReplayPolicy } from "../../agents/coordination/contracts/replay-policy.ts";
import { loadPlanFile } from "./plan-file.ts";

/** JSON or YAML. @throws CoordinationError `INPUT_INVALID` */
export async function readPolicyFile(file: string): Promise<ReplayPolicy> {
  const loaded = await loadPlanFile(file);
  if (loaded.ok) return parseReplayPolicy(loaded.value);
  const [problem] = loaded.problems;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${file}: ${problem?.path ?? "?"}: ${problem?.message ?? "?"}`,
  );
}
