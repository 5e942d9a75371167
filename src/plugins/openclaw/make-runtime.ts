/** Owns: building the shared runtime from the host's API and the operator's config. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { parsePluginConfig } from "../../agents/coordination/contracts/config.ts";
import {
  composeCoordinator,
  healthSinkBeside,
  ledgerPathIn,
  readHealthBeside,
  type RunningCoordinator,
} from "../compose.ts";
import { healthRecord } from "./health-record.ts";
import { hostLogger } from "./host-logger.ts";
import { hostRunner } from "./host-runner.ts";
import { recent } from "./recent.ts";
import type { OpenClawPluginApi } from "./sdk.ts";
import type { PendingSpawn, SharedRuntime } from "./shared-runtime.ts";

/** Spawns between their two hooks at once, and sessions whose newest request is remembered. */
const PENDING_SPAWNS_MAX = 10_000;
const REQUESTS_MAX = 1_000;

/** @throws CoordinationError `CONFIG_INVALID` */
export function makeRuntime(api: OpenClawPluginApi): SharedRuntime {
  const config = parsePluginConfig(api.pluginConfig);
  const logger = hostLogger(api.logger);
  const ledgerPath = ledgerPathIn(api.runtime.state.resolveStateDir());
  const sink = healthSinkBeside(ledgerPath);
  const runner = hostRunner(api.runtime, logger);
  const opened = openOnce(() => composeCoordinator({ ledgerPath, config, logger, runner }));
  return {
    config,
    logger,
    runner,
    health: healthRecord({ logger, sink, before: readHealthBeside(ledgerPath), now: Date.now }),
    pendingSpawns: recent<readonly PendingSpawn[]>(PENDING_SPAWNS_MAX),
    requests: recent<string>(REQUESTS_MAX),
    coordinator: opened.get,
    get closed() {
      return opened.closed();
    },
    close: opened.close,
  };
}

interface OpenOnce {
  readonly get: () => Promise<RunningCoordinator>;
  readonly close: () => Promise<void>;
  readonly closed: () => boolean;
}

/** One open ledger; a failed opening is tried again by the next caller. */
function openOnce(open: () => Promise<RunningCoordinator>): OpenOnce {
  let opening: Promise<RunningCoordinator> | undefined;
  let closed = false;
  const start = async (): Promise<RunningCoordinator> => {
    const coordinator = await open();
    // Recovery asks the host about every open step; spawns need not wait for it.
    void coordinator.start();
    return coordinator;
  };
  return {
    closed: () => closed,
    get: async () => {
      if (closed) throw new CoordinationError("LEDGER_CLOSED", "coordination is stopped");
      opening ??= start();
      try {
        return await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
    },
    close: async () => {
      closed = true;
      const coordinator = await opening?.catch(() => undefined);
      await coordinator?.close();
    },
  };
}
