/**
 * Owns: what holds a session: the privileges of its own step and of every step above it.
 *
 * V1 a call is allowed only where every bound allows it, so a child never has more than whoever it works for, at any depth. V2 the
 * answer does not depend on the order of the bounds; only which of several refusals is told does. V3 deny beats allow.
 */
import type { AdmittedPrivilege, Privilege, PrivilegeSource } from "../contracts/privilege.ts";
import type { AgentId, CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";

/** One privilege that holds a session, and the step that it was set for. */
export interface PrivilegeBound {
  readonly privilege: Privilege;
  readonly by: PrivilegeSource;
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly agentId: AgentId;
  /** The session that works on that step: where relative globs of its plan or spawn begin. */
  readonly session: SessionKey;
}

/** A step that stands between a session and the owner, or the session's own. */
export interface PrivilegedStep {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly agentId: AgentId;
  readonly session: SessionKey;
  readonly isPlanned: boolean;
  readonly privilege?: AdmittedPrivilege;
  /** The worktree that an isolated step works in. */
  readonly worktree?: MergedTree;
}

/** A worktree, and the folder that its work will be merged into. */
export interface MergedTree {
  readonly tree: string;
  readonly repository: string;
}

/**
 * Lists the bounds on tools and files that a step adds for its session: what was asked for it, then the operator's
 * policy; none where neither limits anything.
 */
export function listBoundsOfStep(step: PrivilegedStep): PrivilegeBound[] {
  const { coordinationId, stepId, agentId, session, isPlanned, privilege } = step;
  const place = { coordinationId, stepId, agentId, session };
  const createBound = (by: PrivilegeSource, set: Privilege | undefined): PrivilegeBound[] =>
    set && isNarrowing(set) ? [{ privilege: set, by, ...place }] : [];
  return [
    ...createBound(isPlanned ? "step" : "spawn", privilege?.asked),
    ...createBound("policy", privilege?.policy),
  ];
}

/** True when a privilege limits tools or changes of files; false where it allows all that the host does. */
export function isNarrowing({ tools, write }: Privilege): boolean {
  return tools?.allow !== undefined || (tools?.deny ?? []).length > 0 || write !== undefined;
}
