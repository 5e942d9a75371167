/** Owns: which answer an agent program gets when it asks for permission to do something. */
import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk";
import type { AcpAgentConfig } from "../../agents/coordination/contracts/config/config.ts";

/**
 * Chooses the answer to an agent that asks for permission. Never an option that holds for ever: that is a person's to give
 * or to refuse.
 */
export function answerPermission(
  options: readonly PermissionOption[],
  permissions: AcpAgentConfig["permissions"],
): RequestPermissionOutcome {
  const chosen =
    (permissions === "allow" ? options.find(({ kind }) => kind === "allow_once") : undefined) ??
    options.find(({ kind }) => kind === "reject_once");
  return chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" };
}
