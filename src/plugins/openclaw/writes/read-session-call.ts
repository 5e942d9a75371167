/** Owns: which session a message goes to. */
import { readHostTextParam } from "../runtime-access/host-param.ts";
import { createResourceTarget } from "./resource-target.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/**
 * Returns the session to which a call of `sessions_send` sends a message, an agent's main one where only the agent is
 * named; undetermined for a label, a session id or no name, which the host looks up itself.
 */
export function readSessionsSendCall(call: ToolCall): ToolReading {
  const { params } = call;
  const key = readHostTextParam(params, "sessionKey");
  if (key !== undefined) return createSendReading(resolveSessionKey(key, call));
  if (readHostTextParam(params, "label") !== undefined) return UNREADABLE;
  const agent = readHostTextParam(params, "agentId");
  return createSendReading(
    agent !== undefined && AGENT_ID.test(agent) ? formatMainSession(agent, call.mainKey) : undefined,
  );
}

const AGENT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/iu;

function formatMainSession(agent: string, mainKey = "main"): string {
  return `agent:${agent.toLowerCase()}:${mainKey.trim().toLowerCase() || "main"}`;
}

function resolveSessionKey(key: string, { session, mainKey }: ToolCall): string | undefined {
  if (key === "current") return session;
  const [, ownAgent] = session?.split(":") ?? [];
  if (key === "main" && ownAgent !== undefined) return formatMainSession(ownAgent, mainKey);
  return /^agent:/iu.test(key) ? normalizeSessionName(key) : undefined;
}

/**
 * Returns a session key in lower case, as the host knows it; `undefined` where it is blank or has control characters.
 */
export function normalizeSessionName(key: string): string | undefined {
  const name = key.trim().toLowerCase();
  return name === "" || /\p{Cc}/u.test(name) ? undefined : name;
}

function createSendReading(key: string | undefined): ToolReading {
  const target = key === undefined ? undefined : createResourceTarget(`session:${key}`);
  return target ? { targets: [target], reads: [] } : UNREADABLE;
}
