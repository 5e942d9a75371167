/** Owns: reading the policy that a history is looked at under, or a fork goes on under. */
import { createInputError } from "../../../agents/coordination/contracts/errors.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../../agents/coordination/contracts/config/replay-policy.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { describeSyntaxProblems, readJsonOrYaml } from "./read-json-or-yaml.ts";

/**
 * Reads a file in JSON or YAML and returns the policy for a replay that it holds. @throws CoordinationError
 * `INPUT_INVALID`
 */
export async function parsePolicyFile(file: string): Promise<ReplayPolicy> {
  const value = await loadRawPolicyFile(file);
  return parseReplayPolicy(value);
}

/**
 * Reads a file in JSON or YAML and returns the policy for a replay as it is written, not parsed, once it is known to
 * be a valid one and no policy pack. @throws CoordinationError `INPUT_INVALID`
 */
export async function loadRawPolicyFile(file: string): Promise<unknown> {
  const value = await readPolicyValue(file, "a policy");
  assertNoPolicyPack(file, value);
  parseReplayPolicy(value);
  return value;
}

/** Throws for a policy pack, which has the same rules as a policy below `settings`, and more. */
function assertNoPolicyPack(file: string, value: unknown): void {
  if (!isRecord(value) || !isRecord(value["settings"]) || value["version"] === undefined) return;
  throw createInputError(
    `${file}: this is a policy pack; \`policy test ${file}\` tries it on what the ledger has recorded`,
  );
}

/** Reads a policy or a policy pack as it is written, JSON or YAML. @throws CoordinationError `INPUT_INVALID` with the place of each problem */
export async function readPolicyValue(file: string, subject: string): Promise<unknown> {
  const loaded = await readJsonOrYaml(file, subject);
  if (loaded.ok) return loaded.value;
  throw createInputError(`${file}: ${describeSyntaxProblems(loaded.problems)}`);
}
