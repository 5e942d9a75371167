/** Owns: reading nodes of a syntax tree: children, and lists of names with commas. Does not own: languages. */
import type { SyntaxNode } from "@lezer/common";
import { assertCanCut } from "./cannot-cut.ts";
import type { ListItem } from "./cut-list.ts";

const COMMENTS: ReadonlySet<string> = new Set(["LineComment", "BlockComment", "Comment"]);

/** Returns whether a node of a program's syntax tree is a comment. */
export function isComment({ name }: SyntaxNode): boolean {
  return COMMENTS.has(name);
}

/** Returns the direct children of a node of a syntax tree, in order. */
export function listChildNodes(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

/**
 * Returns the items of a list of a program, from the nodes between its brackets, split at the commas. `nameOf`: finds
 * the node of the name that an item gives to the program. @throws CannotCut for a comment within an item, and an item
 * that is empty or has no name
 */
export function readListItems(
  text: string,
  nodes: readonly SyntaxNode[],
  nameOf: (nodes: readonly SyntaxNode[]) => SyntaxNode | undefined,
): ListItem[] {
  const items: ListItem[] = [];
  let item: SyntaxNode[] = [];
  const finishItem = (commaAt?: number): void => {
    const [first] = item;
    const last = item.at(-1);
    const name = nameOf(item);
    assertCanCut(first !== undefined && last !== undefined && name !== undefined && !item.some(isComment));
    const [start, end] = [first.from, last.to];
    const words = text.slice(start, end);
    const body = { kind: "leaf", text: words, sense: words.split(/\s+/u).join(" ") } as const;
    const listItem = { key: text.slice(name.from, name.to), start, end, head: "", body };
    items.push(commaAt === undefined ? listItem : { ...listItem, commaAt });
    item = [];
  };
  for (const node of nodes) {
    if (node.name === ",") finishItem(node.from);
    else if (item.length > 0 || !isComment(node)) item.push(node);
  }
  while (item.at(-1) && isComment(item.at(-1) as SyntaxNode)) item.pop();
  if (item.length > 0) finishItem();
  return items;
}
