/**
 * Owns: telling that a provider refused a model call, from the message in which the host keeps how the call ended. The host
 * tells plugins neither the status nor the headers of the answer; both are in that message.
 */
import { z } from "zod";

/** A model call that its provider refused because of its rate limit or its load. */
export interface ProviderRefusal {
  /** `undefined` where the host does not say. */
  readonly provider: string | undefined;
  readonly retryAfterMs?: number;
}

/** The fields that the host adds to an answer that is an error. */
export const errorFields = {
  stopReason: z.string().optional(),
  provider: z.string().max(256).optional(),
  errorMessage: z.string().optional(),
  errorCode: z.string().optional(),
};

const failedAnswerSchema = z.object({ role: z.literal("assistant"), ...errorFields });

const STATUS = /^\s*(429|503|529)\b/u;
const REFUSALS: ReadonlySet<string> = new Set([
  ...["429", "rate_limit_exceeded", "rate_limit_error"],
  ...["503", "529", "overloaded_error"],
]);
/** Waiting does not help: somebody has to pay. */
const FINAL_CODE = "insufficient_quota";
const MESSAGE_CHARS_MAX = 2_000;
/** Written by the host from the header. A provider's own words may say the same. */
const RETRY_AFTER = /\bretry-after: (\d{1,12}(?:\.\d{1,3})?) seconds?\b/iu;

/**
 * Returns, from a transcript message that failed because the provider refused a model call for rate or load, the
 * provider and how long to wait; `undefined` for any other message.
 */
export function readProviderRefusal(message: unknown): ProviderRefusal | undefined {
  const answer = failedAnswerSchema.safeParse(message).data;
  if (answer?.stopReason !== "error") return undefined;
  const { errorCode = "", errorMessage = "", provider } = answer;
  const text = errorMessage.slice(0, MESSAGE_CHARS_MAX);
  if (!isRefusedForNow(errorCode, text)) return undefined;
  const seconds = RETRY_AFTER.exec(text)?.[1];
  return { provider, ...(seconds !== undefined && { retryAfterMs: Math.ceil(Number(seconds) * 1_000) }) };
}

/** True for a refusal because of rate or load; false for a used-up quota, where waiting does not help. */
function isRefusedForNow(errorCode: string, text: string): boolean {
  if (errorCode === FINAL_CODE) return false;
  return REFUSALS.has(errorCode) || REFUSALS.has(STATUS.exec(text)?.[1] ?? "");
}
