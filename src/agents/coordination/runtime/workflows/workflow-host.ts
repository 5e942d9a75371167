/**
 * Owns: what an OpenWOP host does with runs, without HTTP: every method is one row of the REST surface. What is not done
 * is a refusal, whose code the HTTP face maps to a status; nothing here knows one.
 */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import type { WorkflowDefinition } from "../../contracts/workflow-definition.ts";
import type { ParentRun, WorkflowEvent } from "../../contracts/workflow-events.ts";
import type { WorkflowStatus } from "../../contracts/workflow-summary.ts";
import type { MemoryEntry, MemoryQuery, RequestLog } from "../../ports/workflow-store.ts";

/** Who asks. Every method sees the runs of that tenant only. */
export interface Caller {
  readonly tenant: string;
  readonly principal: string;
}

/** Why something is not done: an error code of the protocol (rest-endpoints.md, common error codes). */
export type HostErrorCode =
  | "validation_error"
  | "not_found"
  | "run_already_active"
  | "run_not_paused"
  | "run_not_pausable"
  | "capability_required"
  | "unsupported_stream_mode"
  | "interrupt_not_found"
  | "interrupt_already_resolved"
  | "interrupt_expired"
  | "interrupt_inspect_only"
  | "workflow_not_found"
  | "forbidden"
  | "rate_limited"
  | "unavailable"
  | "internal_error";

export interface HostRefusal {
  readonly kind: "refused";
  readonly code: HostErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export type Answered<T> = { readonly kind: "done"; readonly value: T } | HostRefusal;

export interface CreateRun {
  readonly workflowId: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What the client calls that which the run belongs to; opaque. */
  readonly scopeId?: string;
  /** Chosen for a request with an idempotency key; else the host chooses. Creating a run that exists is reading it. */
  readonly runId?: CoordinationId;
  readonly transport: "rest" | "mcp" | "a2a";
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** Where another host's run started this one. */
  readonly parent?: ParentRun;
}

export interface PauseRun {
  readonly reason?: string;
  /** Absent: `drain-current-node`. */
  readonly drainPolicy?: "immediate" | "drain-current-node";
}

export interface CreatedRun {
  readonly runId: CoordinationId;
  readonly status: WorkflowStatus;
}

/** run-snapshot.schema.json, with the extra fields of the brief. */
export type RunSnapshot = Readonly<Record<string, unknown>> & {
  readonly runId: string;
  readonly workflowId: string;
  readonly status: WorkflowStatus;
};

/** An event of any run of the ledger: of a workflow, or of a coordination of OpenClaw's agents. */
export type HostEvent = WorkflowEvent | RunEvent;

export interface EventPage {
  readonly events: readonly HostEvent[];
  /** Nothing will follow. */
  readonly isComplete: boolean;
}

export interface OpenInterrupt {
  readonly interruptId: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly kind: string;
  readonly key: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly resumeSchema?: Readonly<Record<string, unknown>>;
  /** Signed; absent where whoever looks only looks. */
  readonly interruptToken?: string;
  /** Where the token is answered. */
  readonly callbackUrl?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

export interface ResolvedInterrupt {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  readonly status: WorkflowStatus;
}

export interface Ancestry {
  readonly runId: string;
  readonly hostId: string;
  readonly parent: {
    readonly runId: string;
    readonly hostId: string;
    readonly cause: string;
    readonly wellKnownUrl?: string;
  } | null;
}

/** What the conformance suite asks of a host beyond the protocol. */
export interface WorkflowSeams {
  /** Gives a capability another value until the reset; without a change, only looks. Returns all values that are changed. */
  toggle(
    change?: { readonly name: string; readonly value: unknown } | "reset",
  ): Readonly<Record<string, unknown>>;
  /** Sets variables of a run from outside. */
  setVariables(
    caller: Caller,
    runId: string,
    variables: Readonly<Record<string, unknown>>,
  ): Promise<Answered<{ readonly runId: string }>>;
}

export interface WorkflowHost {
  readonly hostId: string;
  create(caller: Caller, request: CreateRun): Promise<Answered<CreatedRun>>;
  snapshot(caller: Caller, runId: string): Promise<Answered<RunSnapshot>>;
  /** Events from a sequence on, at most `limit`. */
  events(
    caller: Caller,
    runId: string,
    range: { readonly from: number; readonly limit: number },
  ): Promise<Answered<EventPage>>;
  /**
   * Calls `wake` whenever the run may have new events, also those of other processes, until the returned function is
   * called. Costs nothing while nothing happens.
   */
  watch(runId: string, wake: () => void): () => void;
  cancel(caller: Caller, runId: string, request: { readonly reason?: string }): Promise<Answered<CreatedRun>>;
  pause(caller: Caller, runId: string, request: PauseRun): Promise<Answered<CreatedRun>>;
  resume(caller: Caller, runId: string): Promise<Answered<CreatedRun>>;
  /** Answers the open interrupt of a node. */
  resolve(
    caller: Caller,
    runId: string,
    nodeId: string,
    resumeValue: unknown,
  ): Promise<Answered<ResolvedInterrupt>>;
  /** The token is the authority. */
  inspectToken(token: string): Promise<Answered<OpenInterrupt>>;
  resolveToken(token: string, resumeValue: unknown): Promise<Answered<ResolvedInterrupt>>;
  ancestry(caller: Caller, runId: string): Promise<Answered<Ancestry>>;
  workflow(caller: Caller, workflowId: string): Promise<Answered<WorkflowDefinition>>;
  /** Ids of the workflows that everybody may run. */
  workflowIds(): readonly string[];
  /** Registers a workflow for a tenant (a test seam of the protocol). */
  register(caller: Caller, definition: unknown): Promise<Answered<{ readonly workflowId: string }>>;
  memory(
    caller: Caller,
    scope: string,
    query: Omit<MemoryQuery, "now" | "asOf">,
  ): Promise<readonly MemoryEntry[]>;
  readonly requests: RequestLog;
  /** There where test seams were asked for. */
  readonly seams?: WorkflowSeams;
  /** Goes on with the runs that a process left behind, and beats. Resolves when the first look is done. */
  start(): Promise<void>;
  /** Stops driving; every run goes on from its log with the next process. */
  stop(): Promise<void>;
}
