/** Owns: finding a key that an object of a JSON text has twice, which JSON.parse passes over. */

interface DuplicateKey {
  readonly key: string;
  readonly offset: number;
}

/**
 * Returns the first key that an object of a JSON text has twice, and its offset; `undefined` where none does. Needs
 * valid JSON; one pass without recursion.
 */
export function findDuplicateKey(text: string): DuplicateKey | undefined {
  const objects: Set<string>[] = [];
  for (let offset = 0; offset < text.length; offset += 1) {
    const char = text[offset];
    if (char === "{") objects.push(new Set());
    if (char === "}") objects.pop();
    if (char !== '"') continue;
    const end = findStringEnd(text, offset);
    if (isKeyString(text, end)) {
      const key = JSON.parse(text.slice(offset, end)) as string;
      const keys = objects.at(-1);
      if (keys?.has(key)) return { key, offset };
      keys?.add(key);
    }
    offset = end - 1;
  }
  return undefined;
}

/** Returns the offset behind the closing quote of the string that begins at `start`. */
function findStringEnd(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}

/** True where a colon follows the string that ends at `end`. */
function isKeyString(text: string, end: number): boolean {
  let next = end;
  while (/\s/u.test(text[next] ?? "")) next += 1;
  return text[next] === ":";
}
