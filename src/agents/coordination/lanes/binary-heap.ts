/** Owns: a queue that gives out its first item in logarithmic time. */

export interface BinaryHeap<T> {
  size(): number;
  first(): T | undefined;
  add(item: T): void;
  takeFirst(): T | undefined;
}

/**
 * Returns an empty heap whose first item is the least by `compare`, which is negative when its first argument comes
 * first.
 */
export function createBinaryHeap<T extends object>(compare: (a: T, b: T) => number): BinaryHeap<T> {
  const items: T[] = [];
  return {
    size: () => items.length,
    first: () => items[0],
    add: (item) => {
      items.push(item);
      moveLastUp(items, item, compare);
    },
    takeFirst: () => {
      const first = items[0];
      const last = items.pop();
      if (last && items.length > 0) {
        items[0] = last;
        moveFirstDown(items, compare);
      }
      return first;
    },
  };
}

/** Moves the last item up to its place. */
function moveLastUp<T>(items: T[], item: T, compare: (a: T, b: T) => number): void {
  let at = items.length - 1;
  for (;;) {
    const parentAt = (at - 1) >> 1;
    // There is none above the first.
    const parent = items[parentAt];
    if (parent === undefined || compare(item, parent) >= 0) return;
    items[at] = parent;
    items[parentAt] = item;
    at = parentAt;
  }
}

/** Moves the first item down to its place. */
function moveFirstDown<T>(items: T[], compare: (a: T, b: T) => number): void {
  let at = 0;
  const item = items[at];
  while (item !== undefined) {
    const childAt = findEarlierChild(items, at, compare);
    const child = items[childAt];
    if (child === undefined || compare(child, item) >= 0) return;
    items[at] = child;
    items[childAt] = item;
    at = childAt;
  }
}

function findEarlierChild<T>(items: readonly T[], at: number, compare: (a: T, b: T) => number): number {
  const leftAt = 2 * at + 1;
  const left = items[leftAt];
  const right = items[leftAt + 1];
  return left !== undefined && right !== undefined && compare(right, left) < 0 ? leftAt + 1 : leftAt;
}
