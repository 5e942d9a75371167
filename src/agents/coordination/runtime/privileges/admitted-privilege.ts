/** Owns: what a step is admitted with: what was asked for it, and the operator's rule for its agent. */
import type { PrivilegesConfig } from "../../contracts/config/privileges-config.ts";
import type { RunnerKind, StepAdmitted } from "../../contracts/fact-fields.ts";
import { findAgentEntry } from "../../contracts/host-agent-id.ts";
import type { AgentId } from "../../contracts/ids.ts";
import type { AdmittedPrivilege, Privilege } from "../../contracts/privilege.ts";
import { isNarrowing } from "../../privileges/privilege-bound.ts";

/** The agent of a step, and the privilege that was asked for the step. */
interface PrivilegeRequest {
  readonly agentId: AgentId;
  readonly askedPrivilege?: Privilege | undefined;
}

/**
 * Creates the privilege that a step is admitted with; `undefined` where neither the step nor the operator narrows it.
 * The operator's rule is recorded too, so that a step is held to the one it began with.
 */
export function createAdmittedPrivilege(
  config: PrivilegesConfig | undefined,
  { agentId, askedPrivilege }: PrivilegeRequest,
): AdmittedPrivilege | undefined {
  const ofStep = keepNarrowing(askedPrivilege);
  const policy = keepNarrowing(config && findOperatorPrivilege(config, agentId));
  return ofStep || policy ? { ...(ofStep && { asked: ofStep }), ...(policy && { policy }) } : undefined;
}

function findOperatorPrivilege(
  { agents, default: ofOthers }: PrivilegesConfig,
  agentId: AgentId,
): Privilege | undefined {
  return findAgentEntry(agents, agentId) ?? ofOthers;
}

function keepNarrowing(privilege: Privilege | undefined): Privilege | undefined {
  return privilege && isNarrowing(privilege) ? privilege : undefined;
}

const UNSEEN: ReadonlySet<RunnerKind> = new Set(["acp", "acp_stdio"]);

/**
 * Returns the reason, in words for the model, why a child with narrowed privileges must not begin; `undefined` where
 * it may. The calls of an ACP agent do not come by here, so nothing could hold it to its privileges.
 */
export function explainUnenforceable(
  { agentId, runner }: Pick<StepAdmitted, "agentId" | "runner">,
  isHeld: boolean,
): string | undefined {
  if (!isHeld || !UNSEEN.has(runner)) return undefined;
  return `what agent ${agentId} may do is narrowed, and the calls of an ACP agent cannot be seen; use an agent that the host runs itself (runtime "subagent")`;
}
