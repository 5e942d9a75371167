/**
 * Owns: which messages came already. Bounded: where there are too many, the oldest is forgotten, and what it answered is
 * closed by then.
 */
export interface SeenIds {
  has(id: string): boolean;
  /** Until the message would be refused for its age. */
  keep(id: string, untilMs: number): void;
  forget(id: string): void;
}

const IDS_MAX = 10_000;

/**
 * Creates the memory of the ids of accepted messages. It keeps an id even after its time until it is full: then it
 * forgets all expired ids or, if none is expired, the oldest one.
 */
export function createSeenIds(now: () => number, idsMax = IDS_MAX): SeenIds {
  const untilMsOf = new Map<string, number>();
  const makeRoom = (): void => {
    if (untilMsOf.size < idsMax) return;
    const nowMs = now();
    for (const [id, untilMs] of untilMsOf) if (untilMs < nowMs) untilMsOf.delete(id);
    const [oldest] = untilMsOf.keys();
    if (untilMsOf.size >= idsMax && oldest !== undefined) untilMsOf.delete(oldest);
  };
  return {
    has: (id) => untilMsOf.has(id),
    keep: (id, untilMs) => {
      makeRoom();
      untilMsOf.set(id, untilMs);
    },
    forget: (id) => void untilMsOf.delete(id),
  };
}
