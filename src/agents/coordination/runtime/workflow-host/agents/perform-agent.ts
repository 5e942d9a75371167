/** Owns: doing what an agent's invocation needs of the outside. */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { TraceContext } from "../../../ports/outbound.ts";
import type { AgentEffect } from "../../../workflow/node-contract/agent-effects.ts";
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { callAgentTool, type CallDependencies } from "./agent-call.ts";
import { prepareAgent, type PrepareDependencies } from "./agent-prepare.ts";
import { runAgentTurn, type TurnDependencies } from "./agent-turn.ts";
import type { LoadedRun } from "../records/run-book.ts";

export type AgentDependencies = CallDependencies & PrepareDependencies & TurnDependencies;

export interface AgentAct {
  readonly effect: AgentEffect;
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
  readonly parent: () => CallingRun;
  readonly readMemory: (
    scope: string,
    query: { readonly tag?: string; readonly limit?: number },
  ) => Promise<readonly Values[]>;
}

/** Prepares an agent, asks its model or calls a tool for it, as the effect says, and returns the outcome of that. */
export async function performAgentEffect(
  dependencies: AgentDependencies,
  { run }: LoadedRun,
  act: AgentAct,
): Promise<EffectOutcome> {
  const { effect, signal, trace } = act;
  switch (effect.kind) {
    case "prepare_agent":
      return prepareAgent(dependencies, { run, effect, signal, trace });
    case "ask_agent":
      return runAgentTurn(dependencies, { run, effect, signal, trace });
    case "call_agent_tool": {
      const scope = run.nodes.get(effect.nodeId)?.invocation?.bound?.memoryScope;
      const readMemory: Parameters<typeof callAgentTool>[1]["readMemory"] = (query) =>
        scope === undefined ? Promise.resolve([]) : act.readMemory(scope, query);
      return callAgentTool(dependencies, { run, effect, signal, trace, readMemory, parent: act.parent() });
    }
  }
}
