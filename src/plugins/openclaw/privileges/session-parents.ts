/** Owns: who spawned a session, by the host's own record of it: for sessions that the ledger does not know. */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { ParentOf } from "../../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import { createRecent } from "../host/recent.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { agentOf } from "../host/session-agent.ts";

const SESSIONS_MAX = 1_000;

/** Who spawned a session does not change, so what was found once is kept. */
export function createSessionParents({ runtime }: OpenClawPluginApi): ParentOf {
  const parents = createRecent<SessionKey>(SESSIONS_MAX);
  return (session) => {
    const parent = parents.get(session) ?? readParent(runtime, session);
    if (parent !== undefined) parents.set(session, parent);
    return parent;
  };
}

function readParent(runtime: OpenClawPluginApi["runtime"], session: SessionKey): SessionKey | undefined {
  const entry = runtime.agent.session.getSessionEntry({
    sessionKey: session,
    agentId: agentOf(session),
    readConsistency: "latest",
  });
  const parent = entry?.spawnedBy ?? entry?.parentSessionKey;
  return typeof parent === "string" && parent !== "" && parent !== session
    ? (parent as SessionKey)
    : undefined;
}
