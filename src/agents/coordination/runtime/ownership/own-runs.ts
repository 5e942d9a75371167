/**
 * Owns: which runs this process drives, with the tokens by which it may write to them, and whether it may still believe so.
 *
 * O5 A process that did not tell of itself for as long as its lease, because it was paused or cut off, does nothing for a run
 * until the ledger has told which runs are still its own.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import type { SteadyClock } from "../../ports/clock.ts";
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
}

/** The token of a run that its owner began. */
export const FIRST_TOKEN = 1;

/** Runs listed in one go. */
const PAGE = 1_000;

export interface OwnRunsDependencies {
  readonly owners: RunOwners;
  /** This process, as the ledger knows it. */
  readonly owner: RunOwner;
  readonly steady: SteadyClock;
  /** How long this process may be silent until others take over its runs. */
  readonly leaseMs: number;
}

interface Ownership extends OwnRunsDependencies {
  readonly tokens: Map<CoordinationId, number>;
  readonly children: Set<CoordinationId>;
  readonly beginning: Set<CoordinationId>;
  readonly listeners: ((runId: CoordinationId) => void)[];
  /** By the steady clock, before the last beat was sent. Absent: nobody knows it as an owner yet. */
  beatAtMs?: number;
  confirming?: Promise<void>;
}

export function createOwnRuns(dependencies: OwnRunsDependencies): OwnRuns {
  const ownership: Ownership = {
    ...dependencies,
    tokens: new Map(),
    children: new Set(),
    beginning: new Set(),
    listeners: [],
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
    beat: () => (isSure(ownership) ? sendBeat(ownership) : confirm(ownership)),
    confirm: async () => {
      if (!isSure(ownership)) await confirm(ownership);
    },
    lose: (runId) => {
      tellLost(ownership, runId);
    },
    listUnknown: async () => {
      const owned = await listOwned(ownership);
      return owned.filter(({ runId, token }) => ownership.tokens.get(runId) !== token);
    },
    onLost: (listener) => ownership.listeners.push(listener),
  };
}

function isSure({ beatAtMs, steady, leaseMs }: Ownership): boolean {
  return beatAtMs === undefined || steady.elapsedMs() - beatAtMs < leaseMs;
}

async function sendBeat(ownership: Ownership): Promise<void> {
  const sentAtMs = ownership.steady.elapsedMs();
  await ownership.owners.beat(ownership.owner);
  ownership.beatAtMs = sentAtMs;
}

function confirm(ownership: Ownership): Promise<void> {
  ownership.confirming ??= findLost(ownership).finally(() => {
    delete ownership.confirming;
  });
  return ownership.confirming;
}

/** First it tells of itself, so that nobody takes over what it finds to be its own. */
async function findLost(ownership: Ownership): Promise<void> {
  const believed = new Map(ownership.tokens);
  const beginning = new Set(ownership.beginning);
  const sentAtMs = ownership.steady.elapsedMs();
  await ownership.owners.beat(ownership.owner);
  const owned = new Map((await listOwned(ownership)).map(({ runId, token }) => [runId, token]));
  for (const [runId, token] of believed) {
    const isCertain = owned.get(runId) === token || ownership.tokens.get(runId) !== token;
    if (isCertain || beginning.has(runId)) continue;
    tellLost(ownership, runId);
  }
  ownership.beatAtMs = sentAtMs;
}

function tellLost({ listeners }: Ownership, runId: CoordinationId): void {
  for (const listener of listeners) listener(runId);
}

async function listOwned({ owners, owner }: Ownership): Promise<readonly OwnedRun[]> {
  const owned: OwnedRun[] = [];
  let page: readonly OwnedRun[];
  do {
    const after = owned.at(-1);
    page = await owners.list(owner.id, { limit: PAGE, ...(after && { after }) });
    owned.push(...page);
  } while (page.length === PAGE);
  return owned;
}

export function createLostError(runId: CoordinationId): CoordinationError {
  return new CoordinationError("NOT_OWNER", `another process drives ${runId} now`);
}
