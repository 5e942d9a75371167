/**
 * Owns: committing all appends that are waiting in one transaction, because a durable commit costs one fsync however
 * much it holds (25,000 events a second in groups of 100, 3,100 one by one).
 */

export interface GroupCommit<T> {
  /** Resolves when the transaction that held `item` is on disk. */
  submit(item: T): Promise<void>;
  /** Resolves when nothing is waiting. */
  drained(): Promise<void>;
}

/** An item that waits to be committed, and the functions that end its wait. */
interface WaitingItem<T> {
  readonly item: T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** By item of a group: why it was not committed; `undefined` where it was. */
type CommitErrors = readonly (Error | undefined)[];

/** Bounds what is committed in one transaction. */
export interface GroupBounds<T> {
  readonly groupMax: number;
  /** The characters of a group. An item that has more is a group by itself. Absent: as many as its items have. */
  readonly charsMax?: number;
  readonly countChars?: (item: T) => number;
}

/**
 * Creates a queue that commits writes that wait at the same moment together, within the bounds. `commit` returns the
 * error of each item that was left out, in order; where it throws, the whole group is rejected.
 */
export function createGroupCommit<T>(
  commit: (items: readonly T[]) => CommitErrors | Promise<CommitErrors>,
  bounds: GroupBounds<T>,
): GroupCommit<T> {
  let waiting: WaitingItem<T>[] = [];
  let scheduled: Promise<void> | undefined;

  const flush = async (): Promise<void> => {
    const group = waiting.slice(0, countNextGroup(waiting, bounds));
    waiting = waiting.slice(group.length);
    try {
      const errors = await commit(group.map(({ item }) => item));
      for (const [index, { resolve, reject }] of group.entries()) {
        const error = errors[index];
        if (error) reject(error);
        else resolve();
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  };

  const schedule = async (): Promise<void> => {
    while (waiting.length > 0) {
      // Let everything that is ready to append join the group.
      await new Promise((resolve) => setImmediate(resolve));
      await flush();
    }
    scheduled = undefined;
  };

  return {
    submit: (item) =>
      new Promise<void>((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        scheduled ??= schedule();
      }),
    drained: async () => {
      await scheduled;
    },
  };
}

/** Counts the waiting items that the bounds allow in the next group, which has one at least. */
function countNextGroup<T>(
  waiting: readonly WaitingItem<T>[],
  { groupMax, charsMax = Infinity, countChars = () => 0 }: GroupBounds<T>,
): number {
  let chars = 0;
  for (const [index, { item }] of waiting.entries()) {
    chars += countChars(item);
    if (index >= groupMax || (index > 0 && chars > charsMax)) return index;
  }
  return waiting.length;
}
