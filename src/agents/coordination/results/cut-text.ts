/** Owns: cutting texts into pieces without cutting a character: a pair of surrogates stays together. */

/**
 * Returns the first `chars` characters of a text, or one fewer where the last one would be half of a surrogate pair.
 */
export function cutHead(text: string, chars: number): string {
  return text.slice(0, isWithinSurrogatePair(text, chars) ? chars - 1 : chars);
}

/**
 * Returns the last `chars` characters of a text, or one fewer where the first one would be half of a surrogate pair.
 */
export function cutTail(text: string, chars: number): string {
  const start = Math.max(0, text.length - chars);
  return text.slice(isWithinSurrogatePair(text, start) ? start + 1 : start);
}

/** True when a cut before the character at `index` would leave half of a pair on both sides. */
function isWithinSurrogatePair(text: string, index: number): boolean {
  if (index <= 0 || index >= text.length) return false;
  return isHighSurrogate(text.charCodeAt(index - 1)) && isLowSurrogate(text.charCodeAt(index));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** A part of a text, and where the next part begins. */
export interface TextPage {
  readonly from: number;
  readonly text: string;
  /** Where the next page begins; absent on the last one. */
  readonly next?: number;
}

/**
 * Returns one page of a text, from a character on, and where the next page begins unless this is the last. Pages read
 * one after the other are the whole text. A page is shorter where JSON would make it more than twice as long as was
 * asked for.
 */
export function cutTextPage(text: string, from: number, charsMax: number): TextPage {
  const bounded = Math.min(Math.max(0, from), text.length);
  const start = isWithinSurrogatePair(text, bounded) ? bounded - 1 : bounded;
  let page = cutHead(text.slice(start), Math.max(2, charsMax));
  while (page.length > 2 && JSON.stringify(page).length > 2 * charsMax)
    page = cutHead(page, Math.max(2, page.length >> 1));
  const next = start + page.length;
  return { from: start, text: page, ...(next < text.length && { next }) };
}

/** A place in a text where the searched words are. */
export interface TextMatch {
  readonly at: number;
  /** The text around it. */
  readonly around: string;
}

/**
 * Returns the places where `wanted` occurs in a text from a character on, each with the text around it, at most
 * `placesMax` of them.
 */
export function findOccurrences(
  text: string,
  { wanted, from, placesMax }: { readonly wanted: string; readonly from: number; readonly placesMax: number },
): TextMatch[] {
  const places: TextMatch[] = [];
  for (let at = text.indexOf(wanted, from); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
    const before = cutTail(text.slice(0, at), AROUND_CHARS);
    places.push({
      at,
      around: cutHead(text.slice(at - before.length), before.length + wanted.length + AROUND_CHARS),
    });
    if (places.length === placesMax) break;
  }
  return places;
}

const AROUND_CHARS = 80;
