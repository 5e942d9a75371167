/** Owns: the log of coordinations over a store in memory, whose appends a test may hold up and fail. */
import { CoordinationError, type ErrorCode } from "../../src/agents/coordination/contracts/errors.ts";
import { createRunLog, type RunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import type { World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export function logOver(
  w: Pick<World, "ledger" | "clock">,
  wrap: (store: MemoryStore) => MemoryStore = (store) => store,
): RunLog {
  return createRunLog({ store: wrap(w.ledger.open(w.clock)), clock: w.clock, logger: quiet });
}

export interface FailingLog {
  readonly log: RunLog;
  readonly fail: (code?: ErrorCode) => void;
}

/** A log whose first append after that of the opening waits, and then fails as told. */
export function createFailingLog(w: World): FailingLog {
  let refuse: ((error: Error) => void) | undefined;
  let armed = false;
  const log = logOver(w, (store) => ({
    ...store,
    append: (request) => {
      if (!armed || refuse) return store.append(request);
      return new Promise((_, reject) => {
        refuse = reject;
      });
    },
  }));
  const fail = (code: ErrorCode = "LEDGER_FULL"): void => refuse?.(new CoordinationError(code, "it failed"));
  return {
    log: {
      ...log,
      submit: async (runId, commands, ...rest) => {
        armed ||= commands[0]?.type !== "openCoordination";
        return log.submit(runId, commands, ...rest);
      },
    },
    fail,
  };
}
