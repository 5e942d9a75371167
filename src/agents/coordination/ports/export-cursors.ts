/**
 * How far exports of the ledger came, by their names. One process at a time exports under a name; another one goes on where it
 * stopped when it has not been heard of for long enough.
 */
export interface ExportCursors {
  /**
   * Takes an export, unless another process has it. Returns the position behind which it goes on: `from` where nothing was exported
   * under this name yet; `undefined` while another process has it.
   *
   * @throws CoordinationError `LEDGER_BUSY`, `LEDGER_UNAVAILABLE`, `LEDGER_CLOSED`
   */
  take(request: {
    readonly name: string;
    /** Names the process. */
    readonly holder: string;
    readonly from: number;
    readonly nowMs: number;
    readonly untilMs: number;
  }): Promise<number | undefined>;
  /** Notes that everything up to a position is exported, and keeps the export. False: another process has it now. */
  advance(progress: {
    readonly name: string;
    readonly holder: string;
    readonly position: number;
    readonly untilMs: number;
  }): Promise<boolean>;
}
