/**
 * Owns: a run's events as server-sent events, to one client.
 *
 * V1 After `Last-Event-ID: n` come exactly the events from n + 1 on that the modes admit, in order, each once.
 * V2 Nothing is read for a client that has not taken what it was sent.
 * V3 When the client is gone, or the run has ended, nothing is left: no subscription, no timer.
 */
import { runInSlices } from "../../../platform/give-way.ts";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type {
  Caller,
  EventPage,
  HostEvent,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import { writeJsonInParts } from "../../../platform/write-json.ts";
import type { OpenStream, StreamHub } from "../http/stream-hub.ts";
import { addMessageChunks, type ShownEvent } from "./message-chunks.ts";
import { isShownInMode, isUrgentType, type StreamRequest } from "./stream-modes.ts";

const ENCODER = new TextEncoder();
const KEEP_ALIVE = ENCODER.encode(": keep-alive\n\n");

export interface StreamDependencies {
  readonly host: WorkflowHost;
  readonly clock: Clock;
  readonly streams: StreamHub;
  /** Told of an exception; the stream is over then. */
  readonly failed: (error: unknown) => void;
  /** Cuts the connection. */
  readonly cut?: () => void;
}

export interface StreamSubject {
  readonly caller: Caller;
  readonly runId: string;
  readonly request: StreamRequest;
  /** The first sequence to send. */
  readonly from: number;
  /** Events that were already read from there on. */
  readonly first: EventPage;
}

/** A stream that is open, and how far it was sent. */
interface LiveStream extends OpenStream {
  readonly dependencies: StreamDependencies;
  readonly subject: StreamSubject;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  next: number;
  /** The event ahead of `next`, where it was read. */
  last: HostEvent | undefined;
  /** Since the last reading, or beyond it. */
  mayHaveMore: boolean;
  /** Events as JSON that wait to be sent together. */
  batch: string[];
  batchChars: number;
  batchLast: number;
  cancelBatch: (() => void) | undefined;
  unwatch: () => void;
  phase: "idle" | "reading" | "over";
}

/**
 * Creates the stream of server-sent events that shows a run's events to one client, and stops following the run when
 * the client leaves.
 */
export function createEventStream(
  dependencies: StreamDependencies,
  subject: StreamSubject,
): ReadableStream<Uint8Array> {
  let live: LiveStream | undefined;
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      live = subscribeStream(dependencies, subject, controller);
      void sendFirstEvents(live);
    },
    // Not awaited: a stream that waits for events must still be told when its client takes some.
    pull: () => {
      if (live) void sendAvailableEvents(live);
    },
    cancel: () => {
      if (live) releaseStream(live);
    },
  });
}

/** Creates the state of a stream, which watches its run and is kept alive by the hub. */
function subscribeStream(
  dependencies: StreamDependencies,
  subject: StreamSubject,
  controller: ReadableStreamDefaultController<Uint8Array>,
): LiveStream {
  const live: LiveStream = {
    dependencies,
    subject,
    controller,
    next: subject.from,
    last: undefined,
    unread: 0,
    phase: "idle",
    batch: [],
    batchChars: 0,
    batchLast: -1,
    cancelBatch: undefined,
    unwatch: () => undefined,
    // About events that came between the first reading and now, nobody told.
    mayHaveMore: true,
    keepAlive: () => {
      if (!hasRoom(live)) return false;
      controller.enqueue(KEEP_ALIVE);
      return true;
    },
    end: (clean) => {
      if (clean) finishStream(live);
      else cutStream(live);
    },
  };
  live.unwatch = dependencies.host.watch(subject.runId, () => {
    live.mayHaveMore = true;
    void sendAvailableEvents(live);
  });
  dependencies.streams.add(live);
  return live;
}

/** Sends how the run is, where the client resumes with `values`, then the events that were read already. */
function sendFirstEvents(live: LiveStream): Promise<void> {
  return runExclusively(live, async () => {
    await sendBaseline(live);
    await takePage(live, live.subject.first);
  });
}

/** Reads and sends until there is no more, or no room. */
function sendAvailableEvents(live: LiveStream): Promise<void> {
  return runExclusively(live, async () => {
    while (live.mayHaveMore && hasRoom(live)) await sendNextPage(live);
  });
}

/** Does the work unless the stream is busy or over; drops the stream where it throws. */
async function runExclusively(live: LiveStream, work: () => Promise<void>): Promise<void> {
  if (live.phase !== "idle") return;
  live.phase = "reading";
  try {
    await work();
  } catch (error) {
    live.dependencies.failed(error);
    cutStream(live);
  }
  if (isOver(live)) return;
  live.phase = "idle";
  // Whoever woke the stream after the last look, and before this line, found it busy.
  if (live.mayHaveMore && hasRoom(live)) void sendAvailableEvents(live);
}

async function sendNextPage(live: LiveStream): Promise<void> {
  const { host } = live.dependencies;
  const { caller, runId } = live.subject;
  live.mayHaveMore = false;
  const range = { from: live.next, limit: HTTP_BOUNDS.pageEvents };
  const page = await host.events(caller, runId, range);
  if (isOver(live)) return;
  if (page.kind === "refused") cutStream(live);
  else await takePage(live, page.value);
}

/** Sends a page of events and goes on behind it; ends the stream with the last event of the run. */
async function takePage(live: LiveStream, { events, isComplete }: EventPage): Promise<void> {
  const last = events.at(-1);
  if (last) {
    await sendAdmittedEvents(live, events);
    live.next = last.sequence + 1;
    live.last = last;
  }
  const isFull = events.length >= HTTP_BOUNDS.pageEvents;
  if (isFull) live.mayHaveMore = true;
  else if (isComplete) finishStream(live);
}

/** Sends those events that the stream's modes show, or the state after them. */
async function sendAdmittedEvents(live: LiveStream, events: readonly HostEvent[]): Promise<void> {
  const { modes, bufferMs } = live.subject.request;
  const shownEvents: readonly ShownEvent[] = modes.includes("messages")
    ? addMessageChunks(events, live.last)
    : events;
  const admitted = shownEvents.filter(({ type }) => modes.some((mode) => isShownInMode(mode, type)));
  const last = admitted.at(-1);
  if (!last) return;
  const items = modes.includes("values") ? await createSnapshotItems(live, last) : admitted;
  if (isOver(live)) return;
  const isUrgent = admitted.some(({ type }) => isUrgentType(type));
  await deliverItems(live, items, { bufferMs, isUrgent });
}

/**
 * Sends items as frames, or puts them into the batch where they may wait. In slices, because what is sent together may
 * be as large as a run.
 */
async function deliverItems(
  live: LiveStream,
  items: readonly StreamItem[],
  { bufferMs, isUrgent }: { readonly bufferMs: number; readonly isUrgent: boolean },
): Promise<void> {
  let frames = "";
  for (const item of items) {
    const text = (await runInSlices(writeJsonInParts(item))).join("");
    if (isOver(live)) return;
    if (bufferMs > 0) addToBatch(live, item.sequence, text);
    else frames += formatSseFrame(item, text);
    if (frames.length < HTTP_BOUNDS.batchCharsMax) continue;
    live.controller.enqueue(ENCODER.encode(frames));
    frames = "";
  }
  if (bufferMs === 0) {
    if (frames !== "") live.controller.enqueue(ENCODER.encode(frames));
  } else if (isUrgent) sendBatch(live);
  else scheduleBatch(live);
}

/** An event that can be sent on a stream. */
interface StreamItem {
  readonly sequence: number;
  readonly type: string;
}

/**
 * Returns the run's state as it is now, as an event behind `after`, because states in between are not kept; empty
 * where the host refuses to show it.
 */
async function createSnapshotItems(live: LiveStream, after: ShownEvent): Promise<readonly StreamItem[]> {
  const { caller, runId } = live.subject;
  const snapshot = await live.dependencies.host.snapshot(caller, runId);
  if (snapshot.kind === "refused") return [];
  const { sequence, timestamp } = after;
  const eventId = `${after.eventId}:snapshot`;
  return [
    { eventId, runId, sequence, type: "state.snapshot", timestamp, payload: snapshot.value } as StreamItem,
  ];
}

/** Sends how the run is to a client that resumes with `values`, before anything else. */
async function sendBaseline(live: LiveStream): Promise<void> {
  const { caller, runId, request, from } = live.subject;
  if (from === 0 || !request.modes.includes("values")) return;
  const page = await live.dependencies.host.events(caller, runId, { from: from - 1, limit: 1 });
  const [event] = page.kind === "done" ? page.value.events : [];
  if (!event || isOver(live)) return;
  const items = await createSnapshotItems(live, event);
  if (isOver(live)) return;
  await deliverItems(live, items, { bufferMs: request.bufferMs, isUrgent: true });
}

function formatSseFrame({ sequence, type }: StreamItem, text: string): string {
  return `id: ${sequence}\nevent: ${type}\ndata: ${text}\n\n`;
}

function addToBatch(live: LiveStream, sequence: number, text: string): void {
  live.batch.push(text);
  live.batchChars += text.length;
  live.batchLast = sequence;
  if (live.batch.length >= HTTP_BOUNDS.batchEventsMax || live.batchChars >= HTTP_BOUNDS.batchCharsMax)
    sendBatch(live);
}

function scheduleBatch(live: LiveStream): void {
  if (live.batch.length === 0) return;
  const { clock } = live.dependencies;
  live.cancelBatch ??= clock.wakeAt(addMs(clock.now(), live.subject.request.bufferMs), () => {
    sendBatch(live);
  });
}

function sendBatch(live: LiveStream): void {
  live.cancelBatch?.();
  live.cancelBatch = undefined;
  if (live.batch.length === 0 || isOver(live)) return;
  const text = `id: ${live.batchLast}\nevent: batch\ndata: [${live.batch.join(",")}]\n\n`;
  live.batch = [];
  live.batchChars = 0;
  live.controller.enqueue(ENCODER.encode(text));
}

function hasRoom(live: LiveStream): boolean {
  return live.phase !== "over" && (live.controller.desiredSize ?? 0) > 0;
}

/** True when the stream is over. It is a function because the phase changes while something is awaited. */
function isOver(live: LiveStream): boolean {
  return live.phase === "over";
}

/** Sends what waits in the batch, and closes the stream cleanly. */
function finishStream(live: LiveStream): void {
  if (isOver(live)) return;
  sendBatch(live);
  releaseStream(live);
  live.controller.close();
}

/** Ends the connection wherever it is, so that the client knows that there is more. */
function cutStream(live: LiveStream): void {
  if (isOver(live)) return;
  releaseStream(live);
  if (live.dependencies.cut) live.dependencies.cut();
  else live.controller.error(new Error("the stream was cut; resume it"));
}

/** Marks the stream as over, and ends its watching and its timer. */
function releaseStream(live: LiveStream): void {
  if (isOver(live)) return;
  live.phase = "over";
  live.unwatch();
  live.cancelBatch?.();
  live.dependencies.streams.remove(live);
}
