/**
 * Owns: refusing a spawn that is not recorded although its child is to be held to something, or its result to be checked: only the
 * ledger tells what that is. Others go on.
 */
import { explainUnheldResult } from "../../../agents/coordination/runtime/held-results/gate-of.ts";
import { privilegeOf } from "../../../agents/coordination/runtime/privileges/admitted-privilege.ts";
import type { HookResult } from "../host/sdk.ts";
import { createRefusal } from "../runtime-access/refuse-call.ts";
import type { PrivilegeRules } from "../runtime-access/rules-in-force.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { SpawnReading } from "./spawn-request.ts";

type BeforeResult = HookResult<"before_tool_call">;

/** Refuses a coordinated spawn that is not recorded, where its result or its child would have to be held. */
export function refuseUnrecordable(
  runtime: SharedRuntime,
  reading: SpawnReading,
  because: string,
): BeforeResult {
  return (
    refuseUngated(runtime, reading.target, because) ??
    refuseUnrecorded(runtime.privilegeRules, reading, because)
  );
}

/** Refuses a spawn that is not recorded where the operator demands that the results of its agent are checked. */
export function refuseUngated(
  { gateOfAgent }: Pick<SharedRuntime, "gateOfAgent">,
  target: SpawnReading["target"],
  because: string,
): BeforeResult {
  const reason = target && explainUnheldResult(gateOfAgent(target.agentId), target, because);
  return reason === undefined ? undefined : createRefusal("spawn", reason);
}

/**
 * Refuses a spawn that is not recorded although its child is to be held to something. Whatever holds the session that spawns holds
 * their children, too: they are found through the host's record of who spawned whom, also where the ledger cannot be read
 * (`privilege-handlers.ts`).
 */
export function refuseUnrecorded(
  rules: PrivilegeRules,
  reading: SpawnReading,
  because: string,
): BeforeResult {
  if (reading.kind === "spawn" && reading.privilegeProblem !== undefined)
    return createRefusal("spawn", reading.privilegeProblem);
  if (!isAskedToHold(rules, reading)) return undefined;
  const bounds =
    rules === "unreadable"
      ? "nobody can tell what its child may do, because the rules in `privileges` are not valid"
      : "what its child may do is narrowed";
  return createRefusal("spawn", `${bounds}, and ${because}, so nothing would hold it`);
}

/** True where the spawn itself or the operator's rule for the agent holds the child to something, or may. */
export function isAskedToHold(rules: PrivilegeRules, reading: SpawnReading): boolean {
  const askedPrivilege = reading.kind === "spawn" ? reading.request.spawn.askedPrivilege : undefined;
  const agentId = reading.target?.agentId;
  // Whose work it will be is not known here: every pack's rules count.
  return (
    agentId !== undefined &&
    (rules === "unreadable" ||
      rules.some((config) => privilegeOf(config, { agentId, askedPrivilege }) !== undefined))
  );
}
