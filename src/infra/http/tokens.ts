/** Owns: which token goes where: to the origin that it was given for, and to no other. */
import type { SafeFetch } from "./safe-fetch.ts";

/** Bearer tokens by origin, such as `https://peer.example`; `${VARIABLE}` stands for a variable of the environment. */
export type Tokens = Readonly<Record<string, string>>;

export type ReadVariable = (name: string) => string | undefined;

const VARIABLE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

export function findToken(origin: string, tokens: Tokens, readVariable: ReadVariable): string | undefined {
  const tokenText = Object.hasOwn(tokens, origin) ? tokens[origin] : undefined;
  return tokenText === undefined ? undefined : resolveVariable(tokenText, readVariable);
}

/** The value of a variable that is named, or the text itself. */
export function resolveVariable(text: string, readVariable: ReadVariable): string | undefined {
  const [, name] = VARIABLE.exec(text) ?? [];
  return name === undefined ? text : readVariable(name);
}

/** A variable within a text. The host leaves one that is not set as it is written. */
const UNRESOLVED = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/;

/** Returns the secret that a text stands for; `undefined` where it names a variable that is not set: everybody may know its name. */
export function resolveSecret(text: string, readVariable: ReadVariable): string | undefined {
  const secret = resolveVariable(text, readVariable);
  return secret === undefined || UNRESOLVED.test(secret) ? undefined : secret;
}

/** Adds the token of the origin that is called, whatever origin the caller thinks it calls. */
export function withTokens(fetch: SafeFetch, tokens: Tokens, readVariable: ReadVariable): SafeFetch {
  return (input, init) => {
    const origin = URL.parse(input instanceof Request ? input.url : String(input))?.origin;
    const token = origin === undefined ? undefined : findToken(origin, tokens, readVariable);
    if (token === undefined) return fetch(input, init);
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set("authorization", `Bearer ${token}`);
    return fetch(input, { ...init, headers });
  };
}
