/**
 * Owns: which calls that were allowed have not ended yet. In memory only: who calls in this process waits for them, so that it
 * does not rule on a file that is being written.
 *
 * The host runs all hooks of one message before the first of its calls, so nobody ever waits for a call of its own session.
 */
import { covers } from "../contracts/resource-names.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";
import type { Participant } from "./participants.ts";

/** A call whose end the host never told is taken for ended after this. */
const UNDER_WAY_MS_MAX = 15 * 60_000;
const CALLS_MAX = 10_000;

export interface CallUnderWay {
  readonly callKey: string;
  readonly tool: string;
  readonly participant: Participant;
  readonly atMs: EpochMs;
  readonly mayTouchAnything: boolean;
  readonly changes: readonly ChangeUnderWay[];
}

export interface ChangeUnderWay {
  readonly resource: string;
  readonly token: number;
  /** What the resource was when the call was allowed. */
  readonly before: string;
  /** What will be in it, where that is known. */
  readonly text?: string;
}

export interface WritesUnderWay {
  begin(call: CallUnderWay): void;
  /** Takes the call, once. */
  take(callKey: string): CallUnderWay | undefined;
  /** From here on nobody waits for it. */
  end(call: CallUnderWay): void;
  /** A call of another session that changes the resource, what is above it or what is below it. */
  ofOthers(session: SessionKey, resource: string, now: EpochMs): CallUnderWay | undefined;
  /** The newest change of the resource by the session itself. */
  ofOwn(session: SessionKey, resource: string, now: EpochMs): ChangeUnderWay | undefined;
  /** Calls `run` once, when the next call ends or a claim does. Returns the cancellation. */
  onFree(run: () => void): () => void;
  /** Claims have ended: the calls under them may be over without the host having told it. */
  freed(tokens: readonly number[]): void;
}

export function createWritesUnderWay(): WritesUnderWay {
  const calls = new Map<string, CallUnderWay>();
  const taken = new Set<CallUnderWay>();
  /** Their end can still be recorded, but nobody waits for it. */
  const released = new Set<CallUnderWay>();
  const waiting = new Set<() => void>();
  const wake = (): void => {
    const runs = [...waiting];
    waiting.clear();
    for (const run of runs) run();
  };
  const live = (now: EpochMs): CallUnderWay[] =>
    [...calls.values(), ...taken].filter((call) => !released.has(call) && now < call.atMs + UNDER_WAY_MS_MAX);
  const forget = (call: CallUnderWay): void => {
    calls.delete(call.callKey);
    released.delete(call);
  };
  return {
    begin: (call) => {
      const before = calls.get(call.callKey);
      if (before) forget(before);
      calls.set(call.callKey, call);
      const [oldest] = calls.values();
      if (calls.size > CALLS_MAX && oldest) forget(oldest);
    },
    take: (callKey) => {
      const call = calls.get(callKey);
      if (!call) return undefined;
      calls.delete(callKey);
      taken.add(call);
      return call;
    },
    end: (call) => {
      taken.delete(call);
      released.delete(call);
      wake();
    },
    ofOthers: (session, resource, now) =>
      live(now).find(
        ({ participant, changes }) =>
          participant.session !== session &&
          changes.some((change) => covers(change.resource, resource) || covers(resource, change.resource)),
      ),
    ofOwn: (session, resource, now) =>
      live(now)
        .filter(({ participant }) => participant.session === session)
        .flatMap(({ changes }) => changes)
        .findLast((change) => change.resource === resource),
    onFree: (run) => {
      waiting.add(run);
      return () => waiting.delete(run);
    },
    freed: (tokens) => {
      if (tokens.length === 0) return;
      const ended = new Set(tokens);
      for (const call of calls.values())
        if (call.changes.some(({ token }) => ended.has(token))) released.add(call);
      wake();
    },
  };
}
