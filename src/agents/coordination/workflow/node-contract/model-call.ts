/** Owns: what the log tells of a call of a model, whichever node made it: what was asked, what it cost, that it was refused. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { of, type EffectOutcome, type NodeView } from "./node-type.ts";
import type { ModelAsked } from "./agent-effects.ts";
import type { Values } from "../state/values.ts";

/** Comes ahead of what the node makes of the outcome; nothing where it is none of a model. */
export function modelCall(view: NodeView, outcome: EffectOutcome): WorkflowDraft[] {
  switch (outcome.kind) {
    case "model_answered":
    case "agent_turned":
      return [...asked(view, outcome.asked), usage(view, outcome)];
    case "model_refused":
      return [...asked(view, outcome.asked), usage(view, outcome), refusal(view, outcome)];
    case "child_judged":
      return (outcome.calls ?? []).map((call) => usage(view, call));
    case "failed":
      return asked(view, outcome.asked);
    default:
      return [];
  }
}

function asked(view: NodeView, given: ModelAsked | undefined): WorkflowDraft[] {
  if (!given) return [];
  const { provider, model, digest } = given;
  const payload = { nodeId: view.own.nodeId, provider, model, requestDigest: digest };
  return [of(view, { type: "coordination.model_asked", payload } as const)];
}

interface Called {
  readonly model: string;
  readonly usage: Values;
}

function usage(view: NodeView, { model, usage: tokens }: Called): WorkflowDraft {
  const tokensOf = (key: string): number => (typeof tokens[key] === "number" ? tokens[key] : 0);
  const payload = {
    provider: providerOf(tokens),
    model,
    inputTokens: tokensOf("inputTokens"),
    outputTokens: tokensOf("outputTokens"),
    nodeId: view.own.nodeId,
  };
  return of(view, { type: "provider.usage", payload });
}

function refusal(view: NodeView, { model, usage: tokens }: Called): WorkflowDraft {
  const payload = { nodeId: view.own.nodeId, provider: providerOf(tokens), model };
  return of(view, { type: "envelope.refusal", payload } as const);
}

function providerOf({ provider }: Values): string {
  return typeof provider === "string" && provider !== "" ? provider : "openai-compatible";
}
