/**
 * Owns: how the place of an event is found among all events of the ledger. The event with the number n has the position 2n, and 2n + 1
 * is right behind it.
 */

/** Before that event of that run: as of then memory and workspaces are read. */
export interface AsOf {
  readonly runId: string;
  readonly sequence: number;
}

/**
 * Selects the position of an event, or, where the run has none with this sequence, the position behind its newest event. No row for
 * a run that the ledger does not know.
 */
export const SELECT_POSITION = `
  select coalesce(
    (select 2 * event_key from event where event.run_key = run.run_key and sequence = @sequence),
    (
      select 2 * event_key + 1
      from event
      where event.run_key = run.run_key
      order by sequence desc
      limit 1
    )
  ) as position
  from run
  where run_id = @runId and kind = 'workflow'`;

/** The position of a reader who names no event: behind everything that is there. */
export const POSITION_NOW = Number.MAX_SAFE_INTEGER;

/**
 * Returns the number of the first event that does not lie before a position of the ledger (positions count half
 * events); the position "now" stays as it is.
 */
export function eventNumberFromPosition(position: number): number {
  return position === POSITION_NOW ? position : Math.ceil(position / 2);
}
