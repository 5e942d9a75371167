/** Owns: opening something once for all callers, and closing it once. */

export interface OpenOnce<T> {
  /** Opens it at the first call, and again after a failure. @throws what opening throws, or that it is closed */
  readonly get: () => Promise<T>;
  /** Has `get` throw this from now on, until it is closed. */
  readonly refuse: (reason: Error) => void;
  readonly close: () => Promise<void>;
  readonly isClosed: () => boolean;
}

/**
 * Creates the holder of something that is opened at the first `get`, for all callers, and tried again after a failure.
 * `close` closes it, and `get` throws after `close` or `refuse`.
 */
export function createOpenOnce<T extends { close(): Promise<void> }>(
  open: () => Promise<T>,
  createClosedError: () => Error,
): OpenOnce<T> {
  let opening: Promise<T> | undefined;
  let refusal: Error | undefined;
  let isClosed = false;
  return {
    isClosed: () => isClosed,
    refuse: (reason) => {
      refusal = reason;
    },
    get: async () => {
      if (isClosed) throw createClosedError();
      if (refusal) throw refusal;
      opening ??= open();
      try {
        return await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
    },
    close: async () => {
      isClosed = true;
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}
