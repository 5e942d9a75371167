/** Owns: `ModelClient` over the host's completions: one question to a model, without tools, history or session. */
import { parseHostAgentId } from "../../../agents/coordination/contracts/host-agent-id.ts";
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import type { ModelClient } from "../../../agents/coordination/ports/model-client.ts";
import type { HostRuntime } from "./host-runs.ts";
import { runOutsideCalls } from "./outside-calls.ts";

/** The host's own default for completions is larger than any verdict. */
const TOKENS_PER_CHAR = 0.5;

/**
 * Creates the client that asks the host's model one question, outside of the async context of the call that is under
 * way; it rejects where the model gave no whole answer.
 */
export function createHostModel(runtime: HostRuntime): ModelClient {
  return {
    complete: ({ agentId, system, prompt, charsMax, signal }) =>
      runOutsideCalls(async () => {
        const isDefault = parseHostAgentId(agentId) === readDefaultAgent(runtime);
        const { text, model, stopReason } = await runtime.llm.complete({
          systemPrompt: system,
          messages: [{ role: "user", content: prompt }],
          maxTokens: Math.ceil(charsMax * TOKENS_PER_CHAR),
          // The host asks for a permission where the agent is named, also where it is the one that it would take.
          ...(!isDefault && { agentId }),
          purpose: "coordination.verify",
          signal,
        });
        // An aborted call resolves.
        if (stopReason !== "stop")
          throw new Error(`the model gave no whole answer (${stopReason ?? "unknown"})`);
        return { text: text.slice(0, charsMax), model };
      }),
  };
}

/** The agents in the host's configuration, as far as the default one is found by them. */
interface AgentEntries {
  readonly ownership?: string;
  readonly entries?: Readonly<Record<string, { readonly default?: boolean } | undefined>>;
}

/**
 * Returns the one agent that the host marks as default, which does not count with explicit ownership, or else the only
 * one, or `main` without any; `undefined` where there are several.
 */
export function readDefaultAgent(runtime: HostRuntime): AgentId | undefined {
  const { agents = {} } = runtime.config.current() as { readonly agents?: AgentEntries };
  const ids = Object.keys(agents.entries ?? {});
  const marked = agents.ownership === "explicit" ? [] : ids.filter((id) => agents.entries?.[id]?.default);
  const [only = "main", ...others] = marked.length === 1 ? marked : ids;
  return others.length === 0 ? parseHostAgentId(only) : undefined;
}
