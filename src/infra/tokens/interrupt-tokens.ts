/**
 * Owns: the signature of interrupt tokens: `base64url(payload).base64url(hmac)`. A token grants one answer to one interrupt;
 * whether it is still open is the log's word.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { TokenPayload, TokenSigner } from "../../agents/coordination/ports/token-signer.ts";

const TOKEN_CHARS_MAX = 4_096;

const payloadSchema = z.object({
  runId: z.string().min(1),
  nodeId: z.string().min(1),
  interruptId: z.string().min(1),
  expiresAt: z.number(),
  intent: z.enum(["resolve", "inspect"]),
});

/**
 * Creates what signs the tokens of interrupts and reads them: `read` returns the payload, `undefined` for a token that
 * this key did not sign. `key`: 32 bytes that nobody else has.
 */
export function createTokenSigner(key: Uint8Array): TokenSigner {
  const signatureOf = (body: string): Buffer => createHmac("sha256", key).update(body).digest();
  return {
    sign: (payload) => {
      const body = Buffer.from(JSON.stringify(payload)).toString("base64url");
      return `${body}.${signatureOf(body).toString("base64url")}`;
    },
    read: (token) => {
      const [body = "", signature = "", ...more] = token.length <= TOKEN_CHARS_MAX ? token.split(".") : [];
      if (body === "" || more.length > 0) return undefined;
      const signatureGiven = Buffer.from(signature, "base64url");
      const expected = signatureOf(body);
      const isSigned = signatureGiven.length === expected.length && timingSafeEqual(signatureGiven, expected);
      return isSigned ? parsePayload(body) : undefined;
    },
  };
}

function parsePayload(body: string): TokenPayload | undefined {
  try {
    const parsed = payloadSchema.safeParse(JSON.parse(Buffer.from(body, "base64url").toString("utf8")));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
