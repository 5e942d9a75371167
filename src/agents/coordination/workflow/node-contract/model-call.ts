/** Owns: what the log tells of a call of a model, whichever node made it: what was asked, what it cost, that it was refused. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { withNodeId, type EffectOutcome, type NodeView } from "./node-type.ts";
import type { ModelAsked } from "./agent-effects.ts";
import type { Values } from "../state/values.ts";

/**
 * Drafts what an outcome tells of calls of a model: request, usage and refusal; empty for outcomes without one. It
 * comes ahead of what the node makes of the outcome.
 */
export function draftModelCall(view: NodeView, outcome: EffectOutcome): WorkflowDraft[] {
  switch (outcome.kind) {
    case "model_answered":
    case "agent_turned":
      return [...draftModelRequest(view, outcome.asked), draftModelUsage(view, outcome)];
    case "model_refused":
      return [
        ...draftModelRequest(view, outcome.asked),
        draftModelUsage(view, outcome),
        draftModelRefusal(view, outcome),
      ];
    case "child_judged":
      return (outcome.calls ?? []).map((call) => draftModelUsage(view, call));
    case "failed":
      return draftModelRequest(view, outcome.asked);
    default:
      return [];
  }
}

function draftModelRequest(view: NodeView, request: ModelAsked | undefined): WorkflowDraft[] {
  if (!request) return [];
  const { provider, model, digest } = request;
  const payload = { nodeId: view.nodeRun.nodeId, provider, model, requestDigest: digest };
  return [withNodeId(view, { type: "coordination.model_asked", payload } as const)];
}

/** The model that was called, and the usage it reported. */
interface CalledModel {
  readonly model: string;
  readonly usage: Values;
}

function draftModelUsage(view: NodeView, { model, usage: tokens }: CalledModel): WorkflowDraft {
  const tokensOf = (key: string): number => (typeof tokens[key] === "number" ? tokens[key] : 0);
  const payload = {
    provider: readProviderName(tokens),
    model,
    inputTokens: tokensOf("inputTokens"),
    outputTokens: tokensOf("outputTokens"),
    nodeId: view.nodeRun.nodeId,
  };
  return withNodeId(view, { type: "provider.usage", payload });
}

function draftModelRefusal(view: NodeView, { model, usage: tokens }: CalledModel): WorkflowDraft {
  const payload = { nodeId: view.nodeRun.nodeId, provider: readProviderName(tokens), model };
  return withNodeId(view, { type: "envelope.refusal", payload } as const);
}

/** Returns the provider that the usage names, else `openai-compatible`. */
function readProviderName({ provider }: Values): string {
  return typeof provider === "string" && provider !== "" ? provider : "openai-compatible";
}
