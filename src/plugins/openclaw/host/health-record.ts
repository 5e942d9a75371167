/** Owns: noticing when spawns go on without a record, and saying so loudly: in the log and to `status`. */
import {
  CoordinationError,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import type { Health, HealthSink } from "../../../agents/coordination/ports/health-sink.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { shareInProcess } from "./share-in-process.ts";

export interface HealthRecord {
  succeeded(): void;
  /** `spawns` is how many spawns go on uncoordinated because of it. */
  failed(error: unknown, spawns: number): CoordinationError;
  /** Notes why this process coordinates nothing more, and returns it. Nothing that is told later changes that. */
  replaced(failure: CoordinationError): CoordinationError;
  /** Writes down once more how it was: nothing is coordinated from now on. */
  closed(): void;
}

/** How old the words in the file are before others of the same failure replace them. */
const REWORD_MS_MIN = 5_000;

/** The newest failure in the health of the coordination. */
type HealthFailure = NonNullable<Health["failure"]>;

/**
 * Creates the record of failures and recoveries in the health file and the log; a repeated failure is logged once, and
 * again for each spawn. No failure is written while another process at work reports there.
 */
export function createHealthRecord(dependencies: {
  readonly logger: Logger;
  readonly sink: HealthSink;
  /** The ledger in the state folder, beside which the file is. */
  readonly ledgerPath: string;
  readonly before: Health | undefined;
  /** True while another process, which is at work, reports by the same file. */
  readonly isReportedByAnother: () => boolean;
  readonly now: () => number;
}): HealthRecord {
  const { ledgerPath } = dependencies;
  const logged = accessLoggedCodes();
  let health: Health = dependencies.before ?? { state: "ok", uncoordinatedSpawns: 0 };
  let isReported = false;
  let replacement: CoordinationError | undefined;
  const setHealth = (next: Health): void => {
    health = next;
    // Another process that is at work says how the gateway is, while this one does not coordinate.
    if (next.state === "degraded" && dependencies.isReportedByAnother()) return;
    isReported = true;
    dependencies.sink.write(next);
  };
  const noteFailure = (error: unknown, spawns: number): CoordinationError => {
    const failure = replacement ?? asCoordinationError(error);
    const { code, message } = failure;
    const next = { code, message, atMs: dependencies.now() };
    // Every turn of every session may meet the same failure: it is logged once, and again for each spawn.
    const isInLog = spawns === 0 && logged.get(ledgerPath) === code;
    const uncoordinatedSpawns = health.uncoordinatedSpawns + spawns;
    // By its time the line of the failure is found in the log.
    const shown = isInLog && isFailureUpToDate(health, next) ? (health.failure ?? next) : next;
    if (shown === next || !isReported) setHealth({ state: "degraded", failure: shown, uncoordinatedSpawns });
    if (isInLog) return failure;
    logged.set(ledgerPath, code);
    const consequence = spawns > 0 ? "A SPAWN GOES ON UNCOORDINATED" : "COORDINATION IS DEGRADED";
    dependencies.logger.error({ code, uncoordinatedSpawns }, `${consequence}: ${message}. ${failure.advice}`);
    return failure;
  };
  return {
    succeeded: () => {
      // A call that was under way when the gateway was replaced may end well.
      if (replacement) return;
      const recovered = logged.delete(ledgerPath) || health.state !== "ok";
      // Also without news at first: the file must be there before a disk is full.
      if (recovered || !isReported) setHealth({ ...health, state: "ok" });
      if (!recovered) return;
      dependencies.logger.warn(
        { uncoordinatedSpawns: health.uncoordinatedSpawns },
        "coordination works again",
      );
    },
    failed: noteFailure,
    replaced: (failure) => {
      replacement = failure;
      return noteFailure(failure, 0);
    },
    closed: () => {
      if (isReported && !dependencies.isReportedByAnother()) setHealth(health);
    },
  };
}

/**
 * Returns which failure this process logged last, until it is over, by the path of the ledger. That is shared: each call that finds
 * no runtime makes a record of its own, and may reach any instance of this module.
 */
const accessLoggedCodes = shareInProcess("logged-failures", () => new Map<string, ErrorCode>());

/**
 * True where the health has this failure in the same words, or in words of just now. The clock may have been set back.
 */
function isFailureUpToDate(health: Health, { code, message, atMs }: HealthFailure): boolean {
  const { state, failure: before } = health;
  if (state !== "degraded" || before?.code !== code) return false;
  return before.message === message || Math.abs(atMs - before.atMs) < REWORD_MS_MIN;
}

/** Returns the error itself, or wraps any other one as `INVARIANT_VIOLATED`. */
function asCoordinationError(error: unknown): CoordinationError {
  if (isCoordinationError(error)) return error;
  const message = describeError(error);
  return new CoordinationError("INVARIANT_VIOLATED", message, { cause: error });
}
