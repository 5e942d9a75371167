/** Owns: what a gateway does and knows because others reach its ledger, too. With a ledger of its own there is nothing of it. */
import type { CoordinationError } from "../../contracts/errors.ts";
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { RunOwner, RunOwners } from "../../ports/run-owners.ts";
import { describeError } from "../../std/describe-error.ts";
import { createGatewayRounds } from "./gateway-rounds.ts";
import { createHomeGateways, type HomeGatewayDependencies, type HomeGateways } from "./home-gateway.ts";
import { createOwnRuns, type OwnRuns } from "./own-runs.ts";
import type { SilenceDependencies } from "./silent-owners.ts";
import { createArrivalWatch } from "./watch-arrivals.ts";

/** After a coordination could not be gone on with. */
const RETRY_MS = 1_000;

export interface SharedLedgerDependencies extends SilenceDependencies, HomeGatewayDependencies {
  readonly owners: RunOwners;
  /** This process, by an id of `createGatewayOwnerId`. */
  readonly owner: RunOwner;
  /** Hears once that this process drives nothing more and why, which is to be reported: it is not logged here. */
  readonly onReplaced: (failure: CoordinationError) => void;
}

export interface SharedLedger {
  readonly ownRuns: OwnRuns;
  readonly homes: HomeGateways;
  /** Resolves when what is left of gateways that are gone has been looked at once. */
  start(work: SharedWork): Promise<void>;
  /** Nothing is taken over any more. Resolves when going on with a coordination that is under way is through. */
  stop(): Promise<void>;
  /** Tells the others that this process is not there any more. */
  leave(): Promise<void>;
}

/** The coordinator's work on coordinations that change hands. */
export interface SharedWork {
  /** Goes on with a coordination that another process drove before. It does not throw. */
  readonly adopt: (runId: CoordinationId) => Promise<void>;
  /** Ends what is done for a coordination that another process drives now. */
  readonly drop: (runId: CoordinationId) => void;
  /** Goes on behind what others appended to a coordination that is driven here. @throws CoordinationError */
  readonly follow: (runId: CoordinationId) => Promise<void>;
}

/**
 * Creates what a gateway needs to share its ledger with others: its own runs, and the home gateways of coordinations.
 * `start` begins the rounds that take runs over, and the watch over arrivals.
 */
export function createSharedLedger(
  dependencies: SharedLedgerDependencies & { readonly clock: Clock; readonly logger: Logger },
): SharedLedger {
  const { owners, owner, clock, logger } = dependencies;
  const ownRuns = createOwnRuns(dependencies);
  const homes = createHomeGateways(dependencies);
  let stopWork = (): Promise<void> => Promise.resolve();
  return {
    ownRuns,
    homes,
    start: async ({ adopt, drop, follow }) => {
      ownRuns.onLost((runId) => {
        ownRuns.remove(runId);
        homes.forget(runId);
        drop(runId);
      });
      const rounds = createGatewayRounds({ ...dependencies, ownRuns, homes, adopt });
      let isStopped = false;
      const hasStopped = (): boolean => isStopped;
      const wake = async (runId: CoordinationId): Promise<void> => {
        if (hasStopped()) return;
        try {
          const { id, token } = (await owners.ownersOf([runId])).get(runId) ?? {};
          const isGiven = id === owner.id && token !== undefined && token !== ownRuns.tokenOf(runId);
          if (isGiven) takeGiven(runId, token);
          else if (ownRuns.tokenOf(runId) !== undefined) await follow(runId);
        } catch (error) {
          if (hasStopped()) return;
          logger.warn({ runId }, `could not go on with the coordination: ${describeError(error)}`);
          clock.wakeAt(addMs(clock.now(), RETRY_MS), () => void wake(runId));
        }
      };
      let adopting = Promise.resolve();
      const takeGiven = (runId: CoordinationId, token: number): void => {
        // It may have been another one's for a while, and this process still believes in its earlier token.
        if (ownRuns.tokenOf(runId) !== undefined) ownRuns.lose(runId);
        ownRuns.add(runId, token);
        // A host may take its time: what reaches other coordinations does not wait for it.
        adopting = adopting.then(() => (hasStopped() ? undefined : adopt(runId)));
      };
      const arrivals = createArrivalWatch({ owners, owner, ownRuns, clock, logger, wake });
      stopWork = async () => {
        isStopped = true;
        arrivals.stop();
        await rounds.stop();
        await adopting;
      };
      // Requests are heard of also while the first round's coordinations are gone on with: hosts may take their time.
      arrivals.start();
      await rounds.start();
    },
    stop: () => stopWork(),
    leave: async () => {
      // A server that is away is no reason to wait: the others find out by themselves.
      await owners.remove(owner.id).catch(() => undefined);
    },
  };
}
