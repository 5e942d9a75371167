/** Owns: which token goes where: to the origin that it was given for, and to no other. */
import { OutboundError } from "./outbound-error.ts";
import type { SafeFetch } from "./safe-fetch.ts";

/** Bearer tokens by origin, such as `https://peer.example`. */
export type TokensByOrigin = Readonly<Record<string, string>>;

export type ReadVariable = (name: string) => string | undefined;

const VARIABLE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/**
 * Returns the value of the variable that a text names as `${NAME}`, `undefined` where that is not set; any other text
 * as it is.
 */
export function resolveVariable(text: string, readVariable: ReadVariable): string | undefined {
  const [, name] = VARIABLE.exec(text) ?? [];
  return name === undefined ? text : readVariable(name);
}

/** A variable within a text. The host leaves one that is not set as it is written. */
const UNRESOLVED = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/;

/**
 * Returns the secret that a setting stands for: its text, or the value of the variable that it names. `undefined`
 * where that is not set or any `${NAME}` is left in the text, which everybody may know.
 */
export function resolveSecret(text: string, readVariable: ReadVariable): string | undefined {
  const secret = resolveVariable(text, readVariable);
  return secret === undefined || UNRESOLVED.test(secret) ? undefined : secret;
}

/** The tokens of the origins that may be called with one, and why others may not be called: none is called without its token. */
export interface ResolvedTokens {
  readonly tokens: TokensByOrigin;
  /** By origin: the end of a sentence about its token. */
  readonly problems: Readonly<Record<string, string>>;
}

const SETTINGS = "(openwop.peerTokens, --peer-token)";
const UNUSABLE = `names a variable that is not set, or is not a word of visible ASCII characters ${SETTINGS}.`;
const TWICE = `is given twice ${SETTINGS}.`;
const HEADER_WORD = /^[\x21-\x7e]+$/;

/**
 * Returns the tokens that operators wrote for other sides by the origin of their address, and the problem of each
 * origin whose token cannot be used.
 */
export function resolveTokens(written: TokensByOrigin, readVariable: ReadVariable): ResolvedTokens {
  const tokens = new Map<string, string>();
  const problems = new Map<string, string>();
  for (const [address, text] of Object.entries(written)) {
    const { origin } = new URL(address);
    const token = resolveSecret(text, readVariable) ?? "";
    if (!HEADER_WORD.test(token)) problems.set(origin, UNUSABLE);
    else if (tokens.has(origin)) problems.set(origin, TWICE);
    tokens.set(origin, token);
  }
  for (const origin of problems.keys()) tokens.delete(origin);
  return { tokens: Object.fromEntries(tokens), problems: Object.fromEntries(problems) };
}

/**
 * Wraps a fetch so that it adds the token of the origin that is really called, if there is one. The returned function
 * throws an OutboundError `not_configured` for an origin whose token cannot be used.
 */
export function withTokens(
  fetch: SafeFetch,
  tokens: TokensByOrigin,
  problems: ResolvedTokens["problems"] = {},
): SafeFetch {
  return async (input, init) => {
    const origin = URL.parse(input instanceof Request ? input.url : String(input))?.origin;
    const problem = findByOrigin(origin, problems);
    if (problem !== undefined)
      throw new OutboundError("not_configured", `The token for the other side ${problem}`, {
        isUndelivered: true,
      });
    const token = findByOrigin(origin, tokens);
    if (token === undefined) return fetch(input, init);
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set("authorization", `Bearer ${token}`);
    return fetch(input, { ...init, headers });
  };
}

function findByOrigin(
  origin: string | undefined,
  texts: Readonly<Record<string, string>>,
): string | undefined {
  return origin !== undefined && Object.hasOwn(texts, origin) ? texts[origin] : undefined;
}
