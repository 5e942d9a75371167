/** Owns: copying a ledger from one place to another, wherever each is. The driver of a server is loaded only for one on a server. */
import { realpathSync } from "node:fs";
import { BOUNDS } from "../agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { Clock } from "../agents/coordination/ports/clock.ts";
import { waitForDuration } from "../agents/coordination/std/wait-for.ts";
import { systemClock } from "../infra/clock/system-clock.ts";
import { copyLedger, type CopyProgress, type LedgerCopy } from "../infra/ledger/copy/copy-ledger.ts";
import { findMovedFrom } from "../infra/ledger/copy/find-moved-from.ts";
import type { CopySource, CopyTarget, GatewayProcess, SharedPlace } from "../infra/ledger/copy/copy-sides.ts";
import { formatLedgerPlace, isPostgresUrl } from "../infra/ledger/ledger-place.ts";
import { withSqliteCopySource } from "../infra/sqlite/copy/sqlite-copy-source.ts";
import { withSqliteCopyTarget } from "../infra/sqlite/copy/sqlite-copy-target.ts";
import { isProcessGone, isProcessThere } from "../platform/process-name.ts";

/** A command line can wait. */
const BUSY_TIMEOUT_MS = 5_000;

export type { CopyProgress, LedgerCopy };

export interface CopyPlaces {
  /** The path of a file, or the URL of a server. */
  readonly from: string;
  readonly to: string;
  /** The gateway whose own ledger is copied, or a file is to be that a server is copied to. */
  readonly gateway?: string | undefined;
}

/**
 * Copies the ledger at `from` into the one at `to`, either of which may be a file or on a server, and resolves to a
 * record of the copy; nothing is created at `to` where there is no source. @throws CoordinationError as `copyLedger`
 * and `findMovedFrom` of infra and as opening both does, and `LEDGER_BUSY` where a gateway has the target open
 */
export function copyLedgerBetween(
  { from, to, gateway }: CopyPlaces,
  onProgress: (progress: CopyProgress) => void,
): Promise<LedgerCopy> {
  if (resolveRealPlace(from) === resolveRealPlace(to))
    return Promise.reject(
      new CoordinationError("INPUT_INVALID", `${formatLedgerPlace(to)}: a ledger is not copied to itself`),
    );
  // The source first: nothing is created where there is none.
  return withSource(from, async (source) => {
    const move = {
      to: formatLedgerPlace(to),
      isFromShared: isPostgresUrl(from),
      isShared: isPostgresUrl(to),
      gateway,
    };
    const movedFrom = await findMovedFrom(source, move);
    return withTarget(to, (target) => copyLedger({ source, target, movedFrom, onProgress }));
  });
}

function resolveRealPlace(place: string): string {
  if (isPostgresUrl(place)) return place;
  try {
    return realpathSync(place);
  } catch {
    return place;
  }
}

/** Opens the source of a copy, does the work and closes it. */
async function withSource<T>(place: string, copy: (source: CopySource) => Promise<T>): Promise<T> {
  if (!isPostgresUrl(place))
    return withSqliteCopySource({ path: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
  const { withPostgresCopySource } = await import("../infra/postgres/copy/postgres-copy-source.ts");
  return withPostgresCopySource({ url: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
}

/** Opens the target of a copy, does the work and closes it; refuses a server's ledger that gateways have open. */
async function withTarget<T>(place: string, copy: (target: CopyTarget) => Promise<T>): Promise<T> {
  if (!isPostgresUrl(place))
    return withSqliteCopyTarget({ path: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
  const { withPostgresCopyTarget } = await import("../infra/postgres/copy/postgres-copy-target.ts");
  const assertNoGateways = (target: SharedPlace): Promise<void> => assertNoOpenGateways(target, systemClock);
  return withPostgresCopyTarget({ url: place, busyTimeoutMs: BUSY_TIMEOUT_MS, assertNoGateways }, copy);
}

const LOOK_MS = 1_000;
/** A gateway tells of itself ten times in each lease: this is twice the longest time in between. */
const LOOKS_MAX = BOUNDS.gatewayLeaseMsMax / 5 / LOOK_MS;

/**
 * Resolves when no gateway has the shared target open, and throws where one that is at work has it; a gateway of
 * another machine that ended without a word is waited for until its silence shows that. @throws CoordinationError
 * `LEDGER_BUSY` where one has it open
 */
export async function assertNoOpenGateways(target: SharedPlace, clock: Clock): Promise<void> {
  const listOpen = async (): Promise<GatewayProcess[]> =>
    (await target.listGateways()).filter(({ process }) => process === null || !isProcessGone(process));
  const first = await listOpen();
  let rows = first;
  for (let looks = 0; rows.length > 0 && looks < LOOKS_MAX; looks += 1) {
    const living = rows.find((row) => isGatewayAtWork(row, first));
    if (living)
      throw new CoordinationError(
        "LEDGER_BUSY",
        `the gateway ${living.gateway} has ${target.place} open; stop the gateways that use it and run the same command again`,
      );
    await waitForDuration(clock, LOOK_MS);
    rows = await listOpen();
  }
}

/** True where the gateway has told of itself since the first reading, or its process is there. */
function isGatewayAtWork({ id, process, beats }: GatewayProcess, first: readonly GatewayProcess[]): boolean {
  const before = first.find((row) => row.id === id);
  return before?.beats !== beats || (process !== null && isProcessThere(process));
}
