/** Owns: what a node asks a model, as the recipe of keys sees it (openwop/llm-cache-key.ts). */
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import { createLlmCacheKeyText, type SemanticRequest } from "../../../openwop/llm-cache-key.ts";
import type { ModelAsk } from "../../../workflow/node-contract/node-type.ts";
import type { ModelAsked } from "../../../workflow/node-contract/agent-effects.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

/** Where a node says nothing. */
export const MAX_TOKENS = 4_000;

export type AskedModel = Pick<ModelAsked, "provider" | "model">;

/**
 * Returns the name of a model or provider cut to the length that the log takes; `unknown` for an empty one. Such names
 * come from workflows and from the providers.
 */
export function shortenName(name: string): string {
  return name.slice(0, WORKFLOW_BOUNDS.nameCharsMax) || "unknown";
}

/** Returns the message that the model provider which a run names is not the one that this host asks. */
export function describeOtherProvider(named: string, target: string): string {
  return `the run names the model provider ${JSON.stringify(named)}, and this host asks ${JSON.stringify(target)}`;
}

/** Returns the name of the model that a request names, else `otherwise`, cut to the length that the log takes. */
export function chooseModelName({ model }: ModelAsk, otherwise: string): string {
  return shortenName(model ?? otherwise);
}

/** Returns the asked model with the digest of the request; `undefined` for a request that has no canonical text. */
export function hashModelRequest(
  { sha256 }: Pick<WorkflowHostDependencies, "sha256">,
  request: ModelAsk,
  model: AskedModel,
): ModelAsked | undefined {
  const made = createLlmCacheKeyText(createSemanticRequest(request, model));
  return made.ok ? { ...model, digest: sha256(made.text) } : undefined;
}

/** Creates the parts of a request that its cache key is made of. */
function createSemanticRequest(request: ModelAsk, { provider, model }: AskedModel): SemanticRequest {
  const { system, messages, schema, temperature, maxTokens = MAX_TOKENS } = request;
  return {
    provider,
    model,
    maxOutputTokens: maxTokens,
    messages: [...(system === undefined ? [] : [{ role: "system", content: system }]), ...messages],
    ...(temperature !== undefined && { temperature }),
    ...(schema && { responseFormat: { type: "json_schema", schema } }),
  };
}
