/** Owns: noticing when spawns go on without a record, and saying so loudly: in the log and to `status`. */
import {
  CoordinationError,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import type { Health, HealthSink } from "../../../agents/coordination/ports/health-sink.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

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

export function createHealthRecord(dependencies: {
  readonly logger: Logger;
  readonly sink: HealthSink;
  readonly before: Health | undefined;
  /** True while another process, which is at work, reports by the same file. */
  readonly isReportedByAnother: () => boolean;
  readonly now: () => number;
}): HealthRecord {
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
    // Every turn of every session may meet the same failure: it is said once, and again for each spawn.
    if (health.state === "degraded" && isInLog(health.failure, code) && spawns === 0) {
      if (isOutdated(health.failure, next)) setHealth({ ...health, failure: rememberLogged(next) });
      else if (!isReported) setHealth(health);
      return failure;
    }
    const uncoordinatedSpawns = health.uncoordinatedSpawns + spawns;
    setHealth({ state: "degraded", failure: rememberLogged(next), uncoordinatedSpawns });
    const consequence = spawns > 0 ? "A SPAWN GOES ON UNCOORDINATED" : "COORDINATION IS DEGRADED";
    dependencies.logger.error({ code, uncoordinatedSpawns }, `${consequence}: ${message}. ${failure.advice}`);
    return failure;
  };
  return {
    succeeded: () => {
      // A call that was under way when the gateway was replaced may end well.
      if (replacement) return;
      const recovered = health.state !== "ok";
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

type Failure = NonNullable<Health["failure"]>;

/** The failure that this process logged last, with its newest words: each call that finds no runtime makes a record of its own. */
let newestLogged: Failure | undefined;

function rememberLogged(failure: Failure): Failure {
  newestLogged = failure;
  return failure;
}

/** True where the log of this process has the failure already: an earlier process wrote it into a log of its own. */
function isInLog(before: Failure | undefined, code: ErrorCode): before is Failure {
  return before?.code === code && newestLogged?.code === code && newestLogged.atMs === before.atMs;
}

/** True where the words are others now, and the words before are not of just now. The clock may have been set back. */
function isOutdated(before: Failure, { message, atMs }: Failure): boolean {
  return before.message !== message && Math.abs(atMs - before.atMs) >= REWORD_MS_MIN;
}

function asCoordinationError(error: unknown): CoordinationError {
  if (isCoordinationError(error)) return error;
  const message = describeError(error);
  return new CoordinationError("INVARIANT_VIOLATED", message, { cause: error });
}
