/** Owns: asking other OpenWOP hosts, over their REST surface (v1). Does not own: what a run here makes of the answer. */
import { createHash } from "node:crypto";
import type {
  OutboundFailure,
  PeerHost,
  PeerHosts,
  PeerRunCreated,
  PeerRunRequest,
  PeerRunSnapshot,
} from "../../agents/coordination/ports/outbound.ts";
import { resolvePeerAddress } from "../../agents/coordination/std/foreign-text.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { PARENT_HEADER, formatParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { createTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { computeRetryWaitMs } from "../http/retry.ts";
import { awaitRunEnd, requestPeerSnapshot } from "./await-end.ts";
import { cancelledSchema, createdSchema, discoverySchema } from "./peer-answers.ts";
import {
  callPeer,
  createAbortedFailure,
  IN_FLIGHT,
  stripRetryFields,
  type PeerDependencies,
  type PeerFailure,
} from "./peer-call.ts";

/** Tries of one `createRun` that every fault of the peer is worth. */
const TRIES_MAX = 4;
/** Beyond these tries it goes on for so long, where the peer may have the run: less than runs may last. */
const TRYING_MS_MAX = 120_000;
const WELL_KNOWN = "/.well-known/openwop";
/** The longest reason that is sent. */
const REASON_CHARS_MAX = 1_000;

/**
 * Creates the access to other OpenWOP hosts over HTTP: to discover them, and to start, read, await and cancel their
 * runs.
 */
export function createPeerHosts(dependencies: PeerDependencies): PeerHosts {
  return {
    discover: (peerUrl, signal) => discoverHost(dependencies, peerUrl, signal),
    createRun: (peerUrl, request) => createPeerRun(dependencies, peerUrl, request),
    snapshot: (peerUrl, runId, signal) => readSnapshot(dependencies, peerUrl, runId, signal),
    awaitEnd: (peerUrl, runId, signal) => awaitRunEnd(dependencies, peerUrl, formatRunPath(runId), signal),
    cancel: (peerUrl, runId, request) => cancelPeerRun(dependencies, peerUrl, runId, request),
  };
}

/**
 * Returns the path of a run below a peer's root. Half a surrogate pair, which an id of an older log may hold and no
 * path can, is replaced.
 */
function formatRunPath(runId: string): string {
  return `/v1/runs/${encodeURIComponent(runId.toWellFormed())}`;
}

/** Asks a peer who it is. Its address stands for its id where it names none. */
async function discoverHost(
  dependencies: PeerDependencies,
  peerUrl: string,
  signal: AbortSignal,
): Promise<PeerHost | OutboundFailure> {
  const answer = await callPeer(
    dependencies,
    peerUrl,
    { method: "GET", path: WELL_KNOWN, signal },
    discoverySchema,
  );
  if (answer.kind !== "answer") return stripRetryFields(answer);
  const { multiAgent = answer.body.capabilities?.multiAgent } = answer.body;
  const root = resolvePeerAddress(peerUrl, "") ?? peerUrl;
  const hostId = multiAgent?.executionModel.crossHostCausation.hostId ?? root;
  return { kind: "host", hostId, wellKnownUrl: `${root}${WELL_KNOWN}` };
}

/** Creates a run on a peer, with further tries under the same key while they may help. */
async function createPeerRun(
  dependencies: PeerDependencies,
  peerUrl: string,
  request: PeerRunRequest,
): Promise<PeerRunCreated | OutboundFailure> {
  const { workflowId, inputs, configurable, signal } = request;
  const call = {
    method: "POST",
    path: "/v1/runs",
    headers: createRunHeaders(request),
    body: { workflowId, inputs, ...(configurable && { configurable }) },
    signal,
  } as const;
  const trying: StartTries = {
    tries: 0,
    mayBeStored: request.mayBeStored === true,
    startedAtMs: dependencies.clock.now(),
  };
  for (;;) {
    const answer = await callPeer(dependencies, peerUrl, call, createdSchema);
    trying.tries += 1;
    if (answer.kind === "answer") return { kind: "created", ...answer.body };
    trying.mayBeStored ||= isOutcomeLost(answer);
    if (answer.kind === "refused" || answer.code === "aborted") return stripRetryFields(answer);
    if (!canTryAgain(dependencies, request, trying)) return stripRetryFields(answer);
    await waitForDuration(dependencies.clock, computeRetryWaitMs(trying.tries - 1, answer.waitMs), signal);
    if (signal.aborted) return createAbortedFailure();
    // The run that asks may have ended meanwhile.
    if (!canTryAgain(dependencies, request, trying)) return stripRetryFields(answer);
  }
}

/** The tries to start a run at a peer so far. */
interface StartTries {
  tries: number;
  /** An earlier try may have created the run: only the same key brings its id. */
  mayBeStored: boolean;
  readonly startedAtMs: number;
}

/** Returns whether to try again: the first times always, later while the peer may have the run, for a time. */
function canTryAgain(
  { clock }: PeerDependencies,
  { runSignal }: PeerRunRequest,
  { tries, mayBeStored, startedAtMs }: StartTries,
): boolean {
  if (tries < TRIES_MAX) return true;
  return mayBeStored && runSignal?.aborted !== true && clock.now() - startedAtMs < TRYING_MS_MAX;
}

/** The peer failed, or its ledger was away, perhaps after it had stored the run; or a proxy has no answer from it. */
const MAYBE_DONE: readonly (number | undefined)[] = [500, 502, 503, 504];

/** True where the peer may have stored the run and its id is missing, and where it says that the same call is under way. */
function isOutcomeLost({ code, isUndelivered, errorCode, status }: PeerFailure): boolean {
  if (errorCode === IN_FLIGHT || MAYBE_DONE.includes(status)) return true;
  return (code === "unreachable" || code === "timed_out") && isUndelivered !== true;
}

function createRunHeaders(request: PeerRunRequest): Readonly<Record<string, string>> {
  return {
    "idempotency-key": fitKeyToHeader(request.idempotencyKey),
    [PARENT_HEADER]: formatParentHeader(request.parent),
    ...createTraceHeaders(request),
  };
}

/** Returns the key, or its hash: keys may be made of ids that hold more than a header, or a peer, takes. */
function fitKeyToHeader(key: string): string {
  return /^[\x21-\x7e]{1,255}$/.test(key) ? key : createHash("sha256").update(key).digest("hex");
}

async function readSnapshot(
  dependencies: PeerDependencies,
  peerUrl: string,
  runId: string,
  signal: AbortSignal,
): Promise<PeerRunSnapshot | OutboundFailure> {
  const answer = await requestPeerSnapshot(dependencies, peerUrl, formatRunPath(runId), signal);
  if (answer.kind !== "answer") return stripRetryFields(answer);
  const { workflowId, status, variables = {}, error } = answer.body;
  return { kind: "snapshot", runId, workflowId, status, variables, ...(error && { error }) };
}

/** Asks a peer to cancel a run. Where it refuses because the run has ended, its status is read instead. */
async function cancelPeerRun(
  dependencies: PeerDependencies,
  peerUrl: string,
  runId: string,
  { reason, signal }: Parameters<PeerHosts["cancel"]>[2],
): ReturnType<PeerHosts["cancel"]> {
  const body = reason === undefined ? {} : { reason: reason.slice(0, REASON_CHARS_MAX) };
  const call = { method: "POST", path: `${formatRunPath(runId)}/cancel`, body, signal } as const;
  const answer = await callPeer(dependencies, peerUrl, call, cancelledSchema);
  if (answer.kind === "answer") return { kind: "cancelling", status: answer.body.status };
  if (answer.status !== 409) return stripRetryFields(answer);
  // A host may refuse to cancel what has ended.
  const snapshotNow = await readSnapshot(dependencies, peerUrl, runId, signal);
  return snapshotNow.kind === "snapshot"
    ? { kind: "cancelling", status: snapshotNow.status }
    : stripRetryFields(answer);
}
