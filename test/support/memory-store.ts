/**
 * Owns: `LedgerStore` and `ContentStore` in memory, with the meaning of the port (S1 to S3, S5) and nothing kept that a
 * ledger file would not keep: events are stored as text and decoded when they are read.
 */
import type { ClaimChange, ClaimEntry } from "../../src/agents/coordination/contracts/claim-entry.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Reference, Summary } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { ContentInput, ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type {
  AppendRequest,
  Found,
  LedgerStore,
  StoredProblem,
} from "../../src/agents/coordination/ports/ledger-store.ts";
import type { OwnerBeat } from "../../src/agents/coordination/ports/run-owners.ts";
import type { LedgerPruning } from "../../src/agents/coordination/ports/run-store.ts";
import { NOBODY } from "../../src/infra/ledger/owner-fence.ts";
import { keepEvents } from "./hash-chain.ts";
import { checkOwner, createMemoryOwners, noteOwner } from "./memory-owners.ts";
import {
  checkNotPruned,
  createMemoryPrunedRuns,
  createMemoryPruning,
  createMemoryTraces,
  findNextOrdinal,
  type MemoryTraces,
} from "./memory-pruning.ts";
import { checkPlaces, createMemoryRunStore, type Answer, type OwnedKeptRun } from "./memory-run.ts";

export type MemoryStore = LedgerStore & ContentStore & { readonly pruning: LedgerPruning };

interface Run extends OwnedKeptRun<Summary> {
  readonly references: Reference[];
}

interface Content {
  readonly text: string;
  readonly atMs: number;
  /** Who stored it with `keepWhileRunning`. */
  readonly keepers: ReadonlySet<CoordinationId>;
}

interface Claims {
  /** By token, in the order of acquiring. */
  entries: ReadonlyMap<number, ClaimEntry>;
  lastToken: number;
}

/** The content of the disk: it outlives every store that was opened on it. */
export interface MemoryLedger {
  readonly runs: Map<CoordinationId, Run>;
  /** The holders of each name, in the order of appending. */
  readonly names: Map<string, Found[]>;
  readonly contents: Map<string, Content>;
  readonly claims: Claims;
  readonly owners: Map<string, OwnerBeat>;
  /** The traces of runs that were removed. */
  readonly traces: MemoryTraces;
  /** Every event of the ledger, run by run, decoded. */
  events(): RunEvent[][];
  open(clock: Clock): MemoryStore;
}

/** `decode` reads an event that was appended; a test that reads the same ones over and over may keep what it read. */
export function createMemoryLedger(decode: (text: string) => RunEvent = decodeText): MemoryLedger {
  const ledger: MemoryLedger = {
    runs: new Map(),
    names: new Map(),
    contents: new Map(),
    claims: { entries: new Map(), lastToken: 0 },
    owners: new Map(),
    traces: createMemoryTraces(),
    events: () => [...ledger.runs.values()].map(({ events }) => events.map(decode)),
    open: (clock) => openStore(ledger, clock, decode),
  };
  return ledger;
}

function openStore(ledger: MemoryLedger, clock: Clock, decode: (text: string) => RunEvent): MemoryStore {
  let closed = false;
  const answer: Answer = (run) =>
    new Promise((resolve) => {
      if (closed) throw new CoordinationError("LEDGER_CLOSED", "the memory ledger is closed");
      resolve(run());
    });
  return {
    ...createMemoryRunStore(
      {
        runs: ledger.runs,
        decode: (_runId, _run, text) => decode(text),
        hasEnded,
        append: (request: AppendRequest) => appendTo(ledger, request, clock.now()),
        pruned: createMemoryPrunedRuns(ledger.traces, answer),
      },
      answer,
    ),
    owners: createMemoryOwners({ ...ledger, hasEnded }, answer),
    pruning: createMemoryPruning(createPrunedLedger(ledger, clock), answer),
    find: (name) => answer(() => ledger.names.get(name)?.at(-1)),
    holders: (name, limit) => answer(() => holdersOf(ledger, name).slice(0, limit)),
    overlapping: ({ resource, atMs, limit }) =>
      answer(() => {
        const liveClaims = [...ledger.claims.entries.values()].filter(
          ({ expiresAtMs }) => expiresAtMs > atMs,
        );
        const overlapping = liveClaims.filter((claim) => isOverlapping(claim.resource, resource));
        const ofSteps = Map.groupBy(overlapping, ({ runId, stepId }) => JSON.stringify([runId, stepId]));
        const claims = [...ofSteps.values()].flatMap(([earliest]) => earliest ?? []).slice(0, limit);
        return { claims, lastToken: ledger.claims.lastToken };
      }),
    claims: ({ after, limit, runId }) =>
      answer(() =>
        [...ledger.claims.entries.values()]
          .filter((claim) => claim.token > after && (runId === undefined || claim.runId === runId))
          .slice(0, limit),
      ),
    references: (runId) => answer(() => [...(ledger.runs.get(runId)?.references ?? [])]),
    inspect: () => answer(() => inspect(ledger)),
    get: (sha256) => answer(() => ledger.contents.get(sha256)?.text),
    getMany: (sha256s) =>
      answer(() => new Map(sha256s.flatMap((sha256) => entryOf(sha256, ledger.contents.get(sha256))))),
    deleteBefore: (time) => answer(() => deleteBefore(ledger, time)),
    close: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}

function createPrunedLedger(ledger: MemoryLedger, clock: Clock): Parameters<typeof createMemoryPruning>[0] {
  const { runs, traces, claims } = ledger;
  return {
    runs,
    traces,
    now: () => clock.now(),
    hasClaim: (runId) => [...claims.entries.values()].some((claim) => claim.runId === runId),
    forget: (runId) => {
      forgetRun(ledger, runId);
    },
  };
}

function forgetRun({ names, contents }: MemoryLedger, runId: CoordinationId): void {
  for (const [name, holders] of names) {
    const left = holders.filter((holder) => holder.runId !== runId);
    if (left.length > 0) names.set(name, left);
    else names.delete(name);
  }
  for (const [sha256, content] of contents)
    if (content.keepers.has(runId))
      contents.set(sha256, {
        ...content,
        keepers: new Set([...content.keepers].filter((id) => id !== runId)),
      });
}

function hasEnded({ status }: Summary): boolean {
  return status !== "running";
}

/** S1: checks everything before it writes anything. */
function appendTo(ledger: MemoryLedger, request: AppendRequest, atMs: number): void {
  const { runId, events, summary, references, contents } = request;
  if (events.length === 0) return;
  const knownRun = ledger.runs.get(runId);
  checkNotPruned(ledger.traces, runId);
  checkPlaces(request, knownRun?.events.length ?? 0);
  checkOwner(request, knownRun);
  const claims = applyClaims(ledger.claims, request, atMs);
  const run = knownRun ?? createRun(ledger, request);
  keepEvents(run, events);
  run.references.push(...references);
  run.summary = summary;
  noteOwner(request, run, knownRun === undefined);
  ledger.runs.set(runId, run);
  for (const { name, stepId } of references)
    ledger.names.set(name, [...(ledger.names.get(name) ?? []), stepId ? { runId, stepId } : { runId }]);
  for (const content of contents) putContent(ledger, content, { runId, atMs });
  keepContents(ledger, request);
  Object.assign(ledger.claims, claims);
}

function createRun({ runs, traces }: MemoryLedger, { summary }: AppendRequest): Run {
  return {
    ordinal: findNextOrdinal(runs, traces),
    owner: NOBODY,
    hasArrived: false,
    events: [],
    hashes: [],
    references: [],
    summary,
  };
}

/** S5 */
function applyClaims(before: Claims, { runId, claims = [] }: AppendRequest, atMs: number): Claims {
  if (claims.length === 0) return before;
  const entries = new Map(before.entries);
  let { lastToken } = before;
  for (const change of claims) {
    if (change.kind === "acquired") {
      if (change.token !== lastToken + 1) throw claimConflict(change);
      lastToken = change.token;
      const { kind: _, ...claim } = change;
      entries.set(lastToken, { ...claim, runId });
      continue;
    }
    const claim = applyClaimChange(runId, { entries, change, atMs });
    if (!claim) throw claimConflict(change);
    if (change.kind === "released") entries.delete(change.token);
    else entries.set(change.token, { ...claim, expiresAtMs: change.expiresAtMs });
  }
  return { entries, lastToken };
}

/** A claim that has run out is not renewed. */
function applyClaimChange(
  runId: CoordinationId,
  input: { readonly entries: Claims["entries"]; readonly change: ClaimChange; readonly atMs: number },
): ClaimEntry | undefined {
  const { entries, change, atMs } = input;
  const claim = entries.get(change.token);
  if (claim?.runId !== runId) return undefined;
  return change.kind === "renewed" && claim.expiresAtMs <= atMs ? undefined : claim;
}

function claimConflict({ kind, token }: ClaimChange): CoordinationError {
  return new CoordinationError("CLAIM_CONFLICT", `the claim with token ${token} cannot be ${kind}`);
}

function isOverlapping(one: string, other: string): boolean {
  return one === other || isCovering(one, other) || isCovering(other, one);
}

/** Whether a file or folder is above another by path. */
function isCovering(above: string, below: string): boolean {
  return above.startsWith("file:") && below.startsWith(above.endsWith("/") ? above : `${above}/`);
}

function holdersOf({ names }: MemoryLedger, name: string): CoordinationId[] {
  return [...new Set((names.get(name) ?? []).map(({ runId }) => runId).toReversed())];
}

function putContent(
  { contents }: MemoryLedger,
  { ref, text, keepWhileRunning }: ContentInput,
  { runId, atMs }: { readonly runId: CoordinationId; readonly atMs: number },
): void {
  const keepers = new Set(contents.get(ref.sha256)?.keepers);
  if (keepWhileRunning) keepers.add(runId);
  contents.set(ref.sha256, { text, atMs, keepers });
}

function keepContents({ contents }: MemoryLedger, { runId, keep = [] }: AppendRequest): void {
  for (const sha256 of keep) {
    const knownContent = contents.get(sha256);
    if (knownContent)
      contents.set(sha256, { ...knownContent, keepers: new Set([...knownContent.keepers, runId]) });
  }
}

function entryOf(sha256: string, content: Content | undefined): [string, string][] {
  return content ? [[sha256, content.text]] : [];
}

function deleteBefore({ runs, contents }: MemoryLedger, time: number): number {
  const isRunning = (runId: CoordinationId): boolean => runs.get(runId)?.summary.status === "running";
  const old = [...contents].filter(([, { atMs, keepers }]) => atMs < time && ![...keepers].some(isRunning));
  for (const [sha256] of old) contents.delete(sha256);
  return old.length;
}

/** Reads an event as the program does. */
export function decodeText(text: string): RunEvent {
  return decodeEvent(JSON.parse(text));
}

function inspect({ runs }: MemoryLedger): StoredProblem[] {
  return [...runs].flatMap(([runId, { events }]) =>
    events.flatMap((text, sequence): StoredProblem[] => {
      const stored = JSON.parse(text) as { readonly sequence?: unknown };
      return stored.sequence === sequence
        ? []
        : [{ kind: "event_missing", message: "a sequence is missing", runId, sequence }];
    }),
  );
}
