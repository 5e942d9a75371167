/** Owns: labels of children that would look like the block by which a child learns its place. */

const BREAKS = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
const TAG = /<(?=[\s/]*coordination)/giu;

/**
 * The host writes a label into the child's system prompt as it came, above our block: it stays one line and begins no block.
 * Nothing where the label is no text, or stays as it is.
 */
export function cleanLabel(label: unknown): { readonly label?: string } {
  if (typeof label !== "string") return {};
  const cleaned = label.replaceAll(BREAKS, " ").replaceAll(TAG, "(");
  return cleaned === label ? {} : { label: cleaned };
}
