/**
 * Owns: who a request comes from.
 *
 * T1 Every known token is compared, in constant time, whichever matches.
 * T2 A token is kept as its hash only; what names its owner in logs and events is not the token.
 */
import { hash, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse, type HttpRefusal } from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

export interface BearerToken {
  readonly token: string;
  readonly tenant: string;
  /** Names the holder; without it, a fingerprint does. */
  readonly principal?: string;
  /** Scopes of tools that its holder's agents may use (RFC 0064). */
  readonly scopes?: readonly string[];
}

interface KnownToken {
  readonly digest: Buffer;
  readonly caller: Caller;
}

/** Finds the caller by the authorization of a request, or refuses it. */
export type TokenAuthenticator = (authorization: string | undefined) => Caller | HttpRefusal;

/** No other tenant is named so: those who hold an interrupt token, and nothing else. */
export const TOKEN_HOLDER: Caller = { tenant: "@interrupt", principal: "interrupt-token" };

/**
 * Creates the function that returns the caller whose bearer token an `Authorization` header has, or a refusal that
 * says why it names none. @throws RangeError for tokens or tenants that cannot be told apart.
 */
export function createTokenAuthenticator(tokens: readonly BearerToken[]): TokenAuthenticator {
  const knownTokens = tokens.map(createKnownToken);
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length)
    throw new RangeError("two bearer tokens are the same: give each tenant its own");
  return (authorization) => {
    if (authorization === undefined)
      return refuseUnauthenticated("This needs an `Authorization: Bearer` header.");
    const presented = /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1];
    if (presented === undefined || presented.length > HTTP_BOUNDS.tokenCharsMax)
      return refuseUnauthenticated("The `Authorization` header is not of the form `Bearer <token>`.", true);
    const found = findCaller(knownTokens, hash("sha256", presented, "buffer"));
    return found ?? refuseUnauthenticated("The bearer token is not known here.", true);
  };
}

/**
 * Returns who holds the token with this digest, `undefined` where nobody does. Every known token is compared, so that
 * the time tells nothing.
 */
function findCaller(knownTokens: readonly KnownToken[], digest: Buffer): Caller | undefined {
  let found: Caller | undefined;
  for (const each of knownTokens) if (timingSafeEqual(each.digest, digest)) found = each.caller;
  return found;
}

function createKnownToken({ token, tenant, principal, scopes }: BearerToken): KnownToken {
  if (!/^[\x21-\x7e]+$/.test(token) || token.length > HTTP_BOUNDS.tokenCharsMax)
    throw new RangeError("a bearer token is a word of visible ASCII characters");
  if (!/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(tenant))
    throw new RangeError(`${JSON.stringify(tenant)} is not the name of a tenant`);
  const digest = hash("sha256", token, "buffer");
  const caller = { tenant, principal: principal ?? createTokenFingerprint(token), ...(scopes && { scopes }) };
  return { digest, caller };
}

/**
 * Returns a name for a token's holder. It has a hash of its own, and is no part of the digest that tokens are compared
 * by.
 */
function createTokenFingerprint(token: string): string {
  return `token-${hash("sha256", `openwop principal\n${token}`).slice(0, 12)}`;
}

function refuseUnauthenticated(message: string, presented = false): HttpRefusal {
  const challenge = `Bearer realm="openwop"${presented ? ', error="invalid_token"' : ""}`;
  return { ...refuse("unauthenticated", message), headers: { "www-authenticate": challenge } };
}
