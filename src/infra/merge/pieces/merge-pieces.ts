/**
 * Owns: what two sides made of a text that is cut into pieces. Does not own: texts, formats, or whether the result can be
 * read again.
 *
 * 1. Every piece of the result is one side's, whole; only leaves that allow it are merged by line.
 * 2. `undefined` is "not sure": both made something else of the same piece, one removed what the other changed, both moved
 *    entries, or both may have renamed one.
 * 3. The sides come in an order that does not depend on who asks, so that exchanging them changes nothing.
 */
import { mergeKeyOrder } from "./merge-order.ts";
import {
  formatEntryBody,
  isSameBody,
  isSameEntry,
  type Block,
  type BlockEntry,
  type Leaf,
} from "./pieces.ts";

/** The same thing in the base and on both sides. */
export interface ThreeSides<T> {
  readonly base: T;
  readonly left: T;
  readonly right: T;
}

/** Merges a leaf by line; `undefined` where both changed the same lines. */
export type MergeLeaf = (texts: ThreeSides<string>) => string | undefined;

type EntrySides = ThreeSides<BlockEntry | undefined>;

/**
 * Returns the merge of a block of text pieces from its base and both sides, entry by entry; `undefined` where the
 * result would not be sure.
 */
export function mergeBlocks(blocks: ThreeSides<Block>, mergeLeaf: MergeLeaf): Block | undefined {
  const { base, left, right } = blocks;
  const open = mergeMargin({ base: base.open, left: left.open, right: right.open });
  const close = mergeMargin({ base: base.close, left: left.close, right: right.close });
  if (open === undefined || close === undefined || isEmptied(blocks)) return undefined;
  const entries = mergeEntries(blocks, mergeLeaf);
  const ordered = entries && orderEntries(blocks, entries);
  if (!ordered) return undefined;
  const changed = left.endsWithComma === base.endsWithComma ? right : left;
  return { ...changed, open, entries: alignFirst(blocks, ordered), close };
}

/** True when one side took everything out of a block, and the other still has some of it. */
function isEmptied({ base, left, right }: ThreeSides<Block>): boolean {
  if (base.entries.length === 0 || left.entries.length === right.entries.length) return false;
  return left.entries.length === 0 || right.entries.length === 0;
}

/**
 * Returns the merge of the text around an entry or a block: that of the side that changed it; `undefined` where both
 * sides changed more than its white space.
 */
export function mergeMargin({ base, left, right }: ThreeSides<string>): string | undefined {
  if (left === right || right === base) return left;
  if (left === base) return right;
  if (left.trim() === right.trim() || right.trim() === base.trim()) return left;
  return left.trim() === base.trim() ? right : undefined;
}

/** Merges the entries of two sides by their keys; `undefined` where that is not sure. */
function mergeEntries(blocks: ThreeSides<Block>, mergeLeaf: MergeLeaf): Map<string, BlockEntry> | undefined {
  const base = indexByKey(blocks.base);
  const left = indexByKey(blocks.left);
  const right = indexByKey(blocks.right);
  if (mayBothHaveRenamed({ base, left, right })) return undefined;
  const merged = new Map<string, BlockEntry>();
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    const entry = mergeEntry({ base: base.get(key), left: left.get(key), right: right.get(key) }, mergeLeaf);
    if (entry === "unsure") return undefined;
    if (entry !== "removed") merged.set(key, entry);
  }
  return merged;
}

/** True when both may have given another name to one entry: it would be there twice. */
function mayBothHaveRenamed({ base, left, right }: ThreeSides<ReadonlyMap<string, BlockEntry>>): boolean {
  const hasAdded = (side: typeof left, other: typeof left): boolean =>
    [...side.keys()].some((key) => !base.has(key) && !other.has(key));
  const isGone = [...base.keys()].some((key) => !left.has(key) && !right.has(key));
  return isGone && hasAdded(left, right) && hasAdded(right, left);
}

function indexByKey({ entries }: Block): Map<string, BlockEntry> {
  return new Map(entries.map((entry) => [entry.key, entry]));
}

/** Merges one entry, which a side may not have. An entry that one side removed and the other changed is unsure. */
function mergeEntry(
  { base, left, right }: EntrySides,
  mergeLeaf: MergeLeaf,
): BlockEntry | "removed" | "unsure" {
  if (left && right) return mergeEntryOfBoth({ base, left, right }, mergeLeaf) ?? "unsure";
  const kept = left ?? right;
  if (!kept) return "removed";
  if (!base) return kept;
  return isSameEntry(base, kept) ? "removed" : "unsure";
}

interface BothEntries {
  readonly base: BlockEntry | undefined;
  readonly left: BlockEntry;
  readonly right: BlockEntry;
}

/** Merges an entry that both sides have; `undefined` where that is not sure. */
function mergeEntryOfBoth({ base, left, right }: BothEntries, mergeLeaf: MergeLeaf): BlockEntry | undefined {
  if (!base) return isSameEntry(left, right) ? left : undefined;
  const changed = findEntryToTake({ base, left, right });
  if (changed)
    return { ...changed, lead: mergeMargin(mapSides({ base, left, right }, pickLead)) ?? changed.lead };
  const body = mergeBodies(mapSides({ base, left, right }, pickBody), mergeLeaf);
  const lead = mergeMargin(mapSides({ base, left, right }, pickLead));
  const head = mergeMargin(mapSides({ base, left, right }, ({ head: text }) => text));
  const trail = mergeMargin(mapSides({ base, left, right }, ({ trail: text }) => text));
  if (!body || lead === undefined || head === undefined || trail === undefined) return undefined;
  return { key: base.key, lead, head, body, trail };
}

/**
 * Returns the entry of one side; `undefined` where both changed what it says, and not in the same way. Where both say
 * the same, a side that changed the layout goes first.
 */
function findEntryToTake({ base, left, right }: ThreeSides<BlockEntry>): BlockEntry | undefined {
  if (isSameEntry(left, right)) return hasSameText(base, left) ? right : left;
  if (isSameEntry(base, left)) return right;
  return isSameEntry(base, right) ? left : undefined;
}

/** True when two entries are the same text, layout included, but for what is before them. */
function hasSameText(base: BlockEntry, side: BlockEntry): boolean {
  return (
    base.head === side.head &&
    base.trail === side.trail &&
    formatEntryBody(base.body) === formatEntryBody(side.body)
  );
}

/**
 * Merges the bodies of an entry: blocks by entry, leaves by line; `undefined` where they are not of one kind or the
 * merge is not sure.
 */
function mergeBodies(
  { base, left, right }: ThreeSides<Leaf | Block>,
  mergeLeaf: MergeLeaf,
): Leaf | Block | undefined {
  if (base.kind === "block" && left.kind === "block" && right.kind === "block")
    return mergeBlocks({ base, left, right }, mergeLeaf);
  if (base.kind === "block" || left.kind === "block" || right.kind === "block") return undefined;
  return mergeLeaves({ base, left, right }, mergeLeaf);
}

/**
 * Merges leaves by line; `undefined` where they do not allow that, or both changed the same lines. Leaves that do not
 * allow it are not merged even by value: a comment beside a value counts as a part of it.
 */
function mergeLeaves({ base, left, right }: ThreeSides<Leaf>, mergeLeaf: MergeLeaf): Leaf | undefined {
  if (!base.byLine) return undefined;
  if (isSameBody(left, right) || isSameBody(base, right)) return left;
  if (isSameBody(base, left)) return right;
  const text = mergeLeaf({ base: base.text, left: left.text, right: right.text });
  return text === undefined ? undefined : { kind: "leaf", text, byLine: true };
}

/** Puts merged entries in the order of the sides; sorted where the order says nothing and both sides are sorted. */
function orderEntries(
  blocks: ThreeSides<Block>,
  entries: ReadonlyMap<string, BlockEntry>,
): BlockEntry[] | undefined {
  const keys = mergeKeyOrder(mapSides(blocks, listKeys), (key) => entries.has(key));
  if (!keys) return undefined;
  const isSorted =
    blocks.left.isUnordered && areKeysSorted(listKeys(blocks.left)) && areKeysSorted(listKeys(blocks.right));
  const ordered = isSorted ? keys.toSorted(compareTexts) : keys;
  return ordered.flatMap((key) => entries.get(key) ?? []);
}

function listKeys({ entries }: Block): readonly string[] {
  return entries.map(({ key }) => key);
}

function areKeysSorted(keys: readonly string[]): boolean {
  return keys.every((key, at) => at === 0 || (keys[at - 1] ?? "") < key);
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Exchanges the layout of entries of a list that become, or no longer are, its first: `{ a, b }` has other spaces there. */
function alignFirst({ left, right }: ThreeSides<Block>, entries: readonly BlockEntry[]): BlockEntry[] {
  if (left.endsWithComma === undefined) return [...entries];
  const firsts = new Set([left.entries[0], right.entries[0]].flatMap((entry) => (entry ? [entry.key] : [])));
  const first = [...left.entries, ...right.entries].find(({ key }) => firsts.has(key));
  const next = [...left.entries, ...right.entries].find(({ key }) => !firsts.has(key));
  return entries.map((entry, at) => {
    const pattern = at === 0 ? first : next;
    const isElsewhere = firsts.has(entry.key) !== (at === 0);
    const isLayout = entry.lead.trim() === "" && pattern?.lead.trim() === "";
    return isElsewhere && isLayout ? { ...entry, lead: pattern.lead } : entry;
  });
}

function pickLead({ lead }: BlockEntry): string {
  return lead;
}

function pickBody({ body }: BlockEntry): Leaf | Block {
  return body;
}

/** Returns the results of a function for the base and for both sides of a merge. */
export function mapSides<T, U>(
  { base, left, right }: ThreeSides<T>,
  convert: (value: T) => U,
): ThreeSides<U> {
  return { base: convert(base), left: convert(left), right: convert(right) };
}
