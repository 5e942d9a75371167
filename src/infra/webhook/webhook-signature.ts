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

/** Returns the signature as the header has it: `v1,` and the HMAC-SHA256 in base64. */
export function signatureOf(secret: string, { id, timestamp, body }: SignedParts): string {
  const hmac = createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body);
  return `v1,${hmac.digest("base64")}`;
}

/** Returns the token that an answer must bring to prove that its sender got the question. */
export function answerTokenOf(secret: string, questionId: string): string {
  return createHmac("sha256", keyOf(secret)).update(`answer:${questionId}`).digest("base64url");
}

/** Takes as long for any two texts of the same length. */
export function isSameText(textGiven: string, expected: string): boolean {
  const [left, right] = [Buffer.from(textGiven), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A secret as Standard Webhooks writes it is base64 behind a prefix; any other is taken as it is. */
function keyOf(secret: string): Buffer {
  const encoded = secret.slice(SECRET_PREFIX.length);
  const isEncoded = secret.startsWith(SECRET_PREFIX) && BASE64.test(encoded);
  return isEncoded ? Buffer.from(encoded, "base64") : Buffer.from(secret);
}
