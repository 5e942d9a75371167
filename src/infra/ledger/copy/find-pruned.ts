/** Owns: whether a half copy has events of runs of which its source was pruned since the copy began. */
import { readTablePages } from "./compare-tables.ts";
import { EVENT_TABLE, PRUNED_TABLE, type CopiedTable } from "./copied-tables.ts";
import { pickKey, type CopiedRow, type CopiedValue, type CopySide } from "./copy-sides.ts";

/**
 * Returns whether the target has events of a run that has since been pruned from the source; false where nothing
 * differs, or differs for another reason. Reads both sides up to the first event of the target that the source lacks
 * or has otherwise.
 */
export async function hasPrunedEvents(source: CopySide, target: CopySide): Promise<boolean> {
  let after: CopiedRow | undefined;
  for await (const page of readTablePages(target, EVENT_TABLE)) {
    // A source that was pruned has no events that the target lacks there: its page reaches as far at least.
    const hashes = new Map(
      (await source.readRows(EVENT_TABLE, after)).map((row) => [readEventKey(row), readEventRowHash(row)]),
    );
    const other = page.find((row) => hashes.get(readEventKey(row)) !== readEventRowHash(row));
    if (other) return !hashes.has(readEventKey(other)) && (await isEventOfPrunedRun(source, other));
    const last = page.at(-1);
    after = last && pickKey(EVENT_TABLE, last);
  }
  return false;
}

async function isEventOfPrunedRun(source: CopySide, event: CopiedRow): Promise<boolean> {
  const runKey = Number(readColumn(EVENT_TABLE, event, "run_key"));
  const [trace] = await source.readRows(PRUNED_TABLE, [runKey - 1]);
  if (!trace || Number(readColumn(PRUNED_TABLE, trace, "run_key")) !== runKey) return false;
  const first = Number(readColumn(PRUNED_TABLE, trace, "first_event"));
  const newest = Number(readColumn(PRUNED_TABLE, trace, "newest_event"));
  return readEventKey(event) >= first && readEventKey(event) <= newest;
}

function readEventKey(event: CopiedRow): number {
  return Number(readColumn(EVENT_TABLE, event, "event_key"));
}

function readEventRowHash(event: CopiedRow): string {
  return (readColumn(EVENT_TABLE, event, "hash") as Buffer).toString("base64");
}

function readColumn({ columns }: CopiedTable, row: CopiedRow, name: string): CopiedValue {
  return row[Object.keys(columns).indexOf(name)] ?? null;
}
