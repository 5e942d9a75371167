/** Owns: one client's stream of changes: its events, its resuming, its end when the session or the server ends. */
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { LiveBeat, LiveChange, LiveEnd, LiveHello, LiveLost } from "../contract/live.ts";
import type { ChangeBatch, LiveChanges } from "./live-changes.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageSession, PageSessions } from "./page-sessions.ts";

interface LiveDependencies {
  readonly live: LiveChanges;
  readonly clock: Clock;
  readonly sessions: PageSessions;
}

/** The open streams of a server, by what ends each. */
export type OpenStreams = Set<(because: LiveEnd["because"]) => void>;

interface StreamEvents {
  hello: LiveHello;
  change: LiveChange;
  beat: LiveBeat;
  lost: LiveLost;
  end: LiveEnd;
}

/**
 * Creates one client's stream of server-sent events, which tells what is appended to the ledger after a position, or
 * from now on; it ends where the client reads too slowly or its session is over.
 */
export function createLiveStream(
  dependencies: LiveDependencies,
  session: PageSession,
  { after, streams }: { readonly after: number | undefined; readonly streams: OpenStreams },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let close: (because: LiveEnd["because"] | undefined) => void = () => undefined;
  return new ReadableStream<Uint8Array>(
    {
      start: async (controller) => {
        let isOver = false;
        const endings: (() => void)[] = [];
        const send = <N extends keyof StreamEvents>(name: N, data: StreamEvents[N], id?: number): void => {
          if (isOver) return;
          const idLine = id === undefined ? "" : `id: ${id}\n`;
          controller.enqueue(encoder.encode(`event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`));
          if ((controller.desiredSize ?? 0) < -PAGE_BOUNDS.unreadBytesMax) close(undefined);
        };
        close = (because) => {
          if (isOver) return;
          if (because) send("end", { because });
          isOver = true;
          session.streams -= 1;
          streams.delete(close);
          for (const end of endings) end();
          try {
            controller.close();
          } catch {
            // The client is gone already.
          }
        };
        session.streams += 1;
        streams.add(close);
        endings.push(
          startHeartbeat(dependencies, session, {
            send: () => send("beat", { nowMs: dependencies.clock.now() }),
            close,
          }),
        );
        try {
          const stop = await sendChanges(dependencies, after, send);
          if (streams.has(close)) endings.push(stop);
          else stop();
        } catch {
          close("stopping");
        }
      },
      cancel: () => close(undefined),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
}

/** Sends an event on a stream. */
type StreamSender = <N extends keyof StreamEvents>(name: N, data: StreamEvents[N], id?: number) => void;

/**
 * Sends what the client missed, or `lost` where that is too much to tell, and then what comes. Returns a function that
 * ends it.
 */
async function sendChanges(
  { live, clock }: LiveDependencies,
  after: number | undefined,
  send: StreamSender,
): Promise<() => void> {
  const early: ChangeBatch[] = [];
  let isReady = false;
  const tell = ({ position, changes }: ChangeBatch): void => {
    for (const change of changes) send("change", change, position);
  };
  const { position, stop } = await live.follow((changes) => {
    if (isReady) tell(changes);
    else early.push(changes);
  });
  send("hello", { position: after ?? position, nowMs: clock.now() }, after ?? position);
  if (after !== undefined && after < position) {
    const missed = await live.since(after, position);
    if (missed) tell({ position, changes: missed });
    else send("lost", { position }, position);
  }
  isReady = true;
  early.forEach(tell);
  return stop;
}

/** The functions that send a beat on a stream, and close it. */
interface StreamHeartbeat {
  readonly send: () => void;
  readonly close: (because: LiveEnd["because"]) => void;
}

/**
 * Sends a beat at intervals, and closes the stream at the first one after its session ended. Returns a function that
 * ends it.
 */
function startHeartbeat(
  { clock, sessions }: LiveDependencies,
  session: PageSession,
  { send, close }: StreamHeartbeat,
): () => void {
  let cancel: () => void = () => undefined;
  const arm = (): void => {
    cancel = clock.wakeAt(addMs(clock.now(), PAGE_BOUNDS.beatMs), () => {
      if (!sessions.isAlive(session)) {
        close("session_ended");
        return;
      }
      send();
      arm();
    });
  };
  arm();
  return () => cancel();
}
