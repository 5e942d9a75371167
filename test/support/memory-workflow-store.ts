/**
 * Owns: `WorkflowStore` in memory, with the meaning of the port and nothing kept that a ledger file would not keep: events
 * are stored as text and decoded when they are read.
 */
import { hash } from "node:crypto";
import { CoordinationError, assertInvariant } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  KeyedRequestStart,
  KeptAnswer,
  KeyedRequest,
  MemoryAsOf,
  MemoryEntry,
  MemoryJournal,
  MemoryScope,
  MemoryWrite,
  RequestKey,
  RequestLog,
  StoredDefinition,
  WorkflowAppend,
  WorkflowStore,
} from "../../src/agents/coordination/ports/workflow-store.ts";
import type { OwnerBeat } from "../../src/agents/coordination/ports/run-owners.ts";
import { NOBODY } from "../../src/infra/ledger/owner-fence.ts";
import { keepEvents } from "./hash-chain.ts";
import { checkOwner, createMemoryOwners, noteOwner } from "./memory-owners.ts";
import {
  checkIds,
  checkPlaces,
  createMemoryRunStore,
  readEvent,
  type Answer,
  type MemoryRun,
} from "./memory-run.ts";
import {
  checkWorkspace,
  createMemoryWorkspace,
  findWorkspaceConflict,
  writeWorkspace,
  type KeptVersion,
  type Places,
} from "./memory-workspace.ts";

export interface MemoryWorkflowStore extends WorkflowStore {
  /** Later calls fail with `LEDGER_CLOSED`. */
  close(): Promise<void>;
}

interface Entry {
  readonly place: number;
  readonly at: MemoryScope;
  readonly entry: MemoryEntry;
  /** Where its id was written again; that entry may have been deleted since. */
  replacedAt: number;
}

interface KeptRequest {
  readonly request: KeyedRequest;
  leaseUntilMs: EpochMs;
  answer?: KeptAnswer;
}

/** The content of the disk: it outlives every store that was opened on it. */
export interface MemoryWorkflowLedger {
  readonly runs: Map<CoordinationId, MemoryRun>;
  /** In the order of writing. */
  readonly entries: Entry[];
  /** In the order of writing. */
  readonly files: KeptVersion[];
  readonly definitions: Map<string, string>;
  readonly registrations: (StoredDefinition & { readonly tenant: string })[];
  readonly requests: Map<string, KeptRequest>;
  readonly owners: Map<string, OwnerBeat>;
  open(): MemoryWorkflowStore;
}

export function createMemoryWorkflowLedger(): MemoryWorkflowLedger {
  const ledger: MemoryWorkflowLedger = {
    runs: new Map(),
    entries: [],
    files: [],
    definitions: new Map(),
    registrations: [],
    requests: new Map(),
    owners: new Map(),
    open: () => openStore(ledger),
  };
  return ledger;
}

function openStore(ledger: MemoryWorkflowLedger): MemoryWorkflowStore {
  const { runs, definitions, registrations } = ledger;
  let closed = false;
  const answer: Answer = (run) =>
    new Promise((resolve) => {
      if (closed) throw new CoordinationError("LEDGER_CLOSED", "the memory ledger is closed");
      resolve(run());
    });
  return {
    ...createMemoryRunStore(
      {
        runs,
        decode: readEvent,
        hasEnded: ({ status }) => hasRunEnded(status),
        append: (request: WorkflowAppend) => appendTo(ledger, request),
      },
      answer,
    ),
    putDefinition: (definition) =>
      answer(() => {
        putDefinition(ledger, definition);
      }),
    definition: (sha256) => answer(() => definitions.get(sha256)),
    registered: (tenant, workflowId) =>
      answer(() =>
        registrations.findLast((each) => each.tenant === tenant && each.workflowId === workflowId),
      ),
    memory: journalOf(ledger, answer),
    workspace: createMemoryWorkspace(ledger.files, placesOf(ledger), answer),
    requests: requestsOf(ledger, answer),
    owners: createMemoryOwners({ ...ledger, hasEnded: ({ status }) => hasRunEnded(status) }, answer),
    close: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}

/** S1: checks everything before it writes anything. */
function appendTo(ledger: MemoryWorkflowLedger, request: WorkflowAppend): void {
  const { runId, events, summary, origin, memory = [] } = request;
  checkMemory(request);
  checkWorkspace(request);
  if (events.length === 0) return;
  const knownRun = ledger.runs.get(runId);
  checkPlaces(request, knownRun?.events.length ?? 0);
  checkOwner(request, knownRun);
  assertInvariant(!(knownRun && origin), `${runId} has begun; it cannot be given an origin`);
  const conflict = findWorkspaceConflict(ledger.files, request);
  if (conflict) throw conflict;
  const run = knownRun ?? createRun(ledger, request);
  checkIds(request, run);
  const appended = placesOf(ledger).newest();
  run.places.push(...events.map((_, index) => appended + 1 + index));
  keepEvents(run, events);
  run.summary = structuredClone(summary);
  noteOwner(request, run, knownRun === undefined);
  ledger.runs.set(runId, run);
  for (const write of memory) keepEntry(ledger, write, run.places[write.sequence]);
  writeWorkspace(ledger.files, placesOf(ledger), request);
}

function placesOf({ runs }: MemoryWorkflowLedger): Places {
  return {
    of: (runId) => runs.get(runId as CoordinationId)?.places ?? [],
    newest: () => [...runs.values()].reduce((sum, { events: { length } }) => sum + length, 0),
  };
}

function createRun({ runs }: MemoryWorkflowLedger, { summary, origin }: WorkflowAppend): MemoryRun {
  return {
    ordinal: runs.size + 1,
    owner: NOBODY,
    hasArrived: false,
    events: [],
    hashes: [],
    places: [],
    summary,
    ...(origin && { origin: JSON.stringify(origin) }),
  };
}

function keepEntry({ entries }: MemoryWorkflowLedger, { at, entry }: MemoryWrite, place = 0): void {
  const isOfIt = (each: Entry): boolean => each.entry.id === entry.id && isSame(each.at, at);
  const newer = entries.find((each) => each.place > place && isOfIt(each));
  const replacedAt = newer?.place ?? Number.POSITIVE_INFINITY;
  entries.push({ at, entry: structuredClone(entry), place, replacedAt });
  entries.sort((a, b) => a.place - b.place);
  const older = entries.findLast((each) => each.place < place && isOfIt(each));
  if (older) older.replacedAt = place;
}

function isSame(one: MemoryScope, other: MemoryScope): boolean {
  return one.tenant === other.tenant && one.scope === other.scope;
}

function hasExpired({ expiresAt }: MemoryEntry, now: EpochMs): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= now;
}

function checkMemory({ runId, events, memory = [] }: WorkflowAppend): void {
  const eventsBySequence = new Map(events.map((event) => [event.sequence, event]));
  for (const { entry, sequence } of memory) {
    const event = eventsBySequence.get(sequence);
    assertInvariant(
      event?.type === "memory.written" && event.payload.memoryId === entry.id,
      `no memory.written tells of the write at ${runId}:${sequence}`,
    );
    eventsBySequence.delete(sequence);
    assertInvariant(!hasBadExpiry(entry), `the expiry of the write at ${runId}:${sequence} is no time`);
  }
}

function hasBadExpiry({ expiresAt }: MemoryWrite["entry"]): boolean {
  return expiresAt !== undefined && Number.isNaN(Date.parse(expiresAt));
}

function putDefinition(ledger: MemoryWorkflowLedger, definition: StoredDefinition): void {
  const { sha256, tenant, workflowId, text } = definition;
  assertInvariant(hash("sha256", text) === sha256, `a definition of ${workflowId} comes with another hash`);
  ledger.definitions.set(sha256, text);
  if (tenant !== undefined) ledger.registrations.push({ sha256, tenant, workflowId, text });
}

function journalOf(ledger: MemoryWorkflowLedger, answer: Answer): MemoryJournal {
  /** Newest first; of each id the newest, unless that has expired. */
  const listEntries = (
    at: MemoryScope,
    { now, asOf }: { now: EpochMs; asOf?: MemoryAsOf },
  ): MemoryEntry[] => {
    const before = asOf ? placeOf(ledger, asOf) : Number.POSITIVE_INFINITY;
    return ledger.entries
      .filter(
        ({ place, replacedAt, ...each }) => place < before && replacedAt >= before && isSame(each.at, at),
      )
      .map(({ entry }) => entry)
      .filter((entry) => !hasExpired(entry, now))
      .toReversed();
  };
  return {
    list: (at, { tag, limit, ...query }) =>
      answer(() =>
        listEntries(at, query)
          .filter(({ tags }) => tag === undefined || tags.includes(tag))
          .slice(0, limit),
      ),
    get: (at, id, query) => answer(() => listEntries(at, query).find((entry) => entry.id === id)),
    deleteExpired: (time, limit) =>
      answer(() => {
        const readExpiry = ({ entry: { expiresAt } }: Entry): number =>
          expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
        const old = ledger.entries
          .filter((entry) => readExpiry(entry) < time)
          .toSorted((a, b) => readExpiry(a) - readExpiry(b))
          .slice(0, limit);
        for (const entry of old) ledger.entries.splice(ledger.entries.indexOf(entry), 1);
        return old.length;
      }),
  };
}

/** Nothing is before any event of a run that is not there. */
function placeOf({ runs }: MemoryWorkflowLedger, { runId, sequence }: MemoryAsOf): number {
  const places = runs.get(runId)?.places ?? [];
  return places[sequence] ?? (places.at(-1) ?? 0) + 1;
}

function requestsOf({ requests }: MemoryWorkflowLedger, answer: Answer): RequestLog {
  const nameKey = ({ tenant, endpoint, key }: RequestKey): string => JSON.stringify([tenant, endpoint, key]);
  return {
    begin: (request) =>
      answer((): KeyedRequestStart => {
        const kept = requests.get(nameKey(request));
        if (!kept) {
          requests.set(nameKey(request), { request, leaseUntilMs: request.leaseUntilMs });
          return { kind: "new", subject: request.subject };
        }
        if (kept.request.digest !== request.digest) return { kind: "mismatch" };
        if (kept.answer) return { kind: "answered", answer: kept.answer };
        if (kept.leaseUntilMs > request.now) return { kind: "in_flight" };
        kept.leaseUntilMs = request.leaseUntilMs;
        return { kind: "new", subject: kept.request.subject };
      }),
    finish: (key, { status, body }) =>
      answer(() => {
        const kept = requests.get(nameKey(key));
        if (kept) kept.answer ??= { status, body };
      }),
    release: (key) =>
      answer(() => {
        const kept = requests.get(nameKey(key));
        const isHeld = key.leaseUntilMs === undefined || kept?.leaseUntilMs === key.leaseUntilMs;
        if (kept && !kept.answer && isHeld) requests.delete(nameKey(key));
      }),
    lapse: (key) =>
      answer(() => {
        const kept = requests.get(nameKey(key));
        if (kept && !kept.answer && kept.leaseUntilMs === key.leaseUntilMs) kept.leaseUntilMs = 0 as EpochMs;
      }),
    deleteBefore: (time, limit) =>
      answer(() => {
        const old = [...requests]
          .filter(([, { request }]) => request.now < time)
          .toSorted(([, a], [, b]) => a.request.now - b.request.now)
          .slice(0, limit);
        for (const [key] of old) requests.delete(key);
        return old.length;
      }),
  };
}
