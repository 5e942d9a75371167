/** Owns: what a step is admitted with: what was asked for it, and the operator's rule for its agent. */
import type { PrivilegesConfig } from "../../contracts/config/privileges-config.ts";
import type { RunnerKind, StepAdmitted } from "../../contracts/fact-fields.ts";
import { findAgentEntry } from "../../contracts/host-agent-id.ts";
import type { AgentId } from "../../contracts/ids.ts";
import type { AdmittedPrivilege, Privilege } from "../../contracts/privilege.ts";
import { isNarrowing } from "../../privileges/privilege-bound.ts";

interface Admitted {
  readonly agentId: AgentId;
  readonly askedPrivilege?: Privilege | undefined;
}

/** `undefined` where nobody says anything. The operator's rule is recorded too, so that a step is held to the one it began with. */
export function privilegeOf(
  config: PrivilegesConfig | undefined,
  { agentId, askedPrivilege }: Admitted,
): AdmittedPrivilege | undefined {
  const ofStep = keepNarrowing(askedPrivilege);
  const policy = keepNarrowing(config && findPolicy(config, agentId));
  return ofStep || policy ? { ...(ofStep && { asked: ofStep }), ...(policy && { policy }) } : undefined;
}

function findPolicy(
  { agents, default: ofOthers }: PrivilegesConfig,
  agentId: AgentId,
): Privilege | undefined {
  return findAgentEntry(agents, agentId) ?? ofOthers;
}

function keepNarrowing(privilege: Privilege | undefined): Privilege | undefined {
  return privilege && isNarrowing(privilege) ? privilege : undefined;
}

const UNSEEN: ReadonlySet<RunnerKind> = new Set(["acp", "acp_stdio"]);

/** Says why a child must not begin: its calls do not come by here, so nothing could hold it to its privileges. */
export function explainUnenforceable(
  { agentId, runner }: Pick<StepAdmitted, "agentId" | "runner">,
  isHeld: boolean,
): string | undefined {
  if (!isHeld || !UNSEEN.has(runner)) return undefined;
  return `what agent ${agentId} may do is narrowed, and the calls of an ACP agent cannot be seen; use an agent that the host runs itself (runtime "subagent")`;
}
