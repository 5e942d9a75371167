/**
 * Owns: what this process remembers of the providers that its sessions call: their lanes, who calls which, and the calls that wait
 * for their turn. Does not own: the rules (`lanes/provider-lane.ts`).
 *
 * W1 a call waits no longer than its hook may; then it goes on. W2 a session has one turn at most: tool calls that its
 * model made together lead to one model call. W3 turns are given in the order in which they were asked for.
 */
import { addMs, type AgentId, type EpochMs, type SessionKey } from "../../contracts/ids.ts";
import {
  canBeginStep,
  canHoldBack,
  computeCallsPerSecond,
  createProviderLane,
  findNextCallTime,
  recordCallAnswer,
  recordCallBeginning,
  recordCallRefusal,
  type ProviderLane,
  type ProviderRules,
} from "../../lanes/provider-lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ProviderCall, ProviderLanes } from "../../ports/provider-use.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

/** More than anybody has. Calls of further ones are not held back. */
const PROVIDERS_MAX = 64;
/** Sessions whose newest call is remembered, and agents whose provider is. */
const NAMES_MAX = 1_000;
/** A call that was let go on and has not begun by then is not waited for: its tool takes long. */
const RELEASED_MS_MAX = 2_000;
/** A call that was not held back was on its way for about this time when it began. */
const UNHELD_MS = 500;

export interface ProviderLanesDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly rules: ProviderRules & { readonly callDelayMs: number };
  /** At least 0 and less than 1. */
  readonly drawFraction: () => number;
}

interface NewestCall {
  readonly provider: string;
  readonly begunAtMs: EpochMs;
  readonly letGoAtMs: EpochMs;
}

/** A turn of a session whose next model call waits, and the function that lets it go on. */
interface WaitingTurn {
  readonly session: SessionKey;
  readonly goOn: () => void;
}

/** One provider: its lane, and who waits for it. */
interface ProviderQueue {
  readonly provider: string;
  lane: ProviderLane;
  readonly turns: WaitingTurn[];
  /** Sessions whose next call was let go on and has not begun, with the time of that. */
  readonly released: Map<SessionKey, EpochMs>;
  /** True when steps could not begin as of the last look at it. */
  isHoldingBack: boolean;
  cancelWake: () => void;
}

/** The collaborators and the memory of the lanes of all providers. */
interface ProviderLanesState extends ProviderLanesDependencies {
  readonly entries: Map<string, ProviderQueue>;
  readonly calls: Map<SessionKey, NewestCall>;
  readonly agents: Map<AgentId, string>;
  readonly listeners: Set<() => void>;
  version: number;
  isStopped: boolean;
}

/**
 * Creates the lanes in which the model calls of this process's sessions wait, one for each of the first
 * `PROVIDERS_MAX` providers; calls of others never wait. It also tells of which agents steps are held back.
 */
export function createProviderLanes(dependencies: ProviderLanesDependencies): ProviderLanes {
  const providers: ProviderLanesState = {
    ...dependencies,
    entries: new Map(),
    calls: new Map(),
    agents: new Map(),
    listeners: new Set(),
    version: 0,
    isStopped: false,
  };
  return {
    canBeginStep: (agentId) => canAgentBegin(providers, agentId),
    heldBackAgents: () => findHeldBackAgents(providers),
    version: () => providers.version,
    onChange: (listener) => {
      const notify = (): void => listener();
      providers.listeners.add(notify);
      return () => providers.listeners.delete(notify);
    },
    callBegan: (call) => recordCallBegun(providers, call),
    callAnswered: (session) => recordCallAnswered(providers, session),
    callRefused: (call, retryAfterMs) => recordCallRefused(providers, call, retryAfterMs),
    takeTurn: (session, nextProvider) => takeTurn(providers, session, nextProvider),
    stop: () => stopLanes(providers),
  };
}

/** Lets all waiting calls go on, and holds back none after them. */
function stopLanes(providers: ProviderLanesState): void {
  providers.isStopped = true;
  providers.listeners.clear();
  for (const { turns, cancelWake } of providers.entries.values()) {
    cancelWake();
    for (const turn of turns.splice(0)) turn.goOn();
  }
}

/** True where the agent's provider is open for another step, or is not known. */
function canAgentBegin({ agents, entries, clock }: ProviderLanesState, agentId: AgentId): boolean {
  const entry = entries.get(agents.get(agentId) ?? "");
  return !entry || canTakeStep(entry, clock.now());
}

function canTakeStep({ lane, turns }: ProviderQueue, now: EpochMs): boolean {
  return canBeginStep(lane, { waitingCalls: turns.length, now });
}

function findHeldBackAgents(providers: ProviderLanesState): ReadonlySet<AgentId> {
  const { agents, entries, clock } = providers;
  const now = clock.now();
  // Mostly no provider holds anything back, and then this is asked at every look at a plan.
  if ([...entries.values()].every((entry) => canTakeStep(entry, now))) return new Set();
  return new Set([...agents.keys()].filter((agentId) => !canAgentBegin(providers, agentId)));
}

const AGENT_OF_SESSION = /^agent:([^:]+):/u;

/** Records that a session's call of its provider has begun, and by that which provider its agent has. */
function recordCallBegun(providers: ProviderLanesState, { provider, session }: ProviderCall): void {
  const { calls, clock } = providers;
  const entry = findOrAddProvider(providers, provider);
  if (!entry) return;
  const now = clock.now();
  const releasedAtMs = entry.released.get(session);
  const letGoAtMs = releasedAtMs ?? addMs(now, -UNHELD_MS);
  rememberNewest(calls, session, { provider, begunAtMs: now, letGoAtMs }, NAMES_MAX);
  entry.lane = recordCallBeginning(entry.lane, now, releasedAtMs);
  entry.released.delete(session);
  if (entry.turns.length > 0) giveTurns(providers, entry);
  const agent = AGENT_OF_SESSION.exec(session)?.[1] as AgentId | undefined;
  if (agent !== undefined) noteAgentProvider(providers, agent, provider);
}

/**
 * Remembers the provider of an agent, and tells the listeners where the agent's steps may begin since then, or may no
 * longer.
 */
function noteAgentProvider(providers: ProviderLanesState, agent: AgentId, provider: string): void {
  const { agents } = providers;
  const hasMoved = agents.get(agent) !== provider;
  const couldBegin = canAgentBegin(providers, agent);
  rememberNewest(agents, agent, provider, NAMES_MAX);
  if (!hasMoved) return;
  providers.version += 1;
  if (canAgentBegin(providers, agent) !== couldBegin) tellListeners(providers);
}

/** Returns the provider's lane and turns; `undefined` for a new one where there are too many. */
function findOrAddProvider({ entries }: ProviderLanesState, provider: string): ProviderQueue | undefined {
  const existing = entries.get(provider);
  if (existing || entries.size >= PROVIDERS_MAX) return existing;
  const entry: ProviderQueue = {
    provider,
    lane: createProviderLane(),
    turns: [],
    released: new Map(),
    isHoldingBack: false,
    cancelWake: () => undefined,
  };
  entries.set(provider, entry);
  return entry;
}

function recordCallAnswered({ calls, entries }: ProviderLanesState, session: SessionKey): void {
  const call = calls.get(session);
  const entry = call && entries.get(call.provider);
  if (entry) entry.lane = recordCallAnswer(entry.lane, call.letGoAtMs);
}

/** Records that the provider refused a session's call, so that further calls are held back. */
function recordCallRefused(
  providers: ProviderLanesState,
  { provider, session }: ProviderCall,
  retryAfterMs: number | undefined,
): void {
  const { calls, clock, logger, rules, drawFraction } = providers;
  const entry = findOrAddProvider(providers, provider);
  if (!entry) return;
  const now = clock.now();
  const { begunAtMs, letGoAtMs } = calls.get(session) ?? { begunAtMs: now, letGoAtMs: now };
  const call = { begunAtMs, letGoAtMs, retryAfterMs, fraction: drawFraction() };
  entry.lane = recordCallRefusal(entry.lane, call, { now, rules });
  const callsPerSecond = Math.round(computeCallsPerSecond(entry.lane, now) * 100) / 100;
  const closedMs = Math.max(0, entry.lane.closedUntilMs - now);
  logger.warn({ provider, callsPerSecond, closedMs }, "a provider refuses calls: further ones are held back");
  giveTurns(providers, entry);
}

/**
 * Resolves when the session's next call may go on, at its turn or once it has waited for `callDelayMs`; `undefined`
 * where it may go on at once.
 */
function takeTurn(
  providers: ProviderLanesState,
  session: SessionKey,
  nextProvider: string | undefined,
): Promise<void> | undefined {
  const { calls, entries, clock, rules, isStopped } = providers;
  const entry = entries.get(nextProvider ?? calls.get(session)?.provider ?? "");
  if (!entry || isStopped || !canHoldBack(entry.lane, clock.now()) || hasTurn(entry, session))
    return undefined;
  return new Promise((resolve) => {
    const goOn = (): void => {
      cancel();
      resolve();
    };
    const turn: WaitingTurn = { session, goOn };
    const giveUp = (): void => {
      entry.turns.splice(entry.turns.indexOf(turn), 1);
      releaseTurn(providers, entry, turn);
      giveTurns(providers, entry);
    };
    const cancel = clock.wakeAt(addMs(clock.now(), rules.callDelayMs), giveUp);
    entry.turns.push(turn);
    giveTurns(providers, entry);
  });
}

/** True where a call of the session waits, or was let go on and has not begun (W2). */
function hasTurn({ turns, released }: ProviderQueue, session: SessionKey): boolean {
  return released.has(session) || turns.some((turn) => turn.session === session);
}

function releaseTurn({ clock }: ProviderLanesState, entry: ProviderQueue, turn: WaitingTurn): void {
  entry.released.set(turn.session, clock.now());
  turn.goOn();
}

/**
 * Lets the calls go on whose time has come, in their order (W3), and wakes again for the next one or when the provider
 * opens. Tells the listeners where steps may begin now, or no longer.
 */
function giveTurns(providers: ProviderLanesState, entry: ProviderQueue): void {
  const { clock } = providers;
  const now = clock.now();
  for (const [session, atMs] of entry.released)
    if (now - atMs >= RELEASED_MS_MAX) entry.released.delete(session);
  let nextAtMs = findNextTurnTime(entry, now);
  for (let turn = entry.turns[0]; turn && nextAtMs <= now; turn = entry.turns[0]) {
    entry.turns.shift();
    releaseTurn(providers, entry, turn);
    nextAtMs = findNextTurnTime(entry, now);
  }
  entry.cancelWake();
  const { closedUntilMs } = entry.lane;
  // A step needs the provider to be open, and no place among its calls.
  const isClosed = now < closedUntilMs;
  if (isClosed || entry.turns.length > 0)
    entry.cancelWake = clock.wakeAt(isClosed ? closedUntilMs : nextAtMs, () => giveTurns(providers, entry));
  const wasHoldingBack = entry.isHoldingBack;
  entry.isHoldingBack = !canTakeStep(entry, now);
  // Counted also where nothing seems changed: it may have been open for a moment in between.
  providers.version += 1;
  if (entry.isHoldingBack !== wasHoldingBack) tellListeners(providers);
}

function tellListeners({ listeners }: ProviderLanesState): void {
  for (const listener of listeners) listener();
}

function findNextTurnTime({ lane, released }: ProviderQueue, now: EpochMs): EpochMs {
  return findNextCallTime(lane, { released: released.size, now });
}
