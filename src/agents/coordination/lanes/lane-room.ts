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

export function isFull({ waiting, queueMax, wasFull }: Backlog): boolean {
  const free = queueMax - waiting;
  return free < (wasFull ? Math.max(1, Math.ceil(queueMax / 2)) : 1);
}

export function computeLaneRoom(backlog: Backlog): number {
  return isFull(backlog) ? 0 : backlog.queueMax - backlog.waiting;
}
