/** Owns: the port that keeps how far each export of the ledger came, and which process exports under its name. */

/**
 * How far exports of the ledger came, by their names. One process at a time exports under a name; another one goes on where it
 * stopped, when it has gone or has not told of itself for long enough (`beats` did not grow, as with owners of runs).
 *
 * Each call throws CoordinationError `LEDGER_BUSY`, `LEDGER_UNAVAILABLE` or `LEDGER_CLOSED`.
 */
export interface ExportCursors {
  /** The process that has an export; `undefined` where none has. */
  holder(name: string): Promise<ExportHolder | undefined>;
  /**
   * Takes an export, unless another process has it. Returns the position behind which it goes on: `from` where nothing was exported
   * under this name yet; `undefined` while another process has it.
   */
  take(request: {
    readonly name: string;
    /** Names the process. */
    readonly holder: string;
    readonly from: number;
    /** A process that has it and is silent: it has it no more, unless it told of itself meanwhile. */
    readonly silent?: ExportHolder;
  }): Promise<number | undefined>;
  /** Notes that everything up to a position is exported, and that its process is there. False: another process has it now. */
  advance(progress: {
    readonly name: string;
    readonly holder: string;
    readonly position: number;
  }): Promise<boolean>;
  /** Gives an export back, so that another process need not wait. */
  release(request: { readonly name: string; readonly holder: string }): Promise<void>;
}

/** The process that has an export, and how often it has told of itself. */
export interface ExportHolder {
  readonly holder: string;
  readonly beats: number;
}
