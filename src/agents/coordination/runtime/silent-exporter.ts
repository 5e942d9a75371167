/** Owns: noticing that the process which exports the spans of a ledger has ended without giving the export back. */
import { SPAN_EXPORT } from "../contracts/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { ExportCursors } from "../ports/export-cursors.ts";
import { waitForDuration } from "../std/wait-for.ts";

const LOOK_MS = 1_000;
/** A process that exports tells of itself ten times in so long. */
const LOOKS_MAX = 30;

/**
 * Returns the name of the process that holds the export of spans and does not tell of itself in `LOOKS_MAX` looks;
 * `undefined` where none holds it, it does tell of itself, or `signal` aborts.
 */
export async function findSilentExporter(
  exports: Pick<ExportCursors, "holder">,
  clock: Clock,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const first = await exports.holder(SPAN_EXPORT);
  if (!first) return undefined;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    await waitForDuration(clock, LOOK_MS, signal);
    if (signal?.aborted) return undefined;
    const newest = await exports.holder(SPAN_EXPORT);
    if (newest?.holder !== first.holder || newest.beats !== first.beats) return undefined;
  }
  return first.holder;
}
