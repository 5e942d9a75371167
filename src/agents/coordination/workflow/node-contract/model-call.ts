/** Owns: what the log tells of a call of a model, whichever node made it: what was asked, what it cost, that it was refused. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { withNodeId, type EffectOutcome, type NodeView } from "./node-type.ts";
import type { ModelAsked } from "./agent-effects.ts";
import type { Values } from "../state/values.ts";

/** Comes ahead of what the node makes of the outcome; nothing where it is none of a model. */
export function draftModelCall(view: NodeView, outcome: EffectOutcome): WorkflowDraft[] {
  switch (outcome.kind) {
    case "model_answered":
    case "agent_turned":
      return [...draftRequest(view, outcome.asked), draftUsage(view, outcome)];
    case "model_refused":
      return [...draftRequest(view, outcome.asked), draftUsage(view, outcome), draftRefusal(view, outcome)];
    case "child_judged":
      return (outcome.calls ?? []).map((call) => draftUsage(view, call));
    case "failed":
      return draftRequest(view, outcome.asked);
    default:
      return [];
  }
}

function draftRequest(view: NodeView, request: ModelAsked | undefined): WorkflowDraft[] {
  if (!request) return [];
  const { provider, model, digest } = request;
  const payload = { nodeId: view.nodeRun.nodeId, provider, model, requestDigest: digest };
  return [withNodeId(view, { type: "coordination.model_asked", payload } as const)];
}

interface Called {
  readonly model: string;
  readonly usage: Values;
}

function draftUsage(view: NodeView, { model, usage: tokens }: Called): WorkflowDraft {
  const tokensOf = (key: string): number => (typeof tokens[key] === "number" ? tokens[key] : 0);
  const payload = {
    provider: providerOf(tokens),
    model,
    inputTokens: tokensOf("inputTokens"),
    outputTokens: tokensOf("outputTokens"),
    nodeId: view.nodeRun.nodeId,
  };
  return withNodeId(view, { type: "provider.usage", payload });
}

function draftRefusal(view: NodeView, { model, usage: tokens }: Called): WorkflowDraft {
  const payload = { nodeId: view.nodeRun.nodeId, provider: providerOf(tokens), model };
  return withNodeId(view, { type: "envelope.refusal", payload } as const);
}

function providerOf({ provider }: Values): string {
  return typeof provider === "string" && provider !== "" ? provider : "openai-compatible";
}
