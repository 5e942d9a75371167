/** Owns: `ModelClient` over the host's completions: one question to a model, without tools, history or session. */
import type { ModelClient } from "../../agents/coordination/ports/model-client.ts";
import type { HostRuntime } from "./host-runs.ts";
import { outsideCalls } from "./outside-calls.ts";

/** The host's own default for completions is larger than any verdict. */
const TOKENS_PER_CHAR = 0.5;

export function hostModel(runtime: HostRuntime): ModelClient {
  return {
    complete: ({ agentId, system, prompt, charsMax, signal }) =>
      outsideCalls(async () => {
        const isDefault = agentId === defaultAgent(runtime);
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

function defaultAgent(runtime: HostRuntime): string {
  const { agents } = runtime.config.current() as {
    readonly agents?: {
      readonly entries?: Readonly<Record<string, { readonly default?: boolean } | undefined>>;
    };
  };
  const named = Object.entries(agents?.entries ?? {}).find(([, agent]) => agent?.default);
  return named?.[0] ?? "main";
}
