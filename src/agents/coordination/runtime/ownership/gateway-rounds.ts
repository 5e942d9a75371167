/**
 * Owns: what a gateway does from time to time for the ledger that it shares with others: it tells that it is there, takes over the
 * coordinations of gateways that are gone and those of its own earlier processes, and gives back what only their own gateway can
 * bring to its end.
 *
 * G2 A process that sees another one of its own gateway at work drives nothing more: two would act for the same sessions. Neither does
 * one whose ledger a newer release has migrated: it can write nothing there.
 */
import { CoordinationError, isCoordinationError, readErrorCode } from "../../contracts/errors.ts";
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OwnedRun, OwnerBeat, RunOwner, RunOwners } from "../../ports/run-owners.ts";
import { describeError } from "../../std/describe-error.ts";
import { parseGatewayOwnerId } from "./gateway-owner.ts";
import { isOfSameGateway } from "./gateway-seat.ts";
import type { HomeGateways, WaitingCoordination } from "./home-gateway.ts";
import type { OwnRuns } from "./own-runs.ts";
import { createTakeOver, type TakeOver } from "./take-over.ts";
import { createSilenceWatch, type SilenceDependencies, type SilenceWatch } from "./silent-owners.ts";

export interface GatewayRounds {
  /** Resolves when what the first round took over has been gone on with. */
  start(): Promise<void>;
  /** Resolves when the round under way is through, and so is going on with a coordination. */
  stop(): Promise<void>;
}

export interface GatewayRoundsDependencies extends SilenceDependencies {
  readonly owner: RunOwner;
  readonly owners: RunOwners;
  readonly ownRuns: OwnRuns;
  readonly homes: HomeGateways;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Goes on with a coordination that was taken over. It does not throw. */
  readonly adopt: (runId: CoordinationId) => Promise<void>;
  /**
   * Hears once that this process drives nothing more, which is to be reported: it is not logged here. Another process is this gateway
   * now, or a newer release has the ledger.
   */
  readonly onReplaced: (failure: CoordinationError) => void;
}

const ROUNDS_PER_LEASE = 10;
/** The owner id of runs that nobody owns. */
const NOBODY = "";

/** The collaborators and the memory of the rounds of one gateway. */
interface GatewayRoundsState extends GatewayRoundsDependencies {
  readonly silence: SilenceWatch;
  readonly takeOver: TakeOver;
  /** How often other processes of this gateway had told of themselves at the round before. */
  rivalCounts: ReadonlyMap<string, number>;
  isStopped: boolean;
  cancel: () => void;
  current: Promise<void>;
  /**
   * Resolves when all that was taken over has been gone on with. It never rejects. Rounds do not wait for it: each host may take its
   * time, and a gateway that does not tell of itself meanwhile loses its coordinations.
   */
  adopting: Promise<void>;
}

/**
 * Creates the rounds in which a gateway tells of itself, and takes over or gives back coordinations. `start` resolves
 * when what the first round took over has been gone on with, `stop` when all under way is through.
 */
export function createGatewayRounds(dependencies: GatewayRoundsDependencies): GatewayRounds {
  const rounds: GatewayRoundsState = {
    ...dependencies,
    silence: createSilenceWatch(dependencies),
    takeOver: createTakeOver(dependencies),
    rivalCounts: new Map(),
    isStopped: false,
    cancel: () => undefined,
    current: Promise.resolve(),
    adopting: Promise.resolve(),
  };
  return {
    start: async () => {
      await runRound(rounds);
      await rounds.adopting;
    },
    stop: async () => {
      rounds.isStopped = true;
      rounds.takeOver.stop();
      rounds.cancel();
      await rounds.current;
      await rounds.adopting;
    },
  };
}

/**
 * Runs a round and schedules the next one, also after a failure; none once the rounds are stopped, as where a newer
 * release has the ledger or another process is this gateway.
 */
function runRound(rounds: GatewayRoundsState): Promise<void> {
  rounds.current = performRound(rounds)
    .catch((error: unknown) => {
      if (rounds.isStopped) return;
      if (isCoordinationError(error) && error.code === "LEDGER_TOO_NEW") {
        rounds.isStopped = true;
        rounds.onReplaced(error);
        return;
      }
      const fields = { error: readErrorCode(error) };
      rounds.logger.warn(
        fields,
        `the gateways on this ledger could not be looked at: ${describeError(error)}`,
      );
    })
    .finally(() => {
      scheduleNextRound(rounds);
    });
  return rounds.current;
}

function scheduleNextRound(rounds: GatewayRoundsState): void {
  if (rounds.isStopped) return;
  const { clock, leaseMs } = rounds;
  rounds.cancel = clock.wakeAt(addMs(clock.now(), leaseMs / ROUNDS_PER_LEASE), () => void runRound(rounds));
}

/** Tells of itself, takes over what is free and gives back what it can; gives up where a rival is at work. */
async function performRound(rounds: GatewayRoundsState): Promise<void> {
  const { owner, owners, ownRuns } = rounds;
  const rows = (await owners.beats()).filter(({ id }) => parseGatewayOwnerId(id) !== undefined);
  if (findRival(rounds, rows)) {
    await giveUpGateway(rounds);
    return;
  }
  await ownRuns.beat();
  const holders = await owners.holders();
  const others = listOtherOwners(owner, rows, holders);
  const goneIds = rounds.silence.note(others);
  await takeOverRuns(
    rounds,
    holders.filter((id) => isFreeToTake(owner, id, goneIds)),
  );
  for (const waiting of rounds.homes.listWaiting())
    await giveBackToHome(
      rounds,
      waiting,
      rows.filter(({ id }) => !goneIds.includes(id)),
    );
  for (const id of goneIds) if (!holders.includes(id)) await owners.remove(id);
}

/** Finds another process of this gateway that is at work. A beat that was sent long ago, and arrived late, is none. */
function findRival(rounds: GatewayRoundsState, rows: readonly OwnerBeat[]): OwnerBeat | undefined {
  const { owner, rivalCounts } = rounds;
  const rivals = rows.filter((row) => row.id !== owner.id && isOfSameGateway(owner, row));
  rounds.rivalCounts = new Map(rivals.map(({ id, count }) => [id, count]));
  return rivals.find(({ id, count }) => {
    const before = rivalCounts.get(id);
    return before !== undefined && before !== count;
  });
}

/** Stops the rounds for good and reports it: another process is this gateway now. */
async function giveUpGateway(rounds: GatewayRoundsState): Promise<void> {
  const { owner, owners, onReplaced } = rounds;
  rounds.isStopped = true;
  onReplaced(
    new CoordinationError("GATEWAY_REPLACED", "another process drives coordinations as this gateway now"),
  );
  await owners.remove(owner.id);
}

/** Lists the other owners, also those that hold runs without having told of themselves. */
function listOtherOwners(
  owner: RunOwner,
  rows: readonly OwnerBeat[],
  holders: readonly string[],
): OwnerBeat[] {
  const ids = new Set(rows.map(({ id }) => id));
  const unheard = holders.filter((id) => !ids.has(id)).map((id): OwnerBeat => ({ id, count: 0 }));
  return [...rows, ...unheard].filter(({ id }) => id !== owner.id && id !== NOBODY);
}

/**
 * True where the runs of an owner may be taken over: of nobody, of one that is gone, or of this gateway. An earlier
 * process of this gateway is gone: otherwise this one would not have begun (G1).
 */
function isFreeToTake(owner: RunOwner, id: string, goneIds: readonly string[]): boolean {
  if (id === owner.id) return false;
  return id === NOBODY || goneIds.includes(id) || isOfSameGateway(owner, { id });
}

/** Takes over the runs of these owners, and begins to go on with them without waiting. */
async function takeOverRuns(rounds: GatewayRoundsState, from: readonly string[]): Promise<void> {
  const { takeOver, ownRuns, logger } = rounds;
  if (from.length === 0 && !takeOver.isUncertain) return;
  const runs: OwnedRun[] = [];
  await takeOver.take({ from, isOnlyFrom: true }, (batch) => {
    // From here on what their sessions do is recorded, before each has been looked at.
    for (const { runId, token } of batch) ownRuns.add(runId, token);
    runs.push(...batch);
  });
  if (runs.length === 0 || rounds.isStopped) return;
  logger.info(
    { runs: runs.length, from: from.join(" ") },
    "goes on with the coordinations of a gateway that is gone",
  );
  rounds.adopting = adoptRuns(rounds, rounds.adopting, runs);
}

/** Goes on with coordinations, one after another and behind those that were taken over before. */
async function adoptRuns(
  rounds: GatewayRoundsState,
  before: Promise<void>,
  runs: readonly OwnedRun[],
): Promise<void> {
  await before;
  for (const { runId } of runs) {
    if (rounds.isStopped) return;
    await rounds.adopt(runId);
  }
}

/** Makes the home gateway the owner of a coordination again, where it is at work. */
async function giveBackToHome(
  { owners, owner, ownRuns, homes, logger }: GatewayRoundsState,
  { runId, home }: WaitingCoordination,
  living: readonly OwnerBeat[],
): Promise<void> {
  const there = living.find(({ id }) => parseGatewayOwnerId(id) === home);
  const token = ownRuns.tokenOf(runId);
  if (!there || token === undefined) return;
  try {
    await owners.give(runId, { id: owner.id, token }, there.id);
    logger.info({ runId, gateway: home }, "gave the coordination back to its gateway");
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "NOT_OWNER") throw error;
  }
  homes.forget(runId);
  ownRuns.lose(runId);
}
