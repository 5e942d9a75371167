/**
 * Owns: how many spawns that models made themselves are open in this process, and who waits to make one. In memory only
 * and no truth: after a restart the open ones are found in the ledger and counted again.
 *
 * Who calls what, so that no place is kept for ever:
 * - the hook before a spawn calls `enter`. When it was admitted it calls `bind` as soon as the step is recorded, and
 *   `leave` of the entry in a `finally`, which does nothing once the entry is bound;
 * - whoever sees a step end, for whatever reason, or its result held, calls `leave` with its key. Keys that are not counted
 *   are ignored;
 * - recovery calls `occupy` for every open spawn of this gateway that it finds in the ledger;
 * - whoever finds that another process drives a coordination now calls `forgetRun`: nobody here may hear how its spawns end.
 *
 * G1 a key has one place at most, however often it is bound or occupied. G2 a key that was left does not come back, so a
 * step that ends while it is being bound or recovered keeps no place. Hence a key names one attempt: use its idempotency key.
 */
import { addMs, type CoordinationId, type SessionKey } from "../../contracts/ids.ts";
import { ruleOnSpawn, type SpawnLimits, type SpawnRuling } from "../../lanes/rule-on-spawn.ts";
import type { Clock } from "../../ports/clock.ts";

export type SpawnEntry =
  | {
      readonly kind: "admitted";
      /** From now on the place is given back by `leave` of the gate with this key. */
      bind(stepKey: string, runId: CoordinationId): void;
      /** Gives the place back, unless it is bound. */
      leave(): void;
    }
  | { readonly kind: "refused"; readonly reason: string };

export interface SpawnGate {
  /** Admits at once or when another spawn has left, and refuses after `delayMs` in words for the model. */
  enter(session: SessionKey): Promise<SpawnEntry>;
  /** Counts a spawn that is open already, also above the limits. */
  occupy(stepKey: string, place: SpawnPlace): void;
  leave(stepKey: string): void;
  /** Gives back all places of a coordination, whose spawns may be counted here again later. */
  forgetRun(runId: CoordinationId): void;
}

/** Whose spawn has a place. */
export interface SpawnPlace {
  readonly runId: CoordinationId;
  readonly session: SessionKey;
}

export interface SpawnGateDependencies {
  readonly clock: Clock;
  readonly limits: SpawnLimits;
  readonly delayMs?: number;
}

/** Time for waiting that the host's hook budget leaves over. */
const DELAY_MS = 2_000;
/** More are refused at once. */
const WAITING_MAX = 1_000;
/** For how many keys it is remembered that they were left; they are needed for the moment of being bound. */
const LEFT_KEYS_MAX = 1_000;

/** A spawn of a session that waits for a place, and the function that lets it in. */
interface WaitingSpawn {
  readonly session: SessionKey;
  readonly admit: () => void;
}

/** The collaborators and the memory of the gate for spawns. */
interface SpawnGateState extends Required<SpawnGateDependencies> {
  readonly open: Map<SessionKey, number>;
  openCount: number;
  /** By key: what its place counts for. */
  readonly bound: Map<string, SpawnPlace>;
  readonly left: Set<string>;
  /** In the order in which they came. */
  readonly waiters: Set<WaitingSpawn>;
}

/**
 * Creates the gate that bounds how many spawns are open at once, for all sessions and for each. `enter` waits at most
 * `delayMs` for a place, not at all where too many wait, and returns the refusal where it gets none.
 */
export function createSpawnGate({ clock, limits, delayMs = DELAY_MS }: SpawnGateDependencies): SpawnGate {
  const counts = { open: new Map<SessionKey, number>(), openCount: 0 };
  const keys = { bound: new Map<string, SpawnPlace>(), left: new Set<string>() };
  const gate: SpawnGateState = { clock, limits, delayMs, ...counts, ...keys, waiters: new Set() };
  return {
    enter: (session) =>
      new Promise((resolve) => {
        answerEntry(gate, session, resolve);
      }),
    occupy: (stepKey, place) => {
      takePlace(gate, place.session);
      bindPlace(gate, stepKey, place);
    },
    leave: (stepKey) => {
      rememberLeftKey(gate.left, stepKey);
      removePlaceOfKey(gate, stepKey);
    },
    forgetRun: (runId) => {
      for (const [stepKey, place] of gate.bound) if (place.runId === runId) removePlaceOfKey(gate, stepKey);
    },
  };
}

/**
 * Admits the session's spawn, refuses it, or lets it wait. Takes the place before it returns, so that no two spawns
 * are admitted to the same one.
 */
function answerEntry(gate: SpawnGateState, session: SessionKey, answer: (entry: SpawnEntry) => void): void {
  const mayWait = gate.delayMs > 0 && gate.waiters.size < WAITING_MAX;
  const ruling = ruleOnEntry(gate, session, mayWait);
  if (ruling.kind === "admitted") answer(admitToPlace(gate, session));
  else if (ruling.kind === "refused") answer(ruling);
  else waitForPlace(gate, session, answer);
}

function waitForPlace(gate: SpawnGateState, session: SessionKey, answer: (entry: SpawnEntry) => void): void {
  const waiter: WaitingSpawn = {
    session,
    admit: () => {
      gate.waiters.delete(waiter);
      cancel();
      answer(admitToPlace(gate, session));
    },
  };
  const cancel = gate.clock.wakeAt(addMs(gate.clock.now(), gate.delayMs), () => {
    gate.waiters.delete(waiter);
    const ruling = ruleOnEntry(gate, session, false);
    answer(ruling.kind === "refused" ? ruling : admitToPlace(gate, session));
  });
  gate.waiters.add(waiter);
}

function ruleOnEntry(
  { limits, openCount, open }: SpawnGateState,
  session: SessionKey,
  mayWait: boolean,
): SpawnRuling {
  return ruleOnSpawn(limits, { all: openCount, ofSession: open.get(session) ?? 0 }, mayWait);
}

function admitToPlace(gate: SpawnGateState, session: SessionKey): SpawnEntry {
  takePlace(gate, session);
  let isOurs = true;
  const handOverPlace = (to: () => void): void => {
    if (!isOurs) return;
    isOurs = false;
    to();
  };
  return {
    kind: "admitted",
    bind: (stepKey, runId) => handOverPlace(() => bindPlace(gate, stepKey, { runId, session })),
    leave: () => handOverPlace(() => passPlaceOn(gate, session)),
  };
}

/** Binds a place to the key of a step; one that the key must not have is given back (G1, G2). */
function bindPlace(gate: SpawnGateState, stepKey: string, place: SpawnPlace): void {
  if (gate.bound.has(stepKey) || gate.left.has(stepKey)) passPlaceOn(gate, place.session);
  else gate.bound.set(stepKey, place);
}

function removePlaceOfKey(gate: SpawnGateState, stepKey: string): void {
  const place = gate.bound.get(stepKey);
  if (!place) return;
  gate.bound.delete(stepKey);
  passPlaceOn(gate, place.session);
}

function takePlace(gate: SpawnGateState, session: SessionKey): void {
  gate.openCount += 1;
  gate.open.set(session, (gate.open.get(session) ?? 0) + 1);
}

/**
 * Takes a place from a session, and gives it to whoever waited longest and may go on. A session at its own limit holds
 * up no other.
 */
function passPlaceOn(gate: SpawnGateState, session: SessionKey): void {
  const ofSession = (gate.open.get(session) ?? 0) - 1;
  gate.openCount -= 1;
  if (ofSession > 0) gate.open.set(session, ofSession);
  else gate.open.delete(session);
  for (const waiter of gate.waiters)
    if (ruleOnEntry(gate, waiter.session, true).kind === "admitted") waiter.admit();
}

function rememberLeftKey(keys: Set<string>, key: string): void {
  keys.delete(key);
  keys.add(key);
  const [oldest] = keys;
  if (keys.size > LEFT_KEYS_MAX && oldest !== undefined) keys.delete(oldest);
}
