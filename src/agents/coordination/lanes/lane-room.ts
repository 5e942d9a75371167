/**
 * Owns: how many more requests a lane takes.
 *
 * N3 a lane that was full has no room until half of its queue is free, so that whoever feeds it does so in batches and
 *    not once for every place.
 */

export interface Backlog {
  readonly waiting: number;
  readonly queueMax: number;
  /** It was full and has had no room since. */
  readonly wasFull: boolean;
}

/**
 * True when a lane takes no more requests into its queue: the queue is full, or was and is not half free again (N3).
 */
export function isLaneFull({ waiting, queueMax, wasFull }: Backlog): boolean {
  const free = queueMax - waiting;
  return free < (wasFull ? Math.max(1, Math.ceil(queueMax / 2)) : 1);
}

/** Returns how many more requests fit into the queue of a lane; 0 while it counts as full, although some would fit. */
export function computeLaneRoom(backlog: Backlog): number {
  return isLaneFull(backlog) ? 0 : backlog.queueMax - backlog.waiting;
}
