/**
 * Owns: proving a whole ledger: the stored bytes (the store's part), then the log's meaning, by folding every run again.
 *
 * L2 gapless, L3 causes are earlier events, L4 the log folds, L5 the projection is what is stored, D5 one terminal
 * event, S5 the tokens of claims are gapless over the ledger; what is kept beside the log is what the log says, and what a
 * fork has from its source is what its source had.
 */
import type { ClaimEntry } from "../contracts/claim-entry.ts";
import { isCoordinationError, isLedgerOutage } from "../contracts/errors.ts";
import { DELIVERY_STEP_ID, type CoordinationId } from "../contracts/ids.ts";
import { isFact, type FactEvent, type OpenWopDraft, type RunEvent } from "../contracts/run-event.ts";
import type { Reference, Summary } from "../contracts/coordination-summary.ts";
import { listClaimChanges } from "../ledger/claim-changes.ts";
import { draftResolutionByRules } from "../dispatch/conflict-facts.ts";
import { evolve } from "../ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../ledger/summary.ts";
import { projectFact } from "../openwop/project.ts";
import type { LedgerStore, StoredProblem } from "../ports/ledger-store.ts";
import type { UnprovenRun } from "../ports/run-store.ts";
import { isSameValue } from "../replay/same-value.ts";
import { createForkSources, type ForkSources } from "./log/carried-results.ts";
import { checkLogLength } from "./log/check-length.ts";
import { ignoreDamage } from "./log/ignore-damage.ts";
import { listClaims, listUnprovenRuns } from "./log/read-pages.ts";
import { findProblemsOfFork, type ForkedStep } from "./verify-fork.ts";
import { describeError } from "../std/describe-error.ts";
import { createTokenCount } from "./log/count-claim-tokens.ts";

const PAGE = 500;
const PROBLEMS_MAX = 200;
/** For a run that grows during each of so many readings only problems of its log are reported. */
const GROWTHS_MAX = 5;

export interface Verification {
  readonly ok: boolean;
  readonly coordinations: number;
  readonly events: number;
  readonly problems: readonly StoredProblem[];
  /** The verification stopped before its end; there may be more problems. */
  readonly isCut?: true;
}

/** `onProgress` hears of every coordination that was checked. */
export async function verifyLedger(
  store: LedgerStore,
  onProgress: (progress: { readonly coordinations: number; readonly events: number }) => void = () =>
    undefined,
): Promise<Verification> {
  const proof: VerificationProgress = { coordinations: 0, events: 0, problems: [], isCut: false };
  try {
    await store.inspect(proof.problems);
    await verifyCoordinations(store, proof, onProgress);
  } catch (error) {
    if (!isLedgerOutage(error) || proof.problems.length === 0) throw error;
    proof.isCut = true;
  }
  const { coordinations, events, problems, isCut } = proof;
  return {
    ok: problems.length === 0,
    coordinations,
    events,
    problems: problems.slice(0, PROBLEMS_MAX),
    ...(isCut && { isCut }),
  };
}

/** A verification as far as it came. */
interface VerificationProgress {
  coordinations: number;
  events: number;
  readonly problems: StoredProblem[];
  isCut: boolean;
}

async function verifyCoordinations(
  store: LedgerStore,
  proof: VerificationProgress,
  onProgress: (progress: Pick<VerificationProgress, "coordinations" | "events">) => void,
): Promise<void> {
  const { problems } = proof;
  const tokens = await createTokenCount(store, problems);
  const stored: LedgerWithForks = { store, forks: createForkSources({ store }) };
  const cutListing = (message: string): void => {
    problems.push({ kind: "index_differs", message: `the list of coordinations is unreadable: ${message}` });
    proof.isCut = true;
  };
  for await (const listedRun of listUnprovenRuns(store, "newest", cutListing)) {
    const run = await verifyGrowingRun(stored, listedRun);
    problems.push(...run.problems);
    tokens.add(run.tokens);
    proof.coordinations += 1;
    proof.events += listedRun.length;
    onProgress(proof);
    if (problems.length >= PROBLEMS_MAX) break;
  }
  if (problems.length >= PROBLEMS_MAX) proof.isCut = true;
  if (!proof.isCut) problems.push(...(await tokens.problems()));
}

type ListedRun = UnprovenRun<Summary>;

interface LedgerWithForks {
  readonly store: LedgerStore;
  readonly forks: ForkSources;
}

interface RunCheck {
  /** Problems of the log, as far as the entry of the run counts. */
  readonly problems: StoredProblem[];
  /** Problems of what is kept beside the log. Where the run has grown since, it tells of newer events too. */
  readonly indexProblems: readonly StoredProblem[];
  readonly tokens?: readonly number[];
}

/** Verifies a run that may grow or be pruned meanwhile. One that grew while it was read is read again. */
async function verifyGrowingRun(
  stored: LedgerWithForks,
  entry: ListedRun,
): Promise<Omit<RunCheck, "indexProblems">> {
  let checked = entry;
  for (let tries = 1; ; tries += 1) {
    const { problems, indexProblems, ...run } = await verifyRun(stored, checked);
    const all = [...problems, ...indexProblems];
    if (all.length === 0) return { ...run, problems };
    const newest = await stored.store.findUnproven(checked.runId).catch(ignoreDamage);
    if (newest === undefined && (await stored.store.pruned.find(entry.runId))) return { problems: [] };
    if (newest === undefined || newest.length === checked.length) return { ...run, problems: all };
    if (tries >= GROWTHS_MAX) return { ...run, problems };
    checked = newest;
  }
}

async function verifyRun({ store, forks }: LedgerWithForks, entry: ListedRun): Promise<RunCheck> {
  const { runId } = entry;
  const check = beginCheckOfRun(runId);
  try {
    for await (const event of readLocatingDamage(store, entry)) checkEvent(check, event);
    checkReferences(check, runId, await store.references(runId));
    await checkClaims(check, runId, listClaims(store, { runId }));
    await checkFork(check, { store, forks });
    check.problems.push(...(await checkLogLength(store, entry, check.state.nextSequence)));
  } catch (error) {
    if (isLedgerOutage(error)) throw error;
    const kind = isUnreadableEvent(error) ? "event_unreadable" : "fold_failed";
    const message = describeError(error);
    const problem = { kind, message, runId, sequence: check.state.nextSequence } as const;
    return { problems: [...check.problems, problem], indexProblems: check.indexProblems };
  }
  checkEnd(check, entry);
  return check;
}

/** A page that holds an unreadable event is read one by one, so that the events before it are checked and it is located. */
async function* readLocatingDamage(
  store: LedgerStore,
  { runId, length }: ListedRun,
): AsyncGenerator<RunEvent> {
  let pageMax = PAGE;
  for (let from = 0; from < length;) {
    const limit = Math.min(pageMax, length - from);
    const page = await store.read(runId, { from, limit }).catch((error: unknown) => {
      if (limit === 1 || !isUnreadableEvent(error)) throw error;
      return undefined;
    });
    if (!page) {
      pageMax = 1;
      continue;
    }
    yield* page;
    if (page.length < limit) return;
    from += page.length;
  }
}

function isUnreadableEvent(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "EVENT_UNREADABLE";
}

interface LogCheck {
  state: Coordination;
  /** L5: what must come next. */
  expected: OpenWopDraft[];
  readonly seen: Set<string>;
  readonly references: (Reference & { readonly sequence: number })[];
  /** By token, with the place of the newest event about it. */
  readonly claims: Map<number, { readonly claim: ClaimEntry; readonly sequence: number }>;
  /** Tokens of all claims that were acquired. */
  readonly tokens: number[];
  /** Steps of a fork. */
  readonly steps: ForkedStep[];
  readonly problems: StoredProblem[];
  readonly indexProblems: StoredProblem[];
}

function beginCheckOfRun(runId: CoordinationId): LogCheck {
  return {
    state: createUnopenedCoordination(runId),
    expected: [],
    seen: new Set(),
    references: [],
    claims: new Map(),
    tokens: [],
    steps: [],
    problems: [],
    indexProblems: [],
  };
}

function checkEvent(check: LogCheck, event: RunEvent): void {
  const { eventId, runId, sequence, type, causationId } = event;
  const reportDifference = (message: string): void => {
    check.problems.push({ kind: "projection_differs", message, runId, sequence });
  };
  if (causationId !== undefined && !check.seen.has(causationId)) {
    reportDifference(`L3: ${eventId} is caused by ${causationId}, which is not an earlier event`);
  }
  check.seen.add(eventId);
  check.references.push(...listEventReferences(event).map((reference) => ({ ...reference, sequence })));
  applyClaimChanges(check, event);
  const [expected, ...rest] = check.expected;
  if (isFact(event)) {
    if (expected) reportDifference(`L5: ${expected.type} is missing before ${eventId} (${type})`);
    checkRuling(check, event);
    noteForkedStep(check, event);
    check.state = evolve(check.state, event);
    check.expected = check.state.kind === "unopened" ? [] : projectFact(event, check.state);
    return;
  }
  if (!expected) reportDifference(`L5: ${eventId} (${type}) follows from no fact`);
  else if (!isSameEvent(expected, event))
    reportDifference(`L5: ${eventId} (${type}) is not the projection of the fact before it`);
  check.expected = rest;
  check.state = evolve(check.state, event);
}

function applyClaimChanges({ claims, tokens }: LogCheck, event: RunEvent): void {
  const { runId, sequence } = event;
  for (const change of listClaimChanges(event)) {
    const { token } = change;
    const recordedClaim = claims.get(token)?.claim;
    if (change.kind === "acquired") {
      const { kind: _, ...claim } = change;
      claims.set(token, { claim: { ...claim, runId }, sequence });
      tokens.push(token);
    } else if (change.kind === "released") claims.delete(token);
    else if (recordedClaim)
      claims.set(token, { claim: { ...recordedClaim, expiresAtMs: change.expiresAtMs }, sequence });
  }
}

function noteForkedStep({ state, steps }: LogCheck, { type, sequence, payload }: FactEvent): void {
  if (type !== "step.admitted" || state.kind === "unopened" || !state.created.forkedFrom) return;
  const { stepId, planned, carried } = payload;
  if (planned && stepId !== DELIVERY_STEP_ID) steps.push({ sequence, stepId, carried });
}

async function checkFork(
  { state, steps, problems }: LogCheck,
  { store, forks }: LedgerWithForks,
): Promise<void> {
  if (state.kind === "unopened") return;
  const { forkedFrom } = state.created;
  if (!forkedFrom || (await store.pruned.find(forkedFrom.coordinationId))) return;
  problems.push(...(await findProblemsOfFork(forks, { runId: state.coordinationId, forkedFrom, steps })));
}

/** A1: what the rules resolved follows from what was recorded of the conflict. */
function checkRuling({ state, problems }: LogCheck, event: FactEvent): void {
  if (event.type !== "conflict.resolved" || state.kind === "unopened") return;
  const { conflictId } = event.payload;
  const conflict = state.conflicts.findLast((detected) => detected.conflictId === conflictId);
  const expected = conflict && draftResolutionByRules(conflict);
  if (!expected || isSameValue(expected.payload, event.payload)) return;
  const { runId, sequence } = event;
  const message = `A1: the rules do not resolve ${conflictId} as ${event.eventId} says`;
  problems.push({ kind: "ruling_differs", message, runId, sequence });
}

function isSameEvent(expected: OpenWopDraft, stored: RunEvent): boolean {
  return (
    expected.type === stored.type &&
    expected.nodeId === stored.nodeId &&
    expected.causationId === stored.causationId &&
    JSON.stringify(expected.payload) === JSON.stringify(stored.payload)
  );
}

/** Checks that the stored references are those of the log: the same ones, in the same order, and no others. */
function checkReferences(
  { indexProblems, references }: LogCheck,
  runId: CoordinationId,
  stored: readonly Reference[],
): void {
  const length = Math.max(references.length, stored.length);
  for (let index = 0; index < length; index += 1) {
    const expected = references[index];
    const actual = stored[index];
    if (expected && actual?.name === expected.name && actual.stepId === expected.stepId) continue;
    const message = expected
      ? `the reference ${expected.name} is missing, changed or out of order`
      : `the reference ${String(actual?.name)} follows from no event`;
    indexProblems.push({
      kind: "index_differs",
      message,
      runId,
      ...(expected && { sequence: expected.sequence }),
    });
    return;
  }
}

/** Claims are a function of the log: those that it acquired and did not release, as it left them, and no others. */
async function checkClaims(
  { indexProblems, claims }: LogCheck,
  runId: CoordinationId,
  stored: AsyncIterable<ClaimEntry>,
): Promise<void> {
  const missing = new Map(claims);
  const reportIndexDifference = (message: string, sequence?: number): void => {
    indexProblems.push({
      kind: "index_differs",
      message,
      runId,
      ...(sequence !== undefined && { sequence }),
    });
  };
  for await (const claim of stored) {
    const expected = missing.get(claim.token);
    missing.delete(claim.token);
    if (!expected) reportIndexDifference(`the claim ${claim.token} follows from no event`);
    else if (!isSameClaim(expected.claim, claim))
      reportIndexDifference(
        `the claim ${claim.token} on ${expected.claim.resource} was changed`,
        expected.sequence,
      );
  }
  for (const [token, { claim, sequence }] of missing)
    reportIndexDifference(`the claim ${token} on ${claim.resource} is missing`, sequence);
}

function isSameClaim(expected: ClaimEntry, stored: ClaimEntry): boolean {
  return (
    expected.resource === stored.resource &&
    expected.stepId === stored.stepId &&
    expected.priority === stored.priority &&
    expected.acquiredAtMs === stored.acquiredAtMs &&
    expected.expiresAtMs === stored.expiresAtMs
  );
}

function checkEnd({ state, expected, problems }: LogCheck, { runId, summary }: ListedRun): void {
  const [pending] = expected;
  if (pending) {
    const message = `L5: ${pending.type} is missing at the end`;
    problems.push({ kind: "projection_differs", message, runId, sequence: state.nextSequence });
  }
  if (state.kind === "unopened" || JSON.stringify(summarizeCoordination(state)) !== JSON.stringify(summary)) {
    const message = summary
      ? "the summary differs from the state that the log gives"
      : "the summary cannot be read";
    problems.push({ kind: "index_differs", message, runId });
  }
}
