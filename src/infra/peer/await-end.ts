/**
 * Owns: waiting for the end of a peer's run. Its faults are waited out: a run goes on while its host is away.
 *
 * P1: an event counts once: only sequences above the last one are news.
 * P2: a peer that brings no news is asked again no sooner than its backoff says, whatever it answers; one that always has
 *     news is asked ten times a second at most.
 */
import type { OutboundFailure, PeerRunEnded } from "../../agents/coordination/ports/outbound.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { createOutboundFailure } from "../http/outbound-error.ts";
import { computeRetryWaitMs } from "../http/retry.ts";
import {
  readEndFromEvent,
  readEndFromSnapshot,
  readUnmetGoals,
  pageSchema,
  snapshotSchema,
  type PeerEventPage,
} from "./peer-answers.ts";
import {
  createAbortedFailure,
  callPeer,
  stripRetryFields,
  type PeerFailure,
  type PeerDependencies,
} from "./peer-call.ts";

/** The wait for the end of a run at a peer, and what was heard of it. */
interface PeerRunWait {
  readonly dependencies: PeerDependencies;
  readonly peerUrl: string;
  /** The path of the run, below the root. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** The last sequence that was read; -1 before the first. */
  last: number;
  /** Faults in a row. */
  faults: number;
  /** Answers without news in a row, faults among them. */
  quiet: number;
  /** Answers with news. */
  news: number;
}

/** The result of asking a peer once for news of a run. */
type PollResult =
  | { readonly kind: "over"; readonly outcome: PeerRunEnded | OutboundFailure }
  | { readonly kind: "news" }
  | { readonly kind: "quiet" }
  | {
      readonly kind: "fault";
      readonly failure: PeerFailure;
      /** The end as far as its event tells it. */
      readonly end?: PeerRunEnded;
    };

/** A peer is asked to hold a request for so long; it stays below the bounds of proxies on the way. */
const HOLD_SECONDS = 10;
/** An answer that took this long was held: there is no need to wait on top. */
const HELD_MS_MIN = 1_000;
/** From one request to the next, whatever news there is. */
const ASK_EVERY_MS_MIN = 100;
/** Looks in a row that a peer may fail: about ten minutes, or longer where its faults take their time or it asks to wait. */
const FAULTS_MAX = 120;
/** More than any run has events; what always has news has no end. A run without news may wait for people. */
const NEWS_MAX = 100_000;

/**
 * Polls a peer until its run has ended, and returns how it ended; a failure where the peer refuses, fails too often,
 * sends events without end, or the wait is aborted. Never rejects for what the peer does.
 */
export async function awaitRunEnd(
  dependencies: PeerDependencies,
  peerUrl: string,
  runPath: string,
  signal: AbortSignal,
): Promise<PeerRunEnded | OutboundFailure> {
  const counts = { last: -1, faults: 0, quiet: 0, news: 0 };
  const waiting: PeerRunWait = { dependencies, peerUrl, path: runPath, signal, ...counts };
  while (waiting.news < NEWS_MAX && !signal.aborted) {
    const startedAtMs = dependencies.clock.now();
    const pollOutcome = await pollRun(waiting);
    if (pollOutcome.kind === "over") return pollOutcome.outcome;
    countOutcome(waiting, pollOutcome.kind);
    if (pollOutcome.kind === "fault" && waiting.faults >= FAULTS_MAX)
      return createGivenUpOutcome(pollOutcome);
    const waitMs = computeWaitMs(pollOutcome, waiting, dependencies.clock.now() - startedAtMs);
    if (waitMs > 0) await waitForDuration(dependencies.clock, waitMs, signal);
  }
  return signal.aborted
    ? createAbortedFailure()
    : createOutboundFailure({ code: "malformed", message: "The peer's run has no end." });
}

function countOutcome(waiting: PeerRunWait, kind: PollResult["kind"]): void {
  waiting.faults = kind === "fault" ? waiting.faults + 1 : 0;
  waiting.quiet = kind === "news" ? 0 : waiting.quiet + 1;
  if (kind === "news") waiting.news += 1;
}

/** Returns the end as far as its event told it, else the failure. */
function createGivenUpOutcome({
  end,
  failure,
}: Extract<PollResult, { kind: "fault" }>): PeerRunEnded | OutboundFailure {
  return end ?? stripRetryFields(failure);
}

/** Returns how long to wait before the next look, in ms (P2). */
function computeWaitMs(
  look: Exclude<PollResult, { kind: "over" }>,
  { quiet }: PeerRunWait,
  tookMs: number,
): number {
  switch (look.kind) {
    case "news":
      return Math.max(0, ASK_EVERY_MS_MIN - tookMs);
    case "quiet":
      return tookMs >= HELD_MS_MIN ? 0 : computeRetryWaitMs(quiet - 1);
    case "fault":
      return computeRetryWaitMs(quiet - 1, look.failure.waitMs);
  }
}

/** Asks the peer once for new events, or for the snapshot where it cannot answer that. */
async function pollRun(waiting: PeerRunWait): Promise<PollResult> {
  const { dependencies, peerUrl, path, signal } = waiting;
  const since = waiting.last < 0 ? "" : `lastSequence=${waiting.last}&`;
  const pollPath = `${path}/events/poll?${since}timeout=${HOLD_SECONDS}`;
  const page = await callPeer(dependencies, peerUrl, { method: "GET", path: pollPath, signal }, pageSchema);
  if (page.kind === "answer") return judgePage(waiting, page.body);
  return isPollUnusable(page) ? pollSnapshot(waiting) : judgeFailure(page);
}

/** Reads a page of events up to the end of the run, and remembers the last sequence. */
async function judgePage(waiting: PeerRunWait, page: PeerEventPage): Promise<PollResult> {
  const news = page.events.filter(({ sequence }) => sequence > waiting.last);
  for (const event of news) {
    const end = readEndFromEvent(event);
    if (end) return completeEnd(waiting, end);
    waiting.last = Math.max(waiting.last, event.sequence);
  }
  if (page.isComplete === true) return pollSnapshot(waiting);
  return { kind: news.length > 0 ? "news" : "quiet" };
}

/**
 * Adds to the end that an event told what only the snapshot has. The snapshot is asked for again where the peer only
 * fails to answer now.
 */
async function completeEnd(
  waiting: PeerRunWait,
  end: NonNullable<ReturnType<typeof readEndFromEvent>>,
): Promise<PollResult> {
  const snapshot = await requestSnapshot(waiting);
  if (snapshot.kind === "answer") {
    const { variables = {} } = snapshot.body;
    return {
      kind: "over",
      outcome: { outputs: variables, variables, ...readUnmetGoals(snapshot.body), ...end },
    };
  }
  const { outputs = {} } = end;
  const outcome: PeerRunEnded = { outputs, variables: outputs, ...end };
  if (snapshot.kind === "refused" || isPollUnusable(snapshot)) return { kind: "over", outcome };
  const look = judgeFailure(snapshot);
  return look.kind === "fault" ? { ...look, end: outcome } : look;
}

/**
 * True for a peer that has no poll, or whose events are too large or not of the protocol. Its snapshot tells the end,
 * too.
 */
function isPollUnusable({ code, status }: PeerFailure): boolean {
  return code === "malformed" || code === "too_large" || [404, 405, 406, 501].includes(status ?? 0);
}

async function pollSnapshot(waiting: PeerRunWait): Promise<PollResult> {
  const snapshot = await requestSnapshot(waiting);
  if (snapshot.kind !== "answer") return judgeFailure(snapshot);
  const outcome = readEndFromSnapshot(snapshot.body);
  return outcome ? { kind: "over", outcome } : { kind: "quiet" };
}

function requestSnapshot({
  dependencies,
  peerUrl,
  path,
  signal,
}: PeerRunWait): ReturnType<typeof requestPeerSnapshot> {
  return requestPeerSnapshot(dependencies, peerUrl, path, signal);
}

/** Asks a peer for the snapshot of one of its runs, and returns it or the failure. */
export function requestPeerSnapshot(
  dependencies: PeerDependencies,
  peerUrl: string,
  path: string,
  signal: AbortSignal,
) {
  return callPeer(dependencies, peerUrl, { method: "GET", path, signal }, snapshotSchema);
}

/** Returns that the wait is over where the peer refused or the call was given up; else a fault, to be waited out. */
function judgeFailure(failure: PeerFailure): PollResult {
  return failure.kind === "refused" || failure.code === "aborted"
    ? { kind: "over", outcome: stripRetryFields(failure) }
    : { kind: "fault", failure };
}
