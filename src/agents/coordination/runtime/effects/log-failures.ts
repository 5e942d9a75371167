/** Owns: saying why coordinations do not go on: once while a cause lasts, and once when nothing fails for it any more. */
import { isLedgerOutage, readErrorCode } from "../../contracts/errors.ts";
import type { Logger } from "../../ports/logger.ts";
import { describeError } from "../../std/describe-error.ts";
import type { NoteUnread } from "../attempts/nested-plans.ts";

export interface FailureLog {
  /** Logs a failure, unless its cause has been logged and lasts. */
  note(runId: string, error: unknown): void;
  /** Logs that the coordination around a plan cannot be read, unless its cause has been logged and lasts. */
  readonly noteUnread: NoteUnread;
  /** Hears that all coordinations are looked at again. A cause without a failure since the last time is over. */
  noteSweep(): void;
}

/** A cause for which coordinations do not go on, with those that it stopped. */
interface FailureCause {
  readonly code: string;
  readonly runIds: Set<string>;
  /** False where a plan goes on all the same: whether it has ended, or the log around it can be read again, is not known. */
  readonly isFailure: boolean;
  /** True where it failed something since the last sweep began. */
  isRecent: boolean;
}

/**
 * Creates the log of a dispatcher's failures: it writes each cause once, and says when a sweep no longer met a
 * failure.
 */
export function createFailureLog(logger: Logger): FailureLog {
  const causes = new Map<string, FailureCause>();
  const endCause = (name: string, { code, runIds: [...ids], isFailure }: FailureCause): void => {
    causes.delete(name);
    if (!isFailure) return;
    const fields = ids.length === 1 ? { code, runId: ids[0] } : { code };
    logger.info(fields, `coordinations that no longer fail with ${code}: ${ids.length}`);
  };
  /** Returns true where the cause is a new one. */
  const addCause = (
    name: string,
    { code, runId, isFailure }: Pick<FailureCause, "code" | "isFailure"> & { readonly runId: string },
  ): boolean => {
    const cause = causes.get(name);
    if (!cause) {
      causes.set(name, { code, runIds: new Set([runId]), isFailure, isRecent: true });
      return true;
    }
    cause.runIds.add(runId);
    cause.isRecent = true;
    return false;
  };
  return {
    note: (runId, error) => {
      const code = readErrorCode(error);
      const name = nameCause(code, runId, error);
      if (code === "LEDGER_CLOSED" || !addCause(name, { code, runId, isFailure: true })) return;
      logger.error({ runId, code }, `could not move the coordination on: ${describeError(error)}`);
    },
    noteUnread: (runId, aroundId, error) => {
      const code = readErrorCode(error);
      const name = `${code} around ${runId}`;
      if (code === "LEDGER_CLOSED" || !addCause(name, { code, runId, isFailure: false })) return;
      logger.warn(
        { runId, aroundId, code },
        `cannot read the coordination around this plan; the plan goes on: ${describeError(error)}`,
      );
    },
    noteSweep: () => {
      for (const [name, cause] of causes) {
        if (!cause.isRecent) endCause(name, cause);
        cause.isRecent = false;
      }
    },
  };
}

/**
 * Names the cause of a failure. A ledger that cannot be used fails all coordinations alike; anything else is about one
 * of them.
 */
function nameCause(code: string, runId: string, error: unknown): string {
  return isLedgerOutage(error) ? code : `${code} ${runId} ${describeError(error)}`;
}
