/** Owns: how hooks and commands reach the agents of manifests of this process. */
import { sessionKeySchema } from "../../../agents/coordination/contracts/ids.ts";
import type { ChatAgents, ChatRun } from "../../chat-agents.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { withRuntime, type SharedRuntime } from "./shared-runtime.ts";
import { tellSessionLate } from "../runners/tell-late.ts";
import { runWithinBudget } from "../host/within-budget.ts";

export interface OpenChats {
  /** Absent while OpenWOP is not served. */
  readonly chats?: ChatAgents;
  readonly runtime: SharedRuntime;
  /** Tells a session of a run that its chat no longer waited for. */
  readonly tellIn: (sessionKey: string | undefined) => (run: ChatRun) => void;
}

/** Runs `work` where the agents can be called. @throws CoordinationError */
export type UseChats = <T>(work: (open: OpenChats) => Promise<T>) => Promise<T>;

/**
 * Creates the function that runs work with the open runtime and the agents that chats can call, which are missing
 * where OpenWOP is not served.
 */
export function createChatAccess(api: OpenClawPluginApi): UseChats {
  return async (work) => {
    const runtime = await withRuntime(api, (open) => Promise.resolve(open));
    // In the context of this call, from which the host lets its model be asked.
    const chats = runtime.openwop && (await runWithinBudget(runtime.openwop.chats()));
    const tellIn: OpenChats["tellIn"] = (key) => (run) => {
      const session = sessionKeySchema.safeParse(key).data;
      if (session) void tellSessionLate({ runtime: api.runtime, logger: runtime.logger }, session, run);
    };
    return runOutsideCalls(() => work({ runtime, tellIn, ...(chats && { chats }) }));
  };
}
