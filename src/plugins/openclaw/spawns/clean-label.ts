/** Owns: labels of children that would look like the block by which a child learns its place. */

const BREAKS = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
const TAG = /<(?=[\s/]*coordination)/giu;

/**
 * Returns a field with the spawn's label on one line and `(` for the `<` of a coordination tag, so that it begins no
 * block in the child's system prompt; an empty object where the label is no text, or clean already.
 */
export function cleanLabel(label: unknown): { readonly label?: string } {
  if (typeof label !== "string") return {};
  const cleaned = label.replaceAll(BREAKS, " ").replaceAll(TAG, "(");
  return cleaned === label ? {} : { label: cleaned };
}
