/** Owns: checking a run's log against its hashes and its row (S4). Does not own: the hash itself (`event-row.ts`). */
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { hashChainedRow, computeGenesisHash, type EventRow } from "../event-row.ts";
import type { ProblemReporter } from "./report.ts";

/** The length and the head of a log, as the row of its run says. */
export interface RunHead {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
  readonly head_hash: Buffer;
  readonly origin: string | null;
}

export interface ChainCheck {
  /** Takes the events in the order of their sequences. */
  add(row: EventRow & { readonly hash: Buffer }): void;
  /** There are no more. */
  end(): void;
}

/**
 * Creates the check that takes the rows of one run's events in order and reports as problems those that are missing,
 * do not match their hash, or lie behind the end of the run.
 */
export function createChainCheck(run: RunHead, report: ProblemReporter): ChainCheck {
  const { run_id: runId, length, origin, head_hash: head } = run;
  let previous = computeGenesisHash(origin);
  let expected = 0;
  return {
    add: (row) => {
      const { sequence } = row;
      if (sequence > expected) report(createMissingProblem(runId, expected, sequence));
      if (sequence >= length) {
        const message = `event ${sequence} lies behind the end of the log`;
        report({ kind: "event_forged", message, runId, sequence });
      } else if (!hashChainedRow(previous, runId, row).equals(row.hash)) {
        // The first hash is also over the origin.
        const subject = sequence === 0 && origin !== null ? "the origin of the run, or event" : "event";
        const message = `${subject} ${sequence} (${row.type}) does not match its hash`;
        report({ kind: "event_changed", message, runId, sequence });
      }
      // From the stored hash on, so that one changed event is reported once.
      previous = row.hash;
      expected = sequence + 1;
    },
    end: () => {
      if (expected < length) report(createMissingProblem(runId, expected, length));
      else if (expected === length && !previous.equals(head)) {
        const message = "the newest event is not the one that was appended last";
        report({ kind: "event_changed", message, runId, sequence: length - 1 });
      }
    },
  };
}

function createMissingProblem(runId: string, from: number, before: number): StoredProblem {
  const message =
    before - from === 1 ? `event ${from} is missing` : `events ${from} to ${before - 1} are missing`;
  return { kind: "event_missing", message, runId, sequence: from };
}
