/** Owns: what a suite of `WorkflowStore` is given to test, and the runs that it appends. */
import { hash } from "node:crypto";
import {
  formatTimestamp,
  type CoordinationId,
  type EpochMs,
} from "../../src/agents/coordination/contracts/ids.ts";
import { findEventId, type RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { WorkflowStatus } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  MemoryEntry,
  MemoryScope,
  StoredDefinition,
  WorkflowAppend,
  WorkflowStore,
} from "../../src/agents/coordination/ports/workflow-store.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";

export interface TestedWorkflows {
  readonly workflows: WorkflowStore;
  close(): Promise<void>;
}

/** One ledger, empty at first, that any number of stores can be opened on. */
export interface TestedWorkflowLedger extends AsyncDisposable {
  open(): Promise<TestedWorkflows>;
}

export interface SpoilableLedger extends TestedWorkflowLedger {
  /** Damages what is stored, behind the back of every store. */
  spoil(runId: CoordinationId, how: LedgerDamage): Promise<void>;
}

/** A change of stored rows that no store made. */
export type LedgerDamage =
  | { readonly kind: "change" | "remove"; readonly sequence: number }
  /** As somebody does who knows the hashes. */
  | { readonly kind: "garble"; readonly sequence: number }
  | { readonly kind: "origin"; readonly origin: unknown };

/** A new ledger with one workflow store opened on it. */
export interface WorkflowStoreFixture extends AsyncDisposable {
  readonly ledger: TestedWorkflowLedger;
  readonly store: WorkflowStore;
}

export type Open = () => Promise<WorkflowStoreFixture>;

export type OpenSpoilable = () => Promise<WorkflowStoreFixture & { readonly ledger: SpoilableLedger }>;

/** Returns a way to open the store of a new ledger, which closes with it. */
export function openTested(create: () => Promise<TestedWorkflowLedger>): Open {
  return async () => {
    const ledger = await create();
    const opened = await ledger.open();
    return {
      ledger,
      store: opened.workflows,
      [Symbol.asyncDispose]: async () => {
        await opened.close();
        await ledger[Symbol.asyncDispose]();
      },
    };
  };
}

export const NOW = TEST_EPOCH_MS as EpochMs;
export const SOON = timeAt(60_000);

/** A time of the test, `ms` after its beginning. */
export function timeAt(ms: number): EpochMs {
  return (TEST_EPOCH_MS + ms) as EpochMs;
}

export function nameWorkflowRun(name: string): CoordinationId {
  return `run-${name}` as CoordinationId;
}

export function readAll(store: WorkflowStore, runId: CoordinationId): Promise<WorkflowEvent[]> {
  return store.read(runId, { from: 0, limit: 10_000 });
}

/** The status that an append leaves, and the memory entries that it writes. */
export interface AppendAdditions {
  readonly status?: WorkflowStatus;
  /** Entries that the append writes to memory, each told by an event behind the drafts. */
  readonly entries?: readonly MemoryEntry[];
  readonly scope?: MemoryScope;
}

/** Writes the appends of one run, one after the other. */
export interface WorkflowAuthor {
  readonly runId: CoordinationId;
  append(drafts: readonly WorkflowDraft[], more?: AppendAdditions): WorkflowAppend;
  /** As `append`, but the next one has the same place. */
  propose(drafts: readonly WorkflowDraft[], more?: AppendAdditions): WorkflowAppend;
}

export const SCOPE: MemoryScope = { tenant: "acme", scope: "notes" };

/** `origin`: of a fork. */
export function createWorkflowAuthor(name: string, origin?: RunOrigin): WorkflowAuthor {
  const runId = nameWorkflowRun(name);
  let length = 0;
  const propose = (drafts: readonly WorkflowDraft[], more: AppendAdditions = {}): WorkflowAppend => {
    const { status = "running", entries = [], scope: at = SCOPE } = more;
    const first = length + drafts.length;
    const events = [...drafts, ...entries.map((entry) => createWritten(entry))].map((draft, index) =>
      eventOf({ runId, origin }, length + index, draft),
    );
    return {
      runId,
      events,
      ...(origin && length === 0 && { origin }),
      summary: {
        kind: "workflow",
        status,
        tenant: "acme",
        workflowId: `wf-${name}`,
        driver: "driver-1",
        createdAtMs: NOW,
      },
      ...(entries.length > 0 && {
        memory: entries.map((entry, index) => ({ at, entry, sequence: first + index })),
      }),
    };
  };
  return {
    runId,
    propose,
    append: (drafts, more) => {
      const request = propose(drafts, more);
      length += request.events.length;
      return request;
    },
  };
}

function eventOf(
  { runId, origin }: { readonly runId: CoordinationId; readonly origin: RunOrigin | undefined },
  sequence: number,
  draft: WorkflowDraft,
): WorkflowEvent {
  const eventId = findEventId(runId, origin, sequence);
  return { ...draft, eventId, runId, sequence, timestamp: formatTimestamp(timeAt(sequence)) };
}

function createWritten({ id, tags }: MemoryEntry): WorkflowDraft {
  return { type: "memory.written", payload: { memoryRef: "notes", memoryId: id, tags: [...tags] } };
}

export function createRunStarted(workflowId = "wf"): WorkflowDraft {
  return {
    type: "run.started",
    payload: {
      workflowId,
      inputs: { text: "ünïcode 🜁", list: [1, null, { deep: true }] },
      transport: "rest",
      owner: { tenant: "acme", principal: "ann" },
      definition: definitionOf(workflowId).sha256,
      memoryScope: "notes",
    },
  };
}

export function createNodeStarted(nodeId: string): WorkflowDraft {
  return { type: "node.started", nodeId, payload: { nodeId, typeId: "core.noop", attempt: 0 } };
}

export const COMPLETED: WorkflowDraft = { type: "run.completed", payload: { outputs: { answer: 42 } } };

export function branchOf(sourceRunId: CoordinationId, name: string, fromSeq: number): RunOrigin {
  return {
    mode: "branch",
    sourceRunId,
    fromSeq,
    until: fromSeq,
    identity: nameWorkflowRun(name),
    ids: [{ before: fromSeq, runId: sourceRunId }],
  };
}

/** A run that was begun, and the append that began it. */
export function beginRun(name: string): {
  readonly author: WorkflowAuthor;
  readonly request: WorkflowAppend;
} {
  const author = createWorkflowAuthor(name);
  return { author, request: author.append([createRunStarted(), createNodeStarted("first")]) };
}

/** All of a short run in one append. */
export function createWholeRun(name: string): WorkflowAppend {
  return createWorkflowAuthor(name).append([createRunStarted(), createNodeStarted("only"), COMPLETED], {
    status: "completed",
  });
}

export function definitionOf(workflowId: string, tenant?: string): StoredDefinition {
  const text = JSON.stringify({ id: workflowId, nodes: [] });
  return { sha256: hash("sha256", text), workflowId, text, ...(tenant !== undefined && { tenant }) };
}

export function createMemoryEntry(id: string, more: Partial<MemoryEntry> = {}): MemoryEntry {
  return { id, content: `content of ${id}`, tags: [], createdAt: formatTimestamp(NOW), ...more };
}
