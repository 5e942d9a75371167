/** Owns: the port to the stored workflow runs: logs, definitions, memory, and requests with an idempotency key. */
import type { CoordinationId, EpochMs } from "../contracts/ids.ts";
import type { RunOrigin } from "../contracts/workflows/run-origin.ts";
import type { WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import type { WorkflowSummary } from "../contracts/workflows/workflow-summary.ts";
import type { RunOwners } from "./run-owners.ts";
import type { RunAppend, RunStore, StoredRun } from "./run-store.ts";
import type { WorkspaceStore, WorkspaceWrite } from "./workspace-store.ts";

/**
 * The logs of workflow runs, and what lies beside them: definitions, memory, workspaces, requests that came with an
 * idempotency key, and which process drives which run. One transaction with the log where it says so.
 *
 * S1 to S4 are those of `RunStore`. The chain of a fork begins with its origin, and its events have the ids that
 * `findEventId` gives them. `append` throws `WORKSPACE_CONFLICT` too.
 */
export interface WorkflowStore extends RunStore<WorkflowEvent, WorkflowSummary, WorkflowAppend> {
  /** Keeps a definition under its hash; storing one twice is storing it once. */
  putDefinition(definition: StoredDefinition): Promise<void>;
  definition(sha256: string): Promise<string | undefined>;
  /** The newest definition that a tenant registered under a workflow id. */
  registered(tenant: string, workflowId: string): Promise<StoredDefinition | undefined>;
  readonly memory: MemoryJournal;
  readonly workspace: WorkspaceStore;
  readonly requests: RequestLog;
  readonly owners: RunOwners;
}

/** Holds all that one append writes to a workflow run's log, with everything that belongs to it, in one transaction. */
export interface WorkflowAppend extends RunAppend<WorkflowEvent, WorkflowSummary> {
  /** Names the source of a fork, with the first append of its log, and never again. */
  readonly origin?: RunOrigin;
  /** In one transaction with the events. */
  readonly memory?: readonly MemoryWrite[];
  /** In one transaction with the events. */
  readonly workspace?: readonly WorkspaceWrite[];
}

/** A workflow run as a listing shows it. */
export type WorkflowEntry = StoredRun<WorkflowSummary>;

/** A definition that a tenant registered, or that a run follows. */
export interface StoredDefinition {
  readonly sha256: string;
  /** Absent: not registered by a tenant, only kept for the runs that follow it. */
  readonly tenant?: string;
  readonly workflowId: string;
  /** JSON. */
  readonly text: string;
}

/** CTI-1: what one tenant keeps under one scope. No other tenant reads it, whatever id it knows. */
export interface MemoryScope {
  readonly tenant: string;
  readonly scope: string;
}

/** memory-entry.schema.json. */
export interface MemoryEntry {
  readonly id: string;
  readonly content: string;
  readonly tags: readonly string[];
  /** ISO 8601. */
  readonly createdAt: string;
  readonly expiresAt?: string;
}

/** A note that is written together with its event. */
export interface MemoryWrite {
  readonly at: MemoryScope;
  readonly entry: MemoryEntry;
  /** Numbers the run's `memory.written` event. */
  readonly sequence: number;
}

/** The place in the log as of which memory is read (RFC 0039, MAE-3): before that event of that run. */
export interface MemoryAsOf {
  readonly runId: CoordinationId;
  readonly sequence: number;
}

/** An entry that has expired at `now` is not there. Newest first. An unknown scope has no entries. */
export interface MemoryJournal {
  list(at: MemoryScope, query: MemoryQuery): Promise<MemoryEntry[]>;
  /** The newest entry with that id. */
  get(
    at: MemoryScope,
    id: string,
    query: { readonly now: EpochMs; readonly asOf?: MemoryAsOf },
  ): Promise<MemoryEntry | undefined>;
  /**
   * Deletes entries that expired before a time, also as of every event; at most `limit`, those that expired first. Entries that they
   * replaced stay replaced.
   */
  deleteExpired(before: EpochMs, limit: number): Promise<number>;
}

/** Which notes a query returns. */
export interface MemoryQuery {
  readonly now: EpochMs;
  readonly limit: number;
  readonly tag?: string;
  readonly asOf?: MemoryAsOf;
}

/** Requests that carried an `Idempotency-Key`, by tenant, endpoint and key. */
export interface RequestLog {
  /** Takes the key for a request, or tells what became of the one that had it. */
  begin(request: KeyedRequest): Promise<KeyedRequestStart>;
  /** The answer that later requests with the key get. */
  finish(key: RequestKey, answer: KeptAnswer): Promise<void>;
  /**
   * Frees the key of a request that failed in a way that may be tried again. A process that names the lease that it had, and has
   * lost, frees nothing.
   */
  release(key: RequestKey & { readonly leaseUntilMs?: EpochMs }): Promise<void>;
  /**
   * Ends the lease of a request whose outcome is not known. The request and its subject stay, so that the next request finds out
   * what the first one did. A process that has lost its lease ends nothing.
   */
  lapse(key: RequestKey & { readonly leaseUntilMs: EpochMs }): Promise<void>;
  /** Forgets what began before; at most `limit`. */
  deleteBefore(time: EpochMs, limit: number): Promise<number>;
}

/** Names a keyed request of a tenant (OpenWOP, idempotency.md). */
export interface RequestKey {
  readonly tenant: string;
  /** Method and route, such as `POST /v1/runs`. */
  readonly endpoint: string;
  readonly key: string;
}

/** A keyed request that is about to be worked on. */
export interface KeyedRequest extends RequestKey {
  /** sha256 over what is asked. */
  readonly digest: string;
  /**
   * The id of the run that it creates, or the question that it answers. It stays with the key, so that after a crash in between
   * the next try creates no second run and answers no other question.
   */
  readonly subject: string;
  readonly now: EpochMs;
  /** Until then nobody else takes the key over. */
  readonly leaseUntilMs: EpochMs;
}

/** The answer that a keyed request got. */
export interface KeptAnswer {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

/** Tells what beginning a keyed request came to: it is new, answered, or under way. */
export type KeyedRequestStart =
  /** `subject` is that of the first try, where one died. */
  | { readonly kind: "new"; readonly subject: string }
  | { readonly kind: "answered"; readonly answer: KeptAnswer }
  | { readonly kind: "in_flight" }
  | { readonly kind: "mismatch" };
