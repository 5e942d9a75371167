/**
 * Owns: parts of texts that others write. Each is found in time that grows with the length of the text and no faster, which a
 * pattern that tries again at each place does not hold.
 */

const FENCE = "```";
const FENCE_TAGS: ReadonlySet<string> = new Set(["", "json"]);

/**
 * Returns the content of a Markdown fence of JSON; a text that is no such fence, or has words around it, is returned
 * as it was.
 */
export function stripJsonFence(text: string): string {
  const trimmed = text.trim();
  const lineEnd = trimmed.indexOf("\n");
  if (lineEnd < 0 || !trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE)) return text;
  const tag = trimmed.slice(FENCE.length, lineEnd).trim();
  return FENCE_TAGS.has(tag) ? trimmed.slice(lineEnd + 1, -FENCE.length).trim() : text;
}

/**
 * Returns the address, as text, of a path below a peer's root URL; `undefined` where the root is no URL. A query, a
 * fragment and slashes at the end are no part of the root; its path counts as it is encoded.
 */
export function resolvePeerAddress(peerUrl: string, path: string): string | undefined {
  const root = URL.parse(peerUrl);
  return root ? `${root.origin}${dropTrailingSlashes(root.pathname)}${path}` : undefined;
}

/** Returns the text without the slashes at its end. */
export function dropTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
