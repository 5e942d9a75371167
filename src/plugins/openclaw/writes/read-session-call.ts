/** Owns: which session a message goes to. */
import { readHostTextParam } from "../runtime-access/host-param.ts";
import { createResourceTarget } from "./resource-target.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/** The host takes an agent's main session where no other is named, and looks labels and session ids up itself. */
export function readSessionsSendCall(call: ToolCall): ToolReading {
  const { params } = call;
  const key = readHostTextParam(params, "sessionKey");
  if (key !== undefined) return sendTo(keyOf(key, call));
  if (readHostTextParam(params, "label") !== undefined) return UNREADABLE;
  const agent = readHostTextParam(params, "agentId");
  return sendTo(
    agent !== undefined && AGENT_ID.test(agent) ? formatMainSession(agent, call.mainKey) : undefined,
  );
}

const AGENT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/iu;

function formatMainSession(agent: string, mainKey = "main"): string {
  return `agent:${agent.toLowerCase()}:${mainKey.trim().toLowerCase() || "main"}`;
}

function keyOf(key: string, { session, mainKey }: ToolCall): string | undefined {
  if (key === "current") return session;
  const [, ownAgent] = session?.split(":") ?? [];
  if (key === "main" && ownAgent !== undefined) return formatMainSession(ownAgent, mainKey);
  return /^agent:/iu.test(key) ? normalizeSessionName(key) : undefined;
}

/** The host knows a session by lower-case letters; a key with what no key has is none. */
export function normalizeSessionName(key: string): string | undefined {
  const name = key.trim().toLowerCase();
  return name === "" || /\p{Cc}/u.test(name) ? undefined : name;
}

function sendTo(key: string | undefined): ToolReading {
  const target = key === undefined ? undefined : createResourceTarget(`session:${key}`);
  return target ? { targets: [target], reads: [] } : UNREADABLE;
}
