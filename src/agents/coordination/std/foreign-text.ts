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

/** Servers differ in how they read these in a path: `%6d`, `%2f`, `;x=1`, and empty segments. */
const READ_DIFFERENTLY = /[%;]|\/\//;

/**
 * True where a server may take both addresses for one. Case, queries and empty labels of the host (`a..example.`) do
 * not count; a path with encoded characters, parameters or empty segments may be any path of its origin. Two addresses
 * that cannot be read are none.
 */
export function canBeSameAddress(address: string, other: string): boolean {
  const [one, two] = [readAddress(address), readAddress(other)];
  if (!one || !two || one.origin !== two.origin) return false;
  return one.path === two.path || READ_DIFFERENTLY.test(one.path) || READ_DIFFERENTLY.test(two.path);
}

function readAddress(address: string): { readonly origin: string; readonly path: string } | undefined {
  const url = URL.parse(address);
  if (!url) return undefined;
  const host = url.hostname.split(".").filter((label) => label !== "");
  return {
    origin: `${url.protocol}//${host.join(".")}:${url.port}`,
    path: dropTrailingSlashes(url.pathname).toLowerCase(),
  };
}

/** Returns the text without the slashes at its end. */
export function dropTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
