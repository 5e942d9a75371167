/**
 * Owns: making a run out of another one's events (docs/adr/0013): what is refused, in the protocol's order, and where the fork's
 * log begins. Taking the events is the driver's.
 *
 * Order: the run, the request, the place, the time to fork it, its log, whether the caller may do what the fork may.
 */
import { isCoordinationError } from "../../../contracts/errors.ts";
import {
  addMs,
  epochMsOf,
  createEventId,
  formatTimestamp,
  type CoordinationId,
} from "../../../contracts/ids.ts";
import type { RunOrigin } from "../../../contracts/workflows/run-origin.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowEvent, WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import { beginWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import { refuse } from "../records/refuse.ts";
import { completeForkOverlay, findForkedStartRefusal, findUnreadableStartRefusal } from "./fork-options.ts";
import type { HostCollaborators } from "./hosting.ts";
import type { CountedRun } from "../records/tenant-usage.ts";
import type { HostAnswer, Caller, ForkedRun, ForkRun, HostRefusal } from "../records/workflow-host.ts";
import { refuseUnknownRun } from "./shared-refusals.ts";

type ForkDependencies = Pick<
  HostCollaborators,
  "store" | "book" | "driver" | "clock" | "newRunId" | "settings" | "contract" | "retentionMs" | "usage"
>;

/** The first event of a run. */
type RunStartedEvent = Extract<WorkflowEvent, { type: "run.started" }>;

/** Begins a fork of a run of the caller's tenant; the same request again returns the fork that is there. */
export async function forkRun(
  forking: ForkDependencies,
  caller: Caller,
  request: ForkRun,
): Promise<HostAnswer<ForkedRun>> {
  const source = await forking.store.entry(request.sourceRunId as CoordinationId);
  if (source?.summary.tenant !== caller.tenant) return refuseUnknownRun(request.sourceRunId);
  const place = checkForkPlace(request, source);
  if ("kind" in place) return place;
  const runId = request.runId ?? forking.newRunId();
  const existingFork = await forking.store.entry(runId);
  if (existingFork) return answerForExistingRun(forking, existingFork, { caller, place });
  const { tenant } = caller;
  const counted = forking.usage.begin(runId, {
    tenant,
    from: source.summary.root?.runId ?? source.runId,
    isFork: true,
    isRequest: true,
  });
  if (counted.kind === "refused") return counted;
  return forgetUnlessForked(counted, () => makeCountedFork(forking, caller, { request, place, runId }));
}

/**
 * Makes a fork that was counted, and takes the count back where it is refused or fails. It stays one of the minute's
 * forks, for it cost as much.
 */
async function forgetUnlessForked(
  { forget }: CountedRun,
  fork: () => Promise<HostAnswer<ForkedRun>>,
): Promise<HostAnswer<ForkedRun>> {
  let forked: HostAnswer<ForkedRun> | undefined;
  try {
    forked = await fork();
    return forked;
  } finally {
    if (forked?.kind !== "done") forget();
  }
}

interface CountedFork {
  readonly request: ForkRun;
  readonly place: ForkPlace;
  readonly runId: CoordinationId;
}

/** Begins a fork if its source is recent, whole and not nested too deep, and its caller may do what it may. */
async function makeCountedFork(
  forking: ForkDependencies,
  caller: Caller,
  { request, place, runId }: CountedFork,
): Promise<HostAnswer<ForkedRun>> {
  const { source } = place;
  const refusal =
    (await refuseAfterRetention(forking, place)) ??
    (await refuseDamagedSource(forking, place)) ??
    (await refuseTooDeepFork(forking, source));
  if (refusal) return refusal;
  const begun = await planFork(forking, { caller, request, place, runId });
  return "kind" in begun ? begun : beginFork(forking, begun, place);
}

/** The place where a fork leaves its source, and its mode. */
interface ForkPlace {
  readonly source: WorkflowEntry;
  readonly mode: ForkRun["mode"];
  readonly fromSeq: number;
}

/** Returns the place where the fork leaves its source; refuses a request that is wrong or names no place. */
function checkForkPlace(request: ForkRun, source: WorkflowEntry): ForkPlace | HostRefusal {
  const { mode, fromSeq = 0 } = request;
  const problem = findRequestProblem(request) ?? findOverlayProblem(request);
  if (problem !== undefined) return refuse("validation_error", problem);
  const { runId: sourceRunId, length } = source;
  if (fromSeq > length) {
    const details = { fromSeq, sourceRunId, maxFromSeq: length };
    return refuse("invalid_from_seq", `the run has ${length} events: fromSeq is at most ${length}`, details);
  }
  return isTakingSourceEvents(source)
    ? refuse("unavailable", "the run is a fork that still takes the events of its own source")
    : { source, mode, fromSeq };
}

function findRequestProblem({ mode, fromSeq }: ForkRun): string | undefined {
  if (fromSeq === undefined)
    return mode === "branch" ? "a branch needs the place where it leaves its source: fromSeq" : undefined;
  return Number.isInteger(fromSeq) && fromSeq >= 0 ? undefined : "fromSeq is a whole number from 0 on";
}

function findOverlayProblem({ mode, fromSeq = 0, overlay = {} }: ForkRun): string | undefined {
  if (mode === "replay")
    return Object.keys(overlay).length > 0
      ? "a replay takes the options of its source: an overlay is for branches"
      : undefined;
  const isOfStart = overlay.tags !== undefined || overlay.metadata !== undefined;
  return fromSeq > 0 && isOfStart
    ? "tags and metadata are those of the source, but for a branch from 0"
    : undefined;
}

function isTakingSourceEvents({ origin, length, summary }: WorkflowEntry): boolean {
  return origin !== undefined && length < origin.until && !hasRunEnded(summary.status);
}

/**
 * Returns the fork that is there by this id; refuses if it is another run. A request with an idempotency key came
 * again.
 */
async function answerForExistingRun(
  { driver }: ForkDependencies,
  { runId, origin, summary }: WorkflowEntry,
  { caller, place }: { readonly caller: Caller; readonly place: ForkPlace },
): Promise<HostAnswer<ForkedRun>> {
  // The try that wrote it may have ended before the ledger showed it, with nobody who goes on with it.
  if (!hasRunEnded(summary.status)) await driver.adoptUnknown(runId);
  const isSame =
    summary.tenant === caller.tenant &&
    origin?.sourceRunId === place.source.runId &&
    origin.mode === place.mode &&
    origin.fromSeq === place.fromSeq;
  return isSame
    ? { kind: "done", value: createForkedRun(runId, origin) }
    : refuse("run_already_active", `there is a run ${runId} already`);
}

function createForkedRun(runId: CoordinationId, { sourceRunId, fromSeq, mode }: RunOrigin): ForkedRun {
  return { runId, sourceRunId, fromSeq, mode };
}

/**
 * Refuses a fork of forks nested too deep. It counts the forks, not their ids: a replay of a replay has no more ids
 * than that one.
 */
async function refuseTooDeepFork(
  { store }: ForkDependencies,
  source: WorkflowEntry,
): Promise<HostRefusal | undefined> {
  let forks = 0;
  for (let at: WorkflowEntry | undefined = source; at?.origin; forks += 1)
    at = await store.entry(at.origin.sourceRunId);
  return forks >= WORKFLOW_BOUNDS.forksMax
    ? refuse("validation_error", `forks of forks may be at most ${WORKFLOW_BOUNDS.forksMax} deep`)
    : undefined;
}

function refuseUnavailableSource(
  { source, fromSeq }: ForkPlace,
  reason: "retention_expired" | "event_log_unavailable",
  { message, ...details }: { readonly message: string } & Readonly<Record<string, unknown>>,
): HostRefusal {
  return refuse("replay_memory_snapshot_unavailable", message, {
    fromSeq,
    sourceRunId: source.runId,
    reason,
    ...details,
  });
}

/** Refuses to fork a run that ended longer ago than its retention. */
async function refuseAfterRetention(
  forking: ForkDependencies,
  place: ForkPlace,
): Promise<HostRefusal | undefined> {
  const { runId, summary, length } = place.source;
  if (!hasRunEnded(summary.status)) return undefined;
  const last = await readEventAt(forking, runId, length - 1);
  // A log that cannot be read is damaged, and not too old.
  if (!last) return undefined;
  const until = addMs(epochMsOf(last.timestamp), forking.retentionMs);
  if (forking.clock.now() <= until) return undefined;
  const boundary = formatTimestamp(until);
  return refuseUnavailableSource(place, "retention_expired", {
    message: `the run ended too long ago: it could be forked until ${boundary}`,
    boundary,
  });
}

/** Reads the event of a run at this sequence; `undefined` where it is not there or unreadable. */
async function readEventAt(
  { store }: ForkDependencies,
  runId: CoordinationId,
  from: number,
): Promise<WorkflowEvent | undefined> {
  try {
    return (await store.read(runId, { from, limit: 1 }))[0];
  } catch (error) {
    if (isCoordinationError(error) && error.code === "EVENT_UNREADABLE") return undefined;
    throw error;
  }
}

/**
 * Refuses a fork whose source is damaged where it is needed. A branch needs what is before its place, a replay
 * everything.
 */
async function refuseDamagedSource(
  forking: ForkDependencies,
  place: ForkPlace,
): Promise<HostRefusal | undefined> {
  const { source, mode, fromSeq } = place;
  const before = mode === "branch" ? Math.max(1, fromSeq) : source.length;
  const damage = await forking.store.damage(source.runId, { before });
  if (!damage) return undefined;
  const { sequence, problem } = damage;
  return refuseUnavailableSource(place, "event_log_unavailable", {
    message: `the log of the run is damaged at event ${sequence}`,
    sequence,
    problem,
    // Up to it, branches can be had.
    ...(sequence > 0 && { oldestAvailableIdx: 0, newestAvailableIdx: sequence }),
  });
}

interface ForkToBegin {
  readonly caller: Caller;
  readonly request: ForkRun;
  readonly place: ForkPlace;
  readonly runId: CoordinationId;
}

/** The origin of a fork and its first event. */
interface PlannedFork {
  readonly origin: RunOrigin;
  readonly first: RunStartedEvent;
}

/** Returns the fork's origin and its first event, or why its source or its caller do not allow it. */
async function planFork(
  forking: ForkDependencies,
  forkAsked: ForkToBegin,
): Promise<PlannedFork | HostRefusal> {
  const { source } = forkAsked.place;
  const first = await readEventAt(forking, source.runId, 0);
  if (first?.type !== "run.started") {
    const message = "the log of the run does not begin";
    return refuseUnavailableSource(forkAsked.place, "event_log_unavailable", { message, sequence: 0 });
  }
  const overlaid = {
    ...forkAsked,
    request: completeForkOverlay(forkAsked.request, forkAsked.place.source, first.payload),
  };
  const refusal =
    refuseBeyondCaller(forkAsked, first.payload) ??
    (await findForkedStartRefusal(forking, overlaid, first.payload));
  if (refusal) return refusal;
  const origin = await createForkOrigin(forking, overlaid);
  if (origin.until > 0) return { origin, first: { ...first, runId: forkAsked.runId } };
  const firstAnew = createBranchFirstEvent(forking, overlaid, first);
  return findUnreadableStartRefusal(firstAnew.payload) ?? { origin, first: firstAnew };
}

/**
 * Returns the refusal of a branch whose source has scopes that the caller has not; `undefined` otherwise, and for
 * every replay.
 */
function refuseBeyondCaller(
  { caller, place }: ForkToBegin,
  { scopes = [] }: RunStartedEvent["payload"],
): HostRefusal | undefined {
  const isWithin = place.mode === "replay" || scopes.every((scope) => caller.scopes?.includes(scope));
  return isWithin
    ? undefined
    : refuse(
        "forbidden",
        "the run may use tools that its caller may not use, so only a replay of it is allowed",
      );
}

async function createForkOrigin(
  forking: ForkDependencies,
  { caller, request: forkRequest, place, runId }: ForkToBegin,
): Promise<RunOrigin> {
  const { source, mode, fromSeq } = place;
  const { runId: sourceRunId, origin } = source;
  const until = mode === "branch" ? fromSeq : Math.max(fromSeq, await findRecordedEnd(forking, source));
  const configurable = { ...origin?.configurable, ...forkRequest.overlay?.configurable };
  return {
    mode,
    sourceRunId,
    fromSeq,
    until,
    identity: mode === "branch" ? runId : (origin?.identity ?? sourceRunId),
    ids: listIdOwners(source, until),
    by: caller.principal,
    ...(Object.keys(configurable).length > 0 && { configurable }),
  };
}

/** Lists the runs whose ids are in those of the taken events, each with the sequence before which it is. */
function listIdOwners({ runId, origin }: WorkflowEntry, until: number): RunOrigin["ids"] {
  const ids: RunOrigin["ids"] = [];
  for (const { before, runId: owner } of origin?.ids ?? []) {
    ids.push({ before: Math.min(before, until), runId: owner });
    if (before >= until) return ids;
  }
  return until > 0 ? [...ids, { before: until, runId }] : [];
}

/** Returns where a replay's record ends, which is before a cancellation: that is nothing that the run did. */
async function findRecordedEnd(
  { store }: ForkDependencies,
  { runId, length, summary }: WorkflowEntry,
): Promise<number> {
  if (summary.status !== "cancelled") return length;
  const from = Math.max(1, length - 2 * WORKFLOW_BOUNDS.nodesMax - 1);
  const tail = await store.read(runId, { from, limit: length - from });
  const at = tail.at(-1)?.timestamp;
  const cut = new Set<string | undefined>();
  let end = tail.length - 1;
  for (; end > 0; end -= 1) {
    const { type, nodeId, timestamp } = tail[end - 1] ?? {};
    const isCut = type === "node.cancelled";
    if (timestamp !== at || !(isCut || (type === "agent.invocation.completed" && cut.has(nodeId)))) break;
    if (isCut) cut.add(nodeId);
  }
  return from + end;
}

/** Creates the first event of a branch from 0, which takes nothing but what its source was asked for. */
function createBranchFirstEvent(
  forking: ForkDependencies,
  { request: { overlay = {} }, runId }: ForkToBegin,
  first: RunStartedEvent,
): RunStartedEvent {
  const { configurable, ...payload } = first.payload;
  const merged: WorkflowPayloads["run.started"]["configurable"] = {
    ...configurable,
    ...overlay.configurable,
  };
  return {
    ...first,
    runId,
    eventId: createEventId(runId, 0),
    timestamp: formatTimestamp(forking.clock.now()),
    payload: {
      ...payload,
      ...(Object.keys(merged).length > 0 && { configurable: merged }),
      ...(overlay.tags && { tags: [...overlay.tags] }),
      ...(overlay.metadata && { metadata: { ...overlay.metadata } }),
    },
  };
}

/** Begins the fork, or answers with the one that another request makes by the same id. */
async function beginFork(
  forking: ForkDependencies,
  { origin, first }: PlannedFork,
  place: ForkPlace,
): Promise<HostAnswer<ForkedRun>> {
  const { graph } = await forking.book.runnable(first.payload.definition);
  const { runId } = first;
  const begun = await forking.driver.begin(first, { run: beginWorkflow(first, origin), graph });
  if (begun) return { kind: "done", value: createForkedRun(runId, origin) };
  // Another request is making it.
  await forking.driver.newest(runId);
  const made = await forking.store.entry(runId);
  const { owner } = first.payload;
  return made
    ? answerForExistingRun(forking, made, { caller: owner, place })
    : refuse("unavailable", "the run could not be forked at the moment");
}
