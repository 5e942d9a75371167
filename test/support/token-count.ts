/** Owns: the tokens that a scripted model says it used. */

/** Tokens of one answer, by its own count. Cached tokens are a part of the prompt's. */
export type TokenCount = {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
};

/** Follows from the number of the request alone. Primes, so that no two sums of a few requests are equal. */
export function countTokens(number: number): TokenCount {
  return {
    promptTokens: 1_009 + 131 * (number % 17),
    cachedTokens: 64 * (number % 3),
    completionTokens: 53 + 29 * (number % 11),
  };
}

/** Returns them as OpenAI tells them. */
export function formatUsage({ promptTokens, cachedTokens, completionTokens }: TokenCount): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}
