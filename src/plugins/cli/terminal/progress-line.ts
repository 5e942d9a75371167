/** Owns: one line on stderr that says how far long work is, where a person looks at it. */
import type { CliHost } from "./cli-host.ts";

const SHOWN_EVERY_MS = 200;

export interface ProgressLine {
  /** Replaces the line, at most five times a second. */
  readonly show: (describe: () => string) => void;
  readonly clear: () => Promise<void>;
  /** Waits for the work and clears the line, however it ends. */
  readonly clearAfter: <T>(work: Promise<T>) => Promise<T>;
}

/**
 * Creates a line on stderr that is overwritten with progress as work goes on, and cleared after it; where stderr is no
 * terminal, nothing is shown.
 */
export function createProgressLine(host: CliHost): ProgressLine {
  const { stderr } = host;
  let shownAtMs: number = host.now();
  let isShown = false;
  const clear = async (): Promise<void> => {
    if (isShown) await stderr.write("\r\u001b[K");
  };
  return {
    show: (describe) => {
      const now = host.now();
      if (!stderr.terminal.isTTY || now - shownAtMs < SHOWN_EVERY_MS) return;
      shownAtMs = now;
      isShown = true;
      void stderr.write(`\r${describe()} `);
    },
    clear,
    clearAfter: async (work) => {
      try {
        return await work;
      } finally {
        await clear();
      }
    },
  };
}
