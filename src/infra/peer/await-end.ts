/**
 * Owns: waiting for the end of a peer's run. Its faults are waited out: a run goes on while its host is away.
 *
 * P1: an event counts once: only sequences above the last one are news.
 * P2: a peer that brings no news is asked again no sooner than its backoff says, whatever it answers; one that always has
 *     news is asked ten times a second at most.
 */
import type { OutboundFailure, PeerRunEnded } from "../../agents/coordination/ports/outbound.ts";
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import { failureOf } from "../http/outbound-error.ts";
import { waitBeforeTry } from "../http/retry.ts";
import { endOf, endOfSnapshot, readUnmet, pageSchema, snapshotSchema, type Page } from "./peer-answers.ts";
import {
  createAbortedFailure,
  callPeer,
  toFailure,
  type PeerFailure,
  type PeerDependencies,
} from "./peer-call.ts";

interface Waiting {
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

type Look =
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

export async function awaitEnd(
  dependencies: PeerDependencies,
  peerUrl: string,
  runPath: string,
  signal: AbortSignal,
): Promise<PeerRunEnded | OutboundFailure> {
  const counts = { last: -1, faults: 0, quiet: 0, news: 0 };
  const waiting: Waiting = { dependencies, peerUrl, path: runPath, signal, ...counts };
  while (waiting.news < NEWS_MAX && !signal.aborted) {
    const startedAtMs = dependencies.clock.now();
    const look = await lookAt(waiting);
    if (look.kind === "over") return look.outcome;
    countLook(waiting, look.kind);
    if (look.kind === "fault" && waiting.faults >= FAULTS_MAX) return giveUp(look);
    const waitMs = waitAfter(look, waiting, dependencies.clock.now() - startedAtMs);
    if (waitMs > 0) await waitFor(dependencies.clock, waitMs, signal);
  }
  return signal.aborted
    ? createAbortedFailure()
    : failureOf({ code: "malformed", message: "The peer's run has no end." });
}

function countLook(waiting: Waiting, kind: Look["kind"]): void {
  waiting.faults = kind === "fault" ? waiting.faults + 1 : 0;
  waiting.quiet = kind === "news" ? 0 : waiting.quiet + 1;
  if (kind === "news") waiting.news += 1;
}

function giveUp({ end, failure }: Extract<Look, { kind: "fault" }>): PeerRunEnded | OutboundFailure {
  return end ?? toFailure(failure);
}

function waitAfter(look: Exclude<Look, { kind: "over" }>, { quiet }: Waiting, tookMs: number): number {
  switch (look.kind) {
    case "news":
      return Math.max(0, ASK_EVERY_MS_MIN - tookMs);
    case "quiet":
      return tookMs >= HELD_MS_MIN ? 0 : waitBeforeTry(quiet - 1);
    case "fault":
      return waitBeforeTry(quiet - 1, look.failure.waitMs);
  }
}

async function lookAt(waiting: Waiting): Promise<Look> {
  const { dependencies, peerUrl, path, signal } = waiting;
  const since = waiting.last < 0 ? "" : `lastSequence=${waiting.last}&`;
  const pollPath = `${path}/events/poll?${since}timeout=${HOLD_SECONDS}`;
  const page = await callPeer(dependencies, peerUrl, { method: "GET", path: pollPath, signal }, pageSchema);
  if (page.kind === "answer") return lookAtPage(waiting, page.body);
  return isWithoutEvents(page) ? lookAtSnapshot(waiting) : lookAfterFailure(page);
}

async function lookAtPage(waiting: Waiting, page: Page): Promise<Look> {
  const news = page.events.filter(({ sequence }) => sequence > waiting.last);
  for (const event of news) {
    const end = endOf(event);
    if (end) return lookAfterEnd(waiting, end);
    waiting.last = Math.max(waiting.last, event.sequence);
  }
  if (page.isComplete === true) return lookAtSnapshot(waiting);
  return { kind: news.length > 0 ? "news" : "quiet" };
}

/** The snapshot has more than the event of the end: it is asked for again where the peer only fails to answer now. */
async function lookAfterEnd(waiting: Waiting, end: NonNullable<ReturnType<typeof endOf>>): Promise<Look> {
  const snapshot = await snapshotOf(waiting);
  if (snapshot.kind === "answer") {
    const { variables = {} } = snapshot.body;
    return { kind: "over", outcome: { outputs: variables, variables, ...readUnmet(snapshot.body), ...end } };
  }
  const { outputs = {} } = end;
  const outcome: PeerRunEnded = { outputs, variables: outputs, ...end };
  if (snapshot.kind === "refused" || isWithoutEvents(snapshot)) return { kind: "over", outcome };
  const look = lookAfterFailure(snapshot);
  return look.kind === "fault" ? { ...look, end: outcome } : look;
}

/** A peer may not have the poll, or what it has may be too large: the snapshot tells the end, too. */
function isWithoutEvents({ code, status }: PeerFailure): boolean {
  return code === "malformed" || code === "too_large" || [404, 405, 406, 501].includes(status ?? 0);
}

async function lookAtSnapshot(waiting: Waiting): Promise<Look> {
  const snapshot = await snapshotOf(waiting);
  if (snapshot.kind !== "answer") return lookAfterFailure(snapshot);
  const outcome = endOfSnapshot(snapshot.body);
  return outcome ? { kind: "over", outcome } : { kind: "quiet" };
}

function snapshotOf({ dependencies, peerUrl, path, signal }: Waiting): ReturnType<typeof callSnapshot> {
  return callSnapshot(dependencies, peerUrl, path, signal);
}

export function callSnapshot(
  dependencies: PeerDependencies,
  peerUrl: string,
  path: string,
  signal: AbortSignal,
) {
  return callPeer(dependencies, peerUrl, { method: "GET", path, signal }, snapshotSchema);
}

function lookAfterFailure(failure: PeerFailure): Look {
  return failure.kind === "refused" || failure.code === "aborted"
    ? { kind: "over", outcome: toFailure(failure) }
    : { kind: "fault", failure };
}
