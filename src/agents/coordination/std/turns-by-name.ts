/** Owns: work of which one thing at a time is done for each name. */

export interface TurnsByName {
  /** Does the work when all work that was asked for earlier under this name has ended. */
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/**
 * Creates a queue of work for each name: `run` begins the work after all earlier work of that name has ended, also by
 * failing, and settles as the work does.
 */
export function createTurnsByName(): TurnsByName {
  const last = new Map<string, Promise<unknown>>();
  return {
    run: (name, work) => {
      const turn = (last.get(name) ?? Promise.resolve()).then(work, work);
      last.set(name, turn);
      const forget = (): void => {
        if (last.get(name) === turn) last.delete(name);
      };
      turn.then(forget, forget);
      return turn;
    },
  };
}
