/**
 * Owns: signatures as https://www.standardwebhooks.com has them, and the token of a question. Does not own: how old a signed
 * message may be.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** The parts that are signed. Ids have no dot, so that a signed text can be read in one way only. */
export interface SignedParts {
  readonly id: string;
  /** In whole seconds since 1970, in decimal. */
  readonly timestamp: string;
  readonly body: Uint8Array;
}

const SECRET_PREFIX = "whsec_";
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns the signature header of a webhook's message: `v1,` and the HMAC-SHA256 over id, time and body in base64. */
export function signWebhookMessage(secret: string, { id, timestamp, body }: SignedParts): string {
  const hmac = createHmac("sha256", decodeSecret(secret)).update(`${id}.${timestamp}.`).update(body);
  return `v1,${hmac.digest("base64")}`;
}

/**
 * Returns the token that an answer must bring to prove that its sender got the question: an HMAC of the question's id
 * with the webhook's secret.
 */
export function createAnswerToken(secret: string, questionId: string): string {
  return createHmac("sha256", decodeSecret(secret)).update(`answer:${questionId}`).digest("base64url");
}

/** Returns whether two texts are the same, in a time that does not depend on where they differ. */
export function isSameSecret(textGiven: string, expected: string): boolean {
  const [left, right] = [Buffer.from(textGiven), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Returns the bytes of a secret: decoded from base64 where it has the prefix of Standard Webhooks and base64 behind
 * it, else those of the whole text.
 */
function decodeSecret(secret: string): Buffer {
  const encoded = secret.slice(SECRET_PREFIX.length);
  const isEncoded = secret.startsWith(SECRET_PREFIX) && BASE64.test(encoded);
  return isEncoded ? Buffer.from(encoded, "base64") : Buffer.from(secret);
}
