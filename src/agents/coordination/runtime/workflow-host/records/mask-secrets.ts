/** Owns: taking the host's secrets out of texts. Only secrets that appear as they are, letter by letter, are found (SR-1). */
import type { LogFields, Logger } from "../../../ports/logger.ts";

/** A shorter one would be found in texts that have nothing to do with it. */
export const SECRET_CHARS_MIN = 8;

export type Secrets = ReadonlyMap<string, string>;

/**
 * Returns a copy of a value with the host's secrets of `SECRET_CHARS_MIN` characters and more masked in every text,
 * names of members too; the value itself where none of them is in it.
 */
export function maskValue<T>(value: T, secrets: Secrets): T {
  if (!hasSecret(value, secrets)) return value;
  return JSON.parse(JSON.stringify(value), (_name, each: unknown) => {
    if (typeof each === "string") return maskText(each, secrets);
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(
      Object.entries(each).map(([name, member]) => [maskText(name, secrets), member]),
    );
  }) as T;
}

/**
 * Returns the text with each of the host's secrets of `SECRET_CHARS_MIN` characters and more replaced by
 * `[REDACTED:name]`, the longest first: one may be part of another.
 */
export function maskText(text: string, secrets: Secrets): string {
  let masked = text;
  for (const { name, secret } of listSecretsLongestFirst(secrets))
    if (masked.includes(secret)) masked = masked.replaceAll(secret, () => `[REDACTED:${name}]`);
  return masked;
}

function hasSecret(value: unknown, secrets: Secrets): boolean {
  const toFind = listSecretsLongestFirst(secrets);
  if (toFind.length === 0 || value === undefined) return false;
  const json = JSON.stringify(value);
  return toFind.some(({ inJson }) => json.includes(inJson));
}

interface KnownSecret {
  readonly name: string;
  readonly secret: string;
  /** As it is within a text of JSON. */
  readonly inJson: string;
}

/** Sorting them for every text would cost more than looking for them. */
const sorted = new WeakMap<Secrets, readonly KnownSecret[]>();

/** Lists the secrets that are long enough to be looked for, the longest first. */
function listSecretsLongestFirst(secrets: Secrets): readonly KnownSecret[] {
  const sortedBefore = sorted.get(secrets);
  if (sortedBefore) return sortedBefore;
  const list = [...secrets]
    .filter(([, secret]) => secret.length >= SECRET_CHARS_MIN)
    .map(([name, secret]) => ({ name, secret, inJson: JSON.stringify(secret).slice(1, -1) }))
    .toSorted((one, other) => other.secret.length - one.secret.length);
  sorted.set(secrets, list);
  return list;
}

/** Creates a logger that masks the host's secrets in each line before the given one writes it. */
export function createMaskedLogger(logger: Logger, secrets: Secrets): Logger {
  const createWriter =
    (level: keyof Logger) =>
    (fields: LogFields, message: string): void => {
      logger[level](maskValue(fields, secrets), maskText(message, secrets));
    };
  return {
    debug: createWriter("debug"),
    info: createWriter("info"),
    warn: createWriter("warn"),
    error: createWriter("error"),
  };
}
