/** Owns: how many things of each name are open at the same time. */

export interface AtOnce {
  /** Counts one more, until the returned function is called. `undefined`: there are as many as there may be. */
  enter(name: string): (() => void) | undefined;
}

/**
 * Creates the counter whose `enter` returns the function that leaves again, and `undefined` where `most` things of
 * that name are open already.
 */
export function createConcurrencyCounter(most: number): AtOnce {
  const open = new Map<string, number>();
  const leave = (name: string): void => {
    const left = (open.get(name) ?? 1) - 1;
    if (left > 0) open.set(name, left);
    else open.delete(name);
  };
  return {
    enter: (name) => {
      const count = open.get(name) ?? 0;
      if (count >= most) return undefined;
      open.set(name, count + 1);
      let hasLeft = false;
      return () => {
        if (!hasLeft) leave(name);
        hasLeft = true;
      };
    },
  };
}
