/**
 * Owns: what stands where a text was kept back. It has a name of the text, from which the text cannot be guessed, because
 * the name is made with a key of the host.
 *
 * It has no character that JSON escapes, because it is found again inside of other texts.
 */
const SENTENCE =
  "coordination: this result is held back until it is ruled on; you will be told here. Do not guess it.";
const PLACEHOLDER = new RegExp(
  `\\[\\[${SENTENCE.replaceAll(".", "\\.")} Ref (?<name>[0-9a-f]{64})\\]\\]`,
  "u",
);
const ALL = new RegExp(PLACEHOLDER.source, "gu");

/** Returns the text that stands in the place of a text held back under this name. */
export function formatPlaceholder(name: string): string {
  return `[[${SENTENCE} Ref ${name}]]`;
}

/**
 * Returns the name in the first placeholder of a text, under which the text that it stands for is held back;
 * `undefined` where there is no placeholder.
 */
export function findHeldBackName(text: string): string | undefined {
  return PLACEHOLDER.exec(text)?.groups?.["name"];
}

/** Returns the text with what `put` returns in the place of every placeholder. */
export function replacePlaceholders(
  text: string,
  put: (name: string, placeholder: string) => string,
): string {
  return text.replace(ALL, (placeholder, name: string) => put(name, placeholder));
}

/** True when a text consists of placeholders alone. A text that quotes one is a text of its own. */
export function isOnlyPlaceholders(text: string): boolean {
  return findHeldBackName(text) !== undefined && replacePlaceholders(text, () => "").trim() === "";
}
