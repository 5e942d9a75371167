/** Owns: pruning a ledger once a day, for a process that has it open. Which runs go is `prune-ledger.ts`. */
import { addMs } from "../contracts/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { describeError } from "../std/describe-error.ts";
import type { ExportCursors } from "../ports/export-cursors.ts";
import { pruneLedger, type PrunedLedger } from "./prune-ledger.ts";
import { findSilentExporter } from "./silent-exporter.ts";

const DAY_MS = 86_400_000;
/** Other work of a start goes first. */
const FIRST_AFTER_MS = 60_000;

/** The ledger that is pruned, and how. */
export interface RegularPruning {
  readonly ledger: PrunedLedger & { readonly exports: Pick<ExportCursors, "holder"> };
  /** Runs that ended more than so many days ago are removed; `undefined`: none are. */
  readonly keepDays: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Starts to prune the ledger a minute from now, and again a day after each prune. Returns an object whose `stop` ends
 * that and waits for a prune under way; `undefined` where no run is to be removed.
 */
export function startDailyPruning(options: RegularPruning): { stop(): Promise<void> } | undefined {
  const { clock, keepDays } = options;
  if (keepDays === undefined) return undefined;
  const stopping = new AbortController();
  let pruning = Promise.resolve();
  let cancel = (): void => undefined;
  const wakeAfter = (ms: number): void => {
    cancel = clock.wakeAt(addMs(clock.now(), ms), () => {
      pruning = pruneOnce(options, keepDays, stopping.signal).then(() => {
        if (!stopping.signal.aborted) wakeAfter(DAY_MS);
      });
    });
  };
  wakeAfter(FIRST_AFTER_MS);
  return {
    stop: () => {
      cancel();
      stopping.abort();
      return pruning;
    },
  };
}

/** Prunes the ledger now, and logs how that went. Never rejects: a ledger that is busy now is pruned the next day. */
async function pruneOnce(
  { ledger, clock, logger }: RegularPruning,
  keepDays: number,
  signal: AbortSignal,
): Promise<void> {
  const beforeMs = addMs(clock.now(), -keepDays * DAY_MS);
  try {
    const silentExporter = await findSilentExporter(ledger.exports, clock, signal);
    const { runs, events } = await pruneLedger(ledger, { beforeMs, isDryRun: false, silentExporter, signal });
    if (runs > 0) logger.info({ runs, events, keepDays }, "old runs were pruned from the ledger");
  } catch (error) {
    if (!signal.aborted) logger.warn({ error: describeError(error) }, "the ledger could not be pruned");
  }
}
