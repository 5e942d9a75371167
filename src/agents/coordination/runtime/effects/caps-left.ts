/** Owns: how many more steps each session and each agent may have at work, by the caps on them and by providers. */
import type { AgentId, SessionKey } from "../../contracts/ids.ts";
import type { Allowance } from "../../lanes/pick-best.ts";

/** Work that was handed to the lanes and has not given its place back. */
export interface HeldPlace {
  readonly session: SessionKey;
  readonly agentId: AgentId;
  readonly isReleased?: boolean;
}

export interface Caps {
  readonly perSessionMax?: number;
  readonly perAgentMax?: number;
}

/**
 * Computes what the caps per session and per agent leave: nothing to an agent that its provider holds back. Returns `undefined`
 * where there is neither a cap nor such an agent.
 */
export function computeAllowance(
  { perSessionMax, perAgentMax }: Caps,
  handedIn: Iterable<HeldPlace>,
  heldBackAgents: ReadonlySet<AgentId>,
): Allowance | undefined {
  const isAgentLimited = perAgentMax !== undefined || heldBackAgents.size > 0;
  if (perSessionMax === undefined && !isAgentLimited) return undefined;
  const heldPlaces = [...handedIn].filter(({ isReleased }) => !isReleased);
  const ofSession = Map.groupBy(heldPlaces, ({ session }) => session);
  const ofAgent = Map.groupBy(heldPlaces, ({ agentId }) => agentId);
  return {
    ...(perSessionMax !== undefined && {
      ofSession: (session) => perSessionMax - (ofSession.get(session)?.length ?? 0),
    }),
    ...(isAgentLimited && {
      ofAgent: (agentId) =>
        heldBackAgents.has(agentId) ? 0 : (perAgentMax ?? Infinity) - (ofAgent.get(agentId)?.length ?? 0),
    }),
  };
}
