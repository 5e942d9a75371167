/**
 * Owns: putting the runtime and its SQLite, p-queue and pino parts together. The only file that imports both; load it
 * lazily, because it pulls in the native database driver.
 */
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import type { Phase1Config } from "../agents/coordination/contracts/config.ts";
import type { CoordinationId } from "../agents/coordination/contracts/ids.ts";
import type { AgentRunner } from "../agents/coordination/ports/agent-runner.ts";
import type { ContentStore } from "../agents/coordination/ports/content-store.ts";
import type { Health, HealthSink } from "../agents/coordination/ports/health-sink.ts";
import type { LedgerStore } from "../agents/coordination/ports/ledger-store.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import { createCoordinator, type Coordinator } from "../agents/coordination/runtime/coordinator.ts";
import { systemClock } from "../infra/clock/system-clock.ts";
import { healthFile, readHealth } from "../infra/health/health-file.ts";
import { pQueueLanes } from "../infra/lanes/p-queue-lanes.ts";
import { pinoLogger } from "../infra/log/pino-logger.ts";
import { openSqliteLedger } from "../infra/sqlite/sqlite-ledger-store.ts";

/** A gateway must not be blocked by another process's lock for longer than this. */
const GATEWAY_BUSY_TIMEOUT_MS = 100;
/** A command line can wait. */
const READER_BUSY_TIMEOUT_MS = 5_000;

const DAY_MS = 24 * 3_600_000;

export type LedgerReader = LedgerStore & ContentStore;

/** Opens a ledger without changing it. @throws CoordinationError as `openDatabase` does. */
export function openLedgerForReading(path: string): Promise<LedgerReader> {
  return openSqliteLedger({ path, mode: "read", busyTimeoutMs: READER_BUSY_TIMEOUT_MS, clock: systemClock });
}

export interface RunningCoordinator extends Coordinator {
  /** Stops the loop, waits for what is under way and closes the ledger. */
  close(): Promise<void>;
}

/** @throws CoordinationError as `openDatabase` does. */
export async function composeCoordinator(options: {
  readonly ledgerPath: string;
  readonly config: Phase1Config;
  readonly runner: AgentRunner;
  readonly logger: Logger;
}): Promise<RunningCoordinator> {
  const { ledgerPath, config, runner, logger } = options;
  const store = await openSqliteLedger({
    path: ledgerPath,
    mode: "write",
    busyTimeoutMs: GATEWAY_BUSY_TIMEOUT_MS,
    clock: systemClock,
  });
  const coordinator = createCoordinator({
    store,
    content: store,
    runner,
    logger,
    clock: systemClock,
    lanes: pQueueLanes(),
    settings: { ...config, contentMs: config.contentRetentionDays * DAY_MS },
    newCoordinationId: () => `co-${randomUUID()}` as CoordinationId,
  });
  return {
    ...coordinator,
    close: async () => {
      await coordinator.stop();
      await store.close();
    },
  };
}

/** Where the gateway tells its health, for `readHealthBeside` of another process. Creates nothing until it is written to. */
export function healthSinkBeside(ledgerPath: string): HealthSink {
  return healthFile(healthPathBeside(ledgerPath));
}

/** What the gateway told last about the ledger at this path; `undefined` when it told nothing readable. */
export function readHealthBeside(ledgerPath: string): Health | undefined {
  return readHealth(healthPathBeside(ledgerPath));
}

function healthPathBeside(ledgerPath: string): string {
  return join(dirname(ledgerPath), "health.json");
}

/** Structured JSON lines to `destination`, debug included. */
export function loggerTo(destination: { write(line: string): void }): Logger {
  return pinoLogger({ level: "debug", destination });
}

export function ledgerPathIn(stateDir: string): string {
  return join(stateDir, "coordination", "ledger.sqlite");
}
