/**
 * Owns: the open streams of the process. One timer keeps them all alive, however many there are; without streams there is
 * none.
 *
 * H1 A stream whose client reads nothing for long is dropped: it resumes by `Last-Event-ID`.
 */
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

export interface OpenStream {
  /** Sends a comment. `false`: the client has not read what it was sent before. */
  keepAlive(): boolean;
  /** Keep-alives in a row that were not sent. */
  unread: number;
  /** Ends it, cleanly where `clean`. */
  end(clean: boolean): void;
}

export interface StreamHub {
  readonly size: number;
  readonly isFull: boolean;
  add(stream: OpenStream): void;
  remove(stream: OpenStream): void;
  /** Ends all of them; clients resume elsewhere. */
  close(): void;
}

/**
 * Creates the set of the open event streams, which regularly sends each a sign of life; it only says whether there are
 * `streamsMax`, and refuses none.
 */
export function createStreamHub(clock: Clock, streamsMax: number = HTTP_BOUNDS.streamsMax): StreamHub {
  const streams = new Set<OpenStream>();
  let cancel: (() => void) | undefined;
  const arm = (): void => {
    cancel ??= clock.wakeAt(addMs(clock.now(), HTTP_BOUNDS.keepAliveMs), keepAllAlive);
  };
  const keepAllAlive = (): void => {
    cancel = undefined;
    for (const stream of streams) keepStreamAlive(stream);
    if (streams.size > 0) arm();
  };
  return {
    get size() {
      return streams.size;
    },
    get isFull() {
      return streams.size >= streamsMax;
    },
    add: (stream) => {
      streams.add(stream);
      arm();
    },
    remove: (stream) => {
      streams.delete(stream);
      if (streams.size > 0) return;
      cancel?.();
      cancel = undefined;
    },
    close: () => {
      for (const stream of [...streams]) stream.end(true);
    },
  };
}

/** Sends a keep-alive; ends the stream where its client has left too many in a row unread. */
function keepStreamAlive(stream: OpenStream): void {
  stream.unread = stream.keepAlive() ? 0 : stream.unread + 1;
  if (stream.unread > HTTP_BOUNDS.unreadKeepAlivesMax) stream.end(false);
}
