/**
 * Owns: which calls that were allowed have not ended yet. In memory only: who calls in this process waits for them, so that it
 * does not rule on a file that is being written.
 *
 * The host runs all hooks of one message before the first of its calls, so nobody ever waits for a call of its own session.
 */
import { isClaimCovering } from "../../contracts/resource-names.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { EpochMs, SessionKey } from "../../contracts/ids.ts";
import { rememberNewest } from "../../std/remember-newest.ts";
import type { Participant } from "./participants.ts";
import type { TextPlace } from "./write-call.ts";

/** A call whose end the host never told is taken for ended after this. */
const UNDER_WAY_MS_MAX = 15 * 60_000;
const CALLS_MAX = 10_000;
/** Ends that came before their beginnings, as of a call that was cancelled while it waited. */
const MISSED_MAX = 1_000;
/** Sessions of which it is known when their last command ended. */
const COMMANDERS_MAX = 1_000;

export interface CallUnderWay {
  readonly callKey: string;
  readonly tool: string;
  readonly participant: Participant;
  readonly atMs: EpochMs;
  readonly mayTouchAnything: boolean;
  /** It has not begun: its changes are kept from others while people are asked about other files of the call. */
  readonly isReserved?: boolean;
  /** Where it works, where it may touch anything. */
  readonly folder?: string;
  /** Files that others held there when it was allowed. Absent: none. */
  readonly held?: readonly HeldFile[];
  /** When it was allowed, in the order of all that is seen, as `KnownVersions` counts. */
  readonly seenOrder: number;
  readonly changes: readonly ChangeUnderWay[];
  /** Resources that it looks at: its session knows them when the call has ended. */
  readonly looks: readonly ResourceLook[];
}

/** A file under somebody's claim, and what tells whether it was changed. */
export interface HeldFile {
  readonly claim: ClaimEntry;
  readonly stamp: string;
}

/** A version of a resource that a call shows to its session. */
export interface ResourceLook {
  readonly resource: string;
  readonly version: string;
  /** Where it begins; absent: with all of the text. */
  readonly from?: TextPlace;
  /** The version that its session itself made of that one before the call ended. */
  changedTo?: string;
}

export interface ChangeUnderWay {
  readonly resource: string;
  /** Absent where the call happens under no claim: people let it, and the ledger has none for it. */
  readonly token?: number;
  /** The version of the resource when the call was allowed. */
  readonly before: string;
  readonly replaces: boolean;
  /** The claim is released where the call fails: it acquired the claim, or who did so failed before it. */
  isNew: boolean;
  /** It is known how the change ended. */
  hasEnded?: boolean;
  /** The text that will be in it, where it is known. */
  readonly text?: string;
  /** The version that the session takes the file for afterwards, where others' changes are merged into its own. */
  readonly knownAs?: string;
}

/** How a call ended. */
export interface CallEnding {
  /** The tool failed, or was not run. */
  readonly hasFailed: boolean;
  /** The host did not run the tool, or not to its end. */
  readonly isNotRun?: boolean;
  /** Where a call that reads stopped; absent: it read to the end. */
  readonly readUpTo?: TextPlace;
}

interface ToldEnd extends CallEnding {
  readonly atMs: EpochMs;
}

export interface WritesUnderWay {
  /** Returns the end of a call that was told already: such a call does not begin, and nobody waits for it. */
  begin(call: CallUnderWay): CallEnding | undefined;
  /** Takes the call, once. The end of one that is not known yet is remembered. */
  take(callKey: string, end: ToldEnd): CallUnderWay | undefined;
  /** True when the end of a call was told before the call began. */
  hasEnded(callKey: string): boolean;
  /** Forgets an end that was told up to a time: it was that of an earlier call of the same name. */
  forgetEnd(callKey: string, untilMs: EpochMs): void;
  /** From here on nobody waits for it. */
  end(call: CallUnderWay): void;
  /**
   * Finds a call of another session that changes the resource, what is above it or what is below it. One that has begun comes before
   * one for which it is reserved.
   */
  ofOthers(session: SessionKey, resource: string, now: EpochMs): CallUnderWay | undefined;
  /** Finds a call of another session for which the resource, what is above it or what is below it is reserved. */
  findReservation(session: SessionKey, resource: string, now: EpochMs): CallUnderWay | undefined;
  /** Lists the changes of the resource by calls of the session itself that have begun, the newest last. */
  listOwn(session: SessionKey, resource: string, now: EpochMs): readonly ChangeUnderWay[];
  /**
   * A session changed a part of a version: who looks at that version in the same message sees the change, or what was changed.
   */
  noteForLooks(session: SessionKey, change: ChangeUnderWay, version: string): void;
  /** Lists the other sessions whose commands ran at the same time as a call, also where these have ended. */
  listCommandersBeside(call: CallUnderWay): readonly Participant[];
  /** Lists the changes under a claim whose end is not known yet, but for those of one call. */
  listChangesUnder(token: number, except?: CallUnderWay): readonly ChangeUnderWay[];
  /** Calls `run` once, when the next call ends or a claim does. Returns the cancellation. */
  onFree(run: () => void): () => void;
  /** Claims have ended: the calls under them may be over without the host having told it. */
  freed(tokens: readonly number[]): void;
}

/**
 * Returns an empty memory of the tool calls that were allowed and have not ended, by their keys; the oldest are
 * forgotten beyond a bound.
 */
export function createWritesUnderWay(): WritesUnderWay {
  const calls = new Map<string, CallUnderWay>();
  const takenCalls = new Set<CallUnderWay>();
  /** Their end can still be recorded, but nobody waits for it. */
  const released = new Set<CallUnderWay>();
  const waiting = createOneTimeListeners();
  const missed = createMissedEnds();
  const endedCommands = createEndedCommands();
  const listLiveCalls = (now: EpochMs): CallUnderWay[] =>
    [...calls.values(), ...takenCalls].filter((call) => !released.has(call) && isRecentCall(call, now));
  const forgetCall = (call: CallUnderWay): void => {
    calls.delete(call.callKey);
    released.delete(call);
  };
  return {
    begin: (call) => {
      const ending = missed.take(call.callKey);
      if (ending) return ending;
      const before = calls.get(call.callKey);
      if (before) forgetCall(before);
      calls.set(call.callKey, call);
      const [oldest] = calls.values();
      if (calls.size > CALLS_MAX && oldest) forgetCall(oldest);
      return undefined;
    },
    take: (callKey, end) => {
      const call = calls.get(callKey);
      if (!call) {
        missed.add(callKey, end);
        return undefined;
      }
      calls.delete(callKey);
      takenCalls.add(call);
      endedCommands.add(call, end.atMs);
      return call;
    },
    hasEnded: missed.has,
    forgetEnd: missed.forget,
    end: (call) => {
      takenCalls.delete(call);
      released.delete(call);
      waiting.call();
    },
    ofOthers: (session, resource, now) => findCallOfOthers(session, resource, listLiveCalls(now)),
    findReservation: (session, resource, now) =>
      listCallsOfOthers(session, resource, listLiveCalls(now)).find(({ isReserved }) => isReserved),
    listOwn: (session, resource, now) =>
      listChangesOfResource(listBegunCallsOfSession(session, listLiveCalls(now)), resource),
    noteForLooks: (session, change, version) =>
      noteChangeForLooks(listCallsOfSession(session, [...calls.values()]), change, version),
    listCommandersBeside: (call) => endedCommands.listCommandersBeside(call, [...calls.values()]),
    listChangesUnder: (token, except) =>
      listUnendedChangesUnder(new Set([...calls.values(), ...takenCalls]), token, except),
    onFree: waiting.add,
    freed: (tokens) => {
      if (tokens.length === 0) return;
      for (const call of listCallsUnderClaims([...calls.values()], tokens)) released.add(call);
      waiting.call();
    },
  };
}

/** Finds a call of another session that changes the resource; one that has begun before one that is reserved. */
function findCallOfOthers(
  session: SessionKey,
  resource: string,
  calls: readonly CallUnderWay[],
): CallUnderWay | undefined {
  const changing = listCallsOfOthers(session, resource, calls);
  return changing.find(({ isReserved }) => !isReserved) ?? changing[0];
}

function listCallsOfOthers(
  session: SessionKey,
  resource: string,
  calls: readonly CallUnderWay[],
): CallUnderWay[] {
  return calls.filter((call) => call.participant.session !== session && isChanging(call, resource));
}

function listBegunCallsOfSession(session: SessionKey, calls: readonly CallUnderWay[]): CallUnderWay[] {
  return listCallsOfSession(session, calls).filter(({ isReserved }) => !isReserved);
}

function isRecentCall({ atMs }: CallUnderWay, now: EpochMs): boolean {
  return now < atMs + UNDER_WAY_MS_MAX;
}

function listCallsUnderClaims(calls: readonly CallUnderWay[], tokens: readonly number[]): CallUnderWay[] {
  const wanted = new Set(tokens);
  return calls.filter(({ changes }) => changes.some(({ token }) => token !== undefined && wanted.has(token)));
}

function listChangesOfResource(calls: readonly CallUnderWay[], resource: string): ChangeUnderWay[] {
  return calls.flatMap(({ changes }) => changes).filter((change) => change.resource === resource);
}

/** Notes the version that a change left at the looks of calls at what it began from. */
function noteChangeForLooks(
  calls: readonly CallUnderWay[],
  { resource, before }: ChangeUnderWay,
  version: string,
): void {
  for (const look of calls.flatMap(({ looks }) => looks))
    if (look.resource === resource && look.version === before) look.changedTo = version;
}

function listCallsOfSession(session: SessionKey, calls: readonly CallUnderWay[]): CallUnderWay[] {
  return calls.filter(({ participant }) => participant.session === session);
}

/** True when the call changes the resource, what is above it or what is below it. */
function isChanging({ changes }: CallUnderWay, resource: string): boolean {
  return changes.some(
    (change) => isClaimCovering(change.resource, resource) || isClaimCovering(resource, change.resource),
  );
}

function listUnendedChangesUnder(
  calls: ReadonlySet<CallUnderWay>,
  token: number,
  except: CallUnderWay | undefined,
): ChangeUnderWay[] {
  const others = [...calls].filter((call) => call !== except);
  return others.flatMap(({ changes }) =>
    changes.filter((change) => change.token === token && !change.hasEnded),
  );
}

/** Creates a set of listeners that the next `call` calls and forgets; `add` returns how one is removed. */
function createOneTimeListeners(): {
  readonly add: (run: () => void) => () => void;
  readonly call: () => void;
} {
  const waiting = new Set<() => void>();
  return {
    add: (run) => {
      waiting.add(run);
      return () => waiting.delete(run);
    },
    call: () => {
      const runs = [...waiting];
      waiting.clear();
      for (const run of runs) run();
    },
  };
}

interface MissedEnds {
  readonly add: (callKey: string, end: ToldEnd) => void;
  readonly take: (callKey: string) => CallEnding | undefined;
  readonly has: WritesUnderWay["hasEnded"];
  readonly forget: WritesUnderWay["forgetEnd"];
}

/** Creates the memory of the ends of calls that were told before the calls began. */
function createMissedEnds(): MissedEnds {
  const ends = new Map<string, ToldEnd>();
  return {
    add: (callKey, end) => rememberNewest(ends, callKey, end, MISSED_MAX),
    take: (callKey) => {
      const end = ends.get(callKey);
      ends.delete(callKey);
      return end;
    },
    has: (callKey) => ends.has(callKey),
    forget: (callKey, untilMs) => {
      const end = ends.get(callKey);
      if (end && end.atMs <= untilMs) ends.delete(callKey);
    },
  };
}

interface EndedCommands {
  readonly add: (call: CallUnderWay, atMs: EpochMs) => void;
  /** `underWay`: calls that have not ended. */
  readonly listCommandersBeside: (
    call: CallUnderWay,
    underWay: readonly CallUnderWay[],
  ) => readonly Participant[];
}

/** Creates the memory of the last command of each session: an earlier one beside a call tells nothing more. */
function createEndedCommands(): EndedCommands {
  const lastCommands = new Map<
    SessionKey,
    { readonly participant: Participant; readonly endedAtMs: EpochMs }
  >();
  return {
    add: ({ participant, mayTouchAnything }, endedAtMs) => {
      if (mayTouchAnything)
        rememberNewest(lastCommands, participant.session, { participant, endedAtMs }, COMMANDERS_MAX);
    },
    listCommandersBeside: ({ participant: { session }, atMs }, underWay) => {
      const running = underWay.filter(
        (other) => other.mayTouchAnything && atMs < other.atMs + UNDER_WAY_MS_MAX,
      );
      const ended = [...lastCommands.values()].filter(({ endedAtMs }) => endedAtMs >= atMs);
      const commanders = new Map(
        [...running, ...ended].map(({ participant }) => [participant.session, participant]),
      );
      commanders.delete(session);
      return [...commanders.values()];
    },
  };
}
