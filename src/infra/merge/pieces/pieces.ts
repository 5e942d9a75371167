/**
 * Owns: a text cut into pieces that add up to it, by what its format knows: members of maps, sections, imports. Does not own:
 * how a format is cut (`formats/`), or how pieces are merged.
 */

/** A piece that is not cut further. */
export interface Leaf {
  readonly kind: "leaf";
  readonly text: string;
  /** Equal for two leaves that say the same in another layout. The text itself where absent. */
  readonly sense?: string;
  /** Two changes of it may be merged by line. */
  readonly byLine?: true;
}

/** Entries between an opening and a closing text. */
export interface Block {
  readonly kind: "block";
  readonly open: string;
  readonly entries: readonly BlockEntry[];
  readonly close: string;
  /** Present where entries are separated by commas; true where the last entry has one, too. */
  readonly endsWithComma?: boolean;
  /** The order says nothing, so that entries of two sides may be sorted among each other. */
  readonly isUnordered?: true;
}

/** One entry of a block. No two entries of a block have the same key. */
export interface BlockEntry {
  readonly key: string;
  /** Layout and comments before it. */
  readonly lead: string;
  readonly head: string;
  readonly body: Leaf | Block;
  /** Comes after it, and after its comma. */
  readonly trail: string;
}

/** Returns the text of a parsed block: its entries between `open` and `close`, with commas where the block has them. */
export function formatBlock(block: Block): string {
  const last = block.entries.length - 1;
  const texts = block.entries.map((entry, at) => {
    const hasComma = block.endsWithComma !== undefined && (at < last || block.endsWithComma);
    return `${entry.lead}${entry.head}${formatEntryBody(entry.body)}${hasComma ? "," : ""}${entry.trail}`;
  });
  return `${block.open}${texts.join("")}${block.close}`;
}

/** Returns the text of an entry's body: a leaf's, or that of the block in it. */
export function formatEntryBody(body: Leaf | Block): string {
  return body.kind === "leaf" ? body.text : formatBlock(body);
}

/**
 * True when two parsed blocks have the same entries in the same order, and the same texts around them, whatever their
 * white space.
 */
export function isSameBlock(a: Block, b: Block): boolean {
  return (
    a.open.trim() === b.open.trim() &&
    a.close.trim() === b.close.trim() &&
    a.entries.length === b.entries.length &&
    a.entries.every((entry, at) => {
      const other = b.entries[at];
      return other !== undefined && entry.key === other.key && isSameEntry(entry, other);
    })
  );
}

/**
 * Returns whether two entries have the same body and the same texts around it, whatever their white space; their keys
 * are not compared.
 */
export function isSameEntry(a: BlockEntry, b: BlockEntry): boolean {
  return (
    a.lead.trim() === b.lead.trim() &&
    a.head.trim() === b.head.trim() &&
    a.trail.trim() === b.trail.trim() &&
    isSameBody(a.body, b.body)
  );
}

/** Returns whether the bodies of two entries say the same: leaves by their sense, blocks entry by entry. */
export function isSameBody(a: Leaf | Block, b: Leaf | Block): boolean {
  if (a.kind === "leaf") return b.kind === "leaf" && (a.sense ?? a.text) === (b.sense ?? b.text);
  return b.kind === "block" && isSameBlock(a, b);
}

/**
 * Returns whether two blocks have the same keys, heads and leaves, whatever their white space and comments. It proves
 * a merge: the merged text, cut again, has the pieces that were merged.
 */
export function hasSamePieces(a: Block, b: Block): boolean {
  return (
    a.entries.length === b.entries.length &&
    a.entries.every((entry, at) => {
      const other = b.entries[at];
      if (other?.key !== entry.key || other.head.trim() !== entry.head.trim()) return false;
      const { body } = entry;
      if (body.kind === "leaf") return other.body.kind === "leaf" && isSameBody(body, other.body);
      return other.body.kind === "block" && hasSamePieces(body, other.body);
    })
  );
}
