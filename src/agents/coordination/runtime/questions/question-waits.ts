/**
 * Owns: what this process is telling sessions, in tool calls that wait for people and in turns, so that nothing is told in both.
 * In memory only.
 */
import { addMs, type CoordinationId, type EpochMs } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";

/** An answer that another process recorded is found by looking. */
const LOOK_MS = 2_000;
const LINGER_MS = 1_000;

export interface QuestionWaits {
  /** `then`: when it is free, a moment after the release. */
  claim(runId: CoordinationId, tellingId: string): { release(then: () => void): void };
  isClaimed(runId: CoordinationId, tellingId: string): boolean;
  /** From now until the end of the telling, the host may begin the turn at any time. */
  beginTelling(runId: CoordinationId, tellingId: string): void;
  endTelling(runId: CoordinationId, tellingId: string): void;
  /** Lists the ids of a coordination's tellings that are under way. */
  listTellings(runId: CoordinationId): string[];
  /** Something changed that may be waited for. */
  changed(): void;
  /** Resolves when the condition holds, the time is over or the signal aborts. */
  until(
    condition: () => Promise<boolean>,
    wait: { readonly untilMs: EpochMs; readonly signal?: AbortSignal },
  ): Promise<void>;
}

/**
 * Creates the memory of what this process is telling sessions: claims of tool calls that wait for an answer, and
 * tellings in turns. Its `until` looks at its condition after each change and every `LOOK_MS`.
 */
export function createQuestionWaits(clock: Clock): QuestionWaits {
  const claims = new Map<string, number>();
  const tellings = new Map<CoordinationId, Set<string>>();
  const waiting = new Set<() => void>();
  return {
    claim: (runId, tellingId) => {
      const key = `${runId}\n${tellingId}`;
      claims.set(key, (claims.get(key) ?? 0) + 1);
      return {
        // A call that waits looks again at once, and keeps the claim meanwhile.
        release: (then) => {
          clock.wakeAt(addMs(clock.now(), LINGER_MS), () => {
            const left = (claims.get(key) ?? 1) - 1;
            if (left > 0) claims.set(key, left);
            else claims.delete(key);
            then();
          });
        },
      };
    },
    isClaimed: (runId, tellingId) => claims.has(`${runId}\n${tellingId}`),
    beginTelling: (runId, tellingId) => {
      tellings.set(runId, (tellings.get(runId) ?? new Set()).add(tellingId));
    },
    endTelling: (runId, tellingId) => {
      tellings.get(runId)?.delete(tellingId);
      if (tellings.get(runId)?.size === 0) tellings.delete(runId);
    },
    listTellings: (runId) => [...(tellings.get(runId) ?? [])],
    changed: () => {
      for (const wake of [...waiting]) wake();
    },
    until: async (condition, { untilMs, signal }) => {
      while (!signal?.aborted && !(await condition()) && clock.now() < untilMs) {
        await new Promise<void>((resolve) => {
          const next = addMs(clock.now(), LOOK_MS);
          const wake = (): void => {
            cancel();
            waiting.delete(wake);
            signal?.removeEventListener("abort", wake);
            resolve();
          };
          const cancel = clock.wakeAt(next < untilMs ? next : untilMs, wake);
          waiting.add(wake);
          signal?.addEventListener("abort", wake, { once: true });
        });
      }
    },
  };
}
