/** Owns: ledger files in folders of their own that vanish with the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { openSqliteLedger, type SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";

export interface TempFolder extends Disposable {
  readonly path: string;
  /** The path of a file in the folder. */
  file(name: string): string;
}

/** `using folder = tempFolder()` */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "coordination-test-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Time that moves only when told to. Wake-ups are kept and never run by themselves. */
export interface ManualClock extends Clock {
  set(atMs: number): void;
  /** Runs, in order of time, what is due at the present time. */
  fire(): void;
}

export const TEST_EPOCH_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export function createManualClock(startMs: number = TEST_EPOCH_MS): ManualClock {
  let nowMs = startMs;
  const wakes = new Set<{ readonly atMs: number; readonly run: () => void }>();
  return {
    now: () => nowMs as EpochMs,
    set: (atMs) => {
      nowMs = atMs;
    },
    fire: () => {
      const due = [...wakes].filter(({ atMs }) => atMs <= nowMs).toSorted((a, b) => a.atMs - b.atMs);
      for (const wake of due) {
        wakes.delete(wake);
        wake.run();
      }
    },
    wakeAt: (atMs, run) => {
      const wake = { atMs, run };
      wakes.add(wake);
      return () => {
        wakes.delete(wake);
      };
    },
  };
}

export interface OpenTestLedger {
  readonly mode?: "read" | "write";
  readonly busyTimeoutMs?: number;
  readonly clock?: Clock;
}

export function openTestLedger(path: string, options: OpenTestLedger = {}): Promise<SqliteLedger> {
  const { mode = "write", busyTimeoutMs = 2_000, clock = createManualClock() } = options;
  return openSqliteLedger({ path, mode, busyTimeoutMs, clock });
}
