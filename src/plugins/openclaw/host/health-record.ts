/** Owns: noticing when spawns go on without a record, and saying so loudly: in the log and to `status`. */
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Health, HealthSink } from "../../../agents/coordination/ports/health-sink.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

export interface HealthRecord {
  succeeded(): void;
  /** `spawns` is how many spawns go on uncoordinated because of it. */
  failed(error: unknown, spawns: number): CoordinationError;
  /** Writes down once more how it was: nothing is coordinated from now on. */
  closed(): void;
}

export function createHealthRecord(dependencies: {
  readonly logger: Logger;
  readonly sink: HealthSink;
  readonly before: Health | undefined;
  readonly now: () => number;
}): HealthRecord {
  let health: Health = dependencies.before ?? { state: "ok", uncoordinatedSpawns: 0 };
  let isReported = false;
  const setHealth = (next: Health): void => {
    health = next;
    isReported = true;
    dependencies.sink.write(next);
  };
  return {
    succeeded: () => {
      const recovered = health.state !== "ok";
      // Also without news at first: the file must be there before a disk is full.
      if (recovered || !isReported) setHealth({ ...health, state: "ok" });
      if (!recovered) return;
      dependencies.logger.warn(
        { uncoordinatedSpawns: health.uncoordinatedSpawns },
        "coordination works again",
      );
    },
    failed: (error, spawns) => {
      const failure = asCoordinationError(error);
      const { code, message } = failure;
      const isKnown = health.state === "degraded" && health.failure?.code === code;
      // Every turn of every session may meet the same failure: it is said once, and again for each spawn.
      if (isKnown && spawns === 0) {
        if (!isReported) setHealth(health);
        return failure;
      }
      const uncoordinatedSpawns = health.uncoordinatedSpawns + spawns;
      setHealth({
        state: "degraded",
        failure: { code, message, atMs: dependencies.now() },
        uncoordinatedSpawns,
      });
      const consequence = spawns > 0 ? "A SPAWN GOES ON UNCOORDINATED" : "COORDINATION IS DEGRADED";
      dependencies.logger.error(
        { code, uncoordinatedSpawns },
        `${consequence}: ${message}. ${failure.advice}`,
      );
      return failure;
    },
    closed: () => {
      if (isReported) setHealth(health);
    },
  };
}

function asCoordinationError(error: unknown): CoordinationError {
  if (isCoordinationError(error)) return error;
  const message = describeError(error);
  return new CoordinationError("INVARIANT_VIOLATED", message, { cause: error });
}
