/** Owns: reading off a message of the host what its model call used. The host counts and prices it; no model writes it. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { CallUsage } from "../../../agents/coordination/runtime/usage/usage-book.ts";

/** No call uses more: what is beyond is no count. */
const TOKENS_MAX = 1_000_000_000;
const COST_USD_MAX = 100_000;
const NANO_PER_USD = 1_000_000_000;

interface HostUsage {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly cacheRead?: unknown;
  readonly cacheWrite?: unknown;
  readonly cost?: unknown;
}

/**
 * Returns the model, tokens and cost of the model call behind a transcript message; `undefined` where the message is
 * no agent's, or tells of none.
 */
export function readUsage(message: unknown): CallUsage | undefined {
  if (!isRecord(message) || message["role"] !== "assistant") return undefined;
  const usage = message["usage"];
  if (!isRecord(usage)) return undefined;
  const { input, output, cacheRead, cacheWrite, cost }: HostUsage = usage;
  const costUsd = isRecord(cost) ? readAmount(cost["total"], COST_USD_MAX) : 0;
  const counted: CallUsage = {
    model: formatModelName(message["provider"], message["model"]),
    inputTokens: Math.trunc(readAmount(input, TOKENS_MAX)),
    outputTokens: Math.trunc(readAmount(output, TOKENS_MAX)),
    cacheReadTokens: Math.trunc(readAmount(cacheRead, TOKENS_MAX)),
    cacheWriteTokens: Math.trunc(readAmount(cacheWrite, TOKENS_MAX)),
    costNanoUsd: Math.round(costUsd * NANO_PER_USD),
  };
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costNanoUsd } = counted;
  const isNothing = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens + costNanoUsd === 0;
  return isNothing ? undefined : counted;
}

/** Returns a positive number up to `max`; 0 for anything else. */
function readAmount(value: unknown, max: number): number {
  return typeof value === "number" && value > 0 && value <= max ? value : 0;
}

function formatModelName(provider: unknown, model: unknown): string {
  const parts = [provider, model].filter((part) => typeof part === "string" && part !== "");
  return parts.join("/").slice(0, BOUNDS.modelNameCharsMax) || "unknown";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
