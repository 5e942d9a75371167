/**
 * Owns: which runs this process drives, with the tokens by which it may write to them, and whether it may still believe so.
 *
 * O5 A process that did not tell of itself for as long as its lease, because it was paused or cut off, does nothing for a run
 * until the ledger has told which runs are still its own.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId, EpochMs } from "../../contracts/ids.ts";
import type { Clock, SteadyClock } from "../../ports/clock.ts";
import type { OwnedRun, RunOwner, RunOwners } from "../../ports/run-owners.ts";

export interface OwnRuns {
  /** `undefined` for a run that another process drives, or nobody, and for one that has ended. */
  tokenOf(runId: CoordinationId): number | undefined;
  /** `isBeginning`: the append that makes it its own is still to come. */
  add(
    runId: CoordinationId,
    token: number,
    more?: { readonly isChild?: boolean; readonly isBeginning?: boolean },
  ): void;
  /** Notes that the append which was to begin a run has been tried. */
  settle(runId: CoordinationId): void;
  remove(runId: CoordinationId): void;
  /** Lists the runs that this process believes to drive. */
  ids(): readonly CoordinationId[];
  /** The runs that other runs of this ledger began. */
  children(): readonly CoordinationId[];
  /** Tells the others that this process is there. */
  beat(): Promise<void>;
  /** Resolves when it is sure which runs are its own; those that are not any more are lost by then. */
  confirm(): Promise<void>;
  /** Tells the listeners that a run turned out to be another one's. */
  lose(runId: CoordinationId): void;
  /** Lists the runs that are its own by the ledger, and that it does not know as such. @throws CoordinationError */
  listUnknown(): Promise<readonly OwnedRun[]>;
  /** Hears of each run that turned out to be another one's. */
  onLost(listener: (runId: CoordinationId) => void): void;
  /** Hears for how long this process did not tell of itself, where that was longer than its lease. Lost runs come first. */
  onSilence(listener: (silentMs: number) => void): void;
}

/** The token of a run that its owner began. */
export const FIRST_TOKEN = 1;

/** Runs listed in one go. */
const PAGE = 1_000;

export interface OwnRunsDependencies {
  readonly owners: RunOwners;
  /** This process, as the ledger knows it. */
  readonly owner: RunOwner;
  readonly clock: Pick<Clock, "now">;
  readonly steady: SteadyClock;
  /** How long this process may be silent until others take over its runs. */
  readonly leaseMs: number;
}

interface Ownership extends OwnRunsDependencies {
  readonly tokens: Map<CoordinationId, number>;
  readonly children: Set<CoordinationId>;
  readonly beginning: Set<CoordinationId>;
  readonly listeners: ((runId: CoordinationId) => void)[];
  readonly silenceListeners: ((silentMs: number) => void)[];
  /** Before the last beat was sent. Absent: nobody knows it as an owner yet. */
  lastBeat?: BeatTime;
  confirming?: Promise<void>;
}

/** A moment, by the clock of the day and by the steady clock. */
interface BeatTime {
  readonly atMs: EpochMs;
  readonly elapsedMs: number;
}

/**
 * Creates the list of the runs that this process drives, with the tokens by which it may write to them. It confirms
 * them in the ledger after a pause, and tells listeners of those that were lost.
 */
export function createOwnRuns(dependencies: OwnRunsDependencies): OwnRuns {
  const ownership: Ownership = {
    ...dependencies,
    tokens: new Map(),
    children: new Set(),
    beginning: new Set(),
    listeners: [],
    silenceListeners: [],
  };
  return {
    tokenOf: (runId) => ownership.tokens.get(runId),
    add: (runId, token, { isChild = false, isBeginning = false } = {}) => {
      ownership.tokens.set(runId, token);
      if (isChild) ownership.children.add(runId);
      if (isBeginning) ownership.beginning.add(runId);
    },
    settle: (runId) => {
      ownership.beginning.delete(runId);
    },
    remove: (runId) => {
      ownership.tokens.delete(runId);
      ownership.beginning.delete(runId);
      ownership.children.delete(runId);
    },
    ids: () => [...ownership.tokens.keys()],
    children: () => [...ownership.children],
    beat: () => (isOwnershipSure(ownership) ? sendBeat(ownership) : confirmOwnRuns(ownership)),
    confirm: async () => {
      if (!isOwnershipSure(ownership)) await confirmOwnRuns(ownership);
    },
    lose: (runId) => {
      tellLostListeners(ownership, runId);
    },
    listUnknown: async () => {
      const owned = await listOwnedInLedger(ownership);
      return owned.filter(({ runId, token }) => ownership.tokens.get(runId) !== token);
    },
    onLost: (listener) => ownership.listeners.push(listener),
    onSilence: (listener) => ownership.silenceListeners.push(listener),
  };
}

/** True for a lease after the last beat; before the first beat there is nothing to lose. */
function isOwnershipSure(ownership: Ownership): boolean {
  const { lastBeat, leaseMs } = ownership;
  return lastBeat === undefined || measureSilence(ownership, lastBeat) < leaseMs;
}

/**
 * Returns how long this process did not tell of itself. A steady clock may stand still while its machine sleeps, and
 * the clock of the day may be put back: what the one of them that got further says counts.
 */
function measureSilence({ clock, steady }: Ownership, { atMs, elapsedMs }: BeatTime): number {
  return Math.max(clock.now() - atMs, steady.elapsedMs() - elapsedMs);
}

function readBeatTime({ clock, steady }: Ownership): BeatTime {
  return { atMs: clock.now(), elapsedMs: steady.elapsedMs() };
}

async function sendBeat(ownership: Ownership): Promise<void> {
  const beat = readBeatTime(ownership);
  await ownership.owners.beat(ownership.owner);
  ownership.lastBeat = beat;
}

/** Finds out which runs are still its own. All who ask while that is under way wait for the same answer. */
function confirmOwnRuns(ownership: Ownership): Promise<void> {
  ownership.confirming ??= reportLostRuns(ownership).finally(() => {
    delete ownership.confirming;
  });
  return ownership.confirming;
}

/**
 * Tells the listeners of each run that the ledger does not have as its own any more, and of its silence. First it
 * tells of itself, so that nobody takes over what it finds to be its own.
 */
async function reportLostRuns(ownership: Ownership): Promise<void> {
  const believed = new Map(ownership.tokens);
  const beginning = new Set(ownership.beginning);
  const beat = readBeatTime(ownership);
  await ownership.owners.beat(ownership.owner);
  const owned = new Map((await listOwnedInLedger(ownership)).map(({ runId, token }) => [runId, token]));
  for (const [runId, token] of believed) {
    const isCertain = owned.get(runId) === token || ownership.tokens.get(runId) !== token;
    if (isCertain || beginning.has(runId)) continue;
    tellLostListeners(ownership, runId);
  }
  const silentMs = measureSilence(ownership, ownership.lastBeat ?? beat);
  ownership.lastBeat = beat;
  for (const listener of ownership.silenceListeners) listener(silentMs);
}

function tellLostListeners({ listeners }: Ownership, runId: CoordinationId): void {
  for (const listener of listeners) listener(runId);
}

async function listOwnedInLedger({ owners, owner }: Ownership): Promise<readonly OwnedRun[]> {
  const owned: OwnedRun[] = [];
  let page: readonly OwnedRun[];
  do {
    const after = owned.at(-1);
    page = await owners.list(owner.id, { limit: PAGE, ...(after && { after }) });
    owned.push(...page);
  } while (page.length === PAGE);
  return owned;
}

/** Creates the error `NOT_OWNER` of a run that another process drives now. */
export function createLostRunError(runId: CoordinationId): CoordinationError {
  return new CoordinationError("NOT_OWNER", `another process drives ${runId} now`);
}
