/**
 * Owns: refusing a spawn that is not recorded although its child is to be held to something, or its result to be checked: only the
 * ledger tells what that is. Others go on.
 */
import { explainUnheldResult } from "../../../agents/coordination/runtime/held-results/gate-of.ts";
import { createAdmittedPrivilege } from "../../../agents/coordination/runtime/privileges/admitted-privilege.ts";
import type { HookResult } from "../host/sdk.ts";
import { createCallRefusal } from "../runtime-access/refuse-call.ts";
import type { PrivilegeRules } from "../runtime-access/rules-in-force.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { SpawnReading } from "./spawn-request.ts";

type BeforeResult = HookResult<"before_tool_call">;

/**
 * Returns a refusal of a spawn that could not be recorded where its result would have to be checked or its child
 * bounded; `undefined` where it may go on uncoordinated.
 */
export function refuseUnrecordedSpawn(
  runtime: SharedRuntime,
  reading: SpawnReading,
  because: string,
): BeforeResult {
  return (
    refuseUncheckedResult(runtime, reading.target, because) ??
    refuseUnboundedChild(runtime.privilegeRules, reading, because)
  );
}

/**
 * Returns a refusal of a spawn that could not be recorded where the operator demands that results of its agent are
 * checked; `undefined` where its result needs no check.
 */
export function refuseUncheckedResult(
  { gateOfAgent }: Pick<SharedRuntime, "gateOfAgent">,
  target: SpawnReading["target"],
  because: string,
): BeforeResult {
  const reason = target && explainUnheldResult(gateOfAgent(target.agentId), target, because);
  return reason === undefined ? undefined : createCallRefusal("spawn", reason);
}

/**
 * Returns a refusal of a spawn that could not be recorded where its child's privileges are to be bounded, or the
 * bounds asked for are wrong; `undefined` else. Whatever holds the session that spawns holds their children, too: they
 * are found through the host's record of who spawned whom, also where the ledger cannot be read
 * (`privilege-handlers.ts`).
 */
export function refuseUnboundedChild(
  rules: PrivilegeRules,
  reading: SpawnReading,
  because: string,
): BeforeResult {
  if (reading.kind === "spawn" && reading.privilegeProblem !== undefined)
    return createCallRefusal("spawn", reading.privilegeProblem);
  if (!isChildBounded(rules, reading)) return undefined;
  const bounds =
    rules === "unreadable"
      ? "nobody can tell what its child may do, because the rules in `privileges` are not valid"
      : "what its child may do is narrowed";
  return createCallRefusal("spawn", `${bounds}, and ${because}, so nothing would hold it`);
}

/**
 * True where the spawn itself or a rule of any policy pack for its agent bounds the child's privileges, or may,
 * because the rules are unreadable.
 */
export function isChildBounded(rules: PrivilegeRules, reading: SpawnReading): boolean {
  const askedPrivilege = reading.kind === "spawn" ? reading.request.spawn.askedPrivilege : undefined;
  const agentId = reading.target?.agentId;
  // Whose work it will be is not known here: every pack's rules count.
  return (
    agentId !== undefined &&
    (rules === "unreadable" ||
      rules.some((config) => createAdmittedPrivilege(config, { agentId, askedPrivilege }) !== undefined))
  );
}
