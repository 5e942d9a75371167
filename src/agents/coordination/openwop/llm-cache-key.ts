/**
 * Owns: which requests to a model are the same: recipe v2 of the protocol (RFC 0150 section C, RFC 0212), advertised as
 * `spec-rfc-0041`. Whoever hashes the text has the key.
 *
 * K1 What changes no answer is not in it: streaming, metadata, who asks, timeouts, traces. K2 The order of members and of tools
 * does not show, that of messages does. K3 The key is no boundary: a cache is one tenant's.
 */
import { formatCanonicalJson, findCanonicalProblem } from "../std/canonical-json.ts";

export const LLM_CACHE_KEY_RECIPE = "openwop-semantic-request-v2";

/** A request as a model gets it. */
export interface SemanticRequest {
  readonly provider: string;
  readonly model: string;
  readonly messages: readonly unknown[];
  readonly tools?: readonly unknown[];
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly maxOutputTokens?: number;
  readonly seed?: number;
  readonly stop?: readonly unknown[];
  /** `null` is a value of its own, here and below. */
  readonly responseFormat?: object | null;
  readonly safetySettings?: object | null;
  /** Options that only one provider knows, by its name. */
  readonly providerOptions?: object | null;
}

export type CacheKeyText =
  { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

/**
 * Returns the canonical JSON of a model request, whose hexadecimal sha256 is its cache key; a problem where the
 * request has no canonical JSON.
 */
export function createLlmCacheKeyText({
  provider,
  model,
  messages,
  tools,
  stop,
  responseFormat,
  safetySettings,
  providerOptions,
  ...numbers
}: SemanticRequest): CacheKeyText {
  const semantic = {
    recipe: LLM_CACHE_KEY_RECIPE,
    provider,
    model,
    providerOptions,
    request: {
      messages,
      stop,
      responseFormat,
      safetySettings,
      ...pickNumbers(numbers),
      ...(tools && tools.length > 0 && { tools: tools.toSorted(compareToolNames) }),
    },
  };
  const problem = findCanonicalProblem(semantic);
  return problem === undefined ? { ok: true, text: formatCanonicalJson(semantic) } : { ok: false, problem };
}

/** Picks these numbers only, because an object may hold more than its type says. */
function pickNumbers({ temperature, topP, topK, maxOutputTokens, seed }: Partial<SemanticRequest>) {
  return { temperature, topP, topK, maxOutputTokens, seed };
}

/** Compares two tools by the UTF-16 code units of their names (RFC 0212). */
function compareToolNames(one: unknown, other: unknown): number {
  const [a, b] = [readToolName(one), readToolName(other)];
  return a === b ? 0 : a < b ? -1 : 1;
}

function readToolName(tool: unknown): string {
  const name: unknown = typeof tool === "object" && tool !== null && "name" in tool ? tool.name : undefined;
  return typeof name === "string" ? name : "";
}

const NUMBERS = ["temperature", "topP", "topK", "maxOutputTokens", "seed"] as const;
const LISTS = ["tools", "stop"] as const;
const OBJECTS = ["responseFormat", "safetySettings", "providerOptions"] as const;

/**
 * Returns the fields of a model request that its answer depends on, from a JSON object. A field of another type is
 * left out; `undefined` when the object is no request.
 */
export function readSemanticRequest(value: Readonly<Record<string, unknown>>): SemanticRequest | undefined {
  const { provider, model, messages } = value;
  if (typeof provider !== "string" || typeof model !== "string" || !Array.isArray(messages)) return undefined;
  if (provider === "" || model === "") return undefined;
  const pickFields = (names: readonly string[], isRight: (field: unknown) => boolean) =>
    names.flatMap((name) => (isRight(value[name]) ? [[name, value[name]] as const] : []));
  return {
    provider,
    model,
    messages: messages as unknown[],
    ...Object.fromEntries([
      ...pickFields(NUMBERS, (field) => typeof field === "number"),
      ...pickFields(LISTS, Array.isArray),
      ...pickFields(OBJECTS, (field) => typeof field === "object"),
    ]),
  };
}
