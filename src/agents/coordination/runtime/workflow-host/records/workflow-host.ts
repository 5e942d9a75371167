/**
 * Owns: what an OpenWOP host does with runs, without HTTP: every method is one row of the REST surface. A request that is
 * not done is a refusal, whose code the HTTP face maps to a status; nothing here knows one.
 */
import type { AgentPin } from "../../../contracts/workflows/agent-manifest.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { ForkMode } from "../../../contracts/workflows/run-origin.ts";
import type { RunEvent } from "../../../contracts/run-event.ts";
import type { WorkflowDefinition } from "../../../contracts/workflows/workflow-definition.ts";
import type { AgentSource } from "../../../contracts/workflows/agent-events.ts";
import type { ParentRun, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { WorkflowStatus } from "../../../contracts/workflows/workflow-summary.ts";
import type { MemoryEntry, MemoryQuery, RequestLog } from "../../../ports/workflow-store.ts";
import type { AgentEntry } from "./agent-inventory.ts";

/** Who asks. Every method sees the runs of that tenant only. */
export interface Caller {
  readonly tenant: string;
  readonly principal: string;
  /** Rights of the holder beyond starting runs (RFC 0064). Absent: nobody knows them, and a tool that asks for one is refused. */
  readonly scopes?: readonly string[];
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
  | "mock_provider_forbidden"
  | "workflow_not_found"
  | "invalid_from_seq"
  | "replay_memory_snapshot_unavailable"
  | "workspace_conflict"
  | "workspace_too_large"
  | "forbidden"
  | "rate_limited"
  | "unavailable"
  | "internal_error";

export interface HostRefusal {
  readonly kind: "refused";
  readonly code: HostErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  /** The question was settled by the same answer of the same caller: this is what that was told, or would have been. */
  readonly resolved?: ResolvedInterrupt;
}

/** The value that a request to the host is answered with, or its refusal. */
export type HostAnswer<T> = { readonly kind: "done"; readonly value: T } | HostRefusal;

export interface CreateRun {
  readonly workflowId: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The client's name for the thing that the run belongs to; opaque. */
  readonly scopeId?: string;
  /** Chosen for a request with an idempotency key; else the host chooses. Creating a run that exists is reading it. */
  readonly runId?: CoordinationId;
  readonly transport: "rest" | "mcp" | "a2a";
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** Where another host's run started this one. */
  readonly parent?: ParentRun;
  /** The run is this agent's, and `workflowId` is not read (RFC 0077). */
  readonly agent?: AgentPin & { readonly source: AgentSource };
}

export interface ForkRun {
  readonly sourceRunId: string;
  readonly mode: ForkMode;
  /** The first event that is not simply the source's. A replay begins at 0 without it. */
  readonly fromSeq?: number;
  /** Options of a branch in place of its source's. Tags and metadata: only where it begins at 0. */
  readonly overlay?: Pick<CreateRun, "configurable" | "tags" | "metadata">;
  /** As of `CreateRun`. */
  readonly runId?: CoordinationId;
}

export interface ForkedRun {
  readonly runId: CoordinationId;
  readonly sourceRunId: CoordinationId;
  readonly fromSeq: number;
  readonly mode: ForkMode;
}

export interface AgentRunAsked {
  readonly agentId: string;
  readonly source: AgentSource;
  /** The task. */
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly scopeId?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly traceparent?: string;
}

export interface AgentRun {
  readonly runId: string;
  /** As it ended, or as it waits for somebody; as it is when `signal` aborted. */
  readonly snapshot: RunSnapshot;
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
  /** When it was asked; ISO 8601. */
  readonly askedAt: string;
  readonly resumeSchema?: Readonly<Record<string, unknown>>;
  /** Signed; absent where whoever looks only looks. */
  readonly interruptToken?: string;
  /** Where the token is answered. */
  readonly callbackUrl?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

/** Names a question of a run. */
export interface QuestionPlace {
  readonly nodeId: string;
  /** Absent: whichever question the node asks. */
  readonly interruptId?: string;
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

/** One answer of a model that is played. A refusal has a text, or was stopped for safety. */
export interface ProgrammedAnswer {
  readonly content?: string | undefined;
  readonly stopReason?: string | undefined;
  readonly refusalText?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** A side effect that was played: something that a test can count. */
export interface SideEffect {
  readonly effectId: string;
  readonly runId: string;
  readonly nodeId: string;
}

/** Requests of the conformance suite beyond the protocol. */
export interface WorkflowSeams {
  /** True when a test has taken the capability away. */
  isOff(capability: string): boolean;
  /** Gives a capability another value until the reset; without a change, only looks. Returns all values that are changed. */
  toggle(
    change?: { readonly name: string; readonly value: unknown } | "reset",
  ): Readonly<Record<string, unknown>>;
  /** Sets the played model's answers to a node of the tenant's runs, one for each call, in place of those that were left. */
  programModel(caller: Caller, nodeId: string, answers: readonly ProgrammedAnswer[]): void;
  /** Returns the cache key of a request to a model; `undefined` for anything else. */
  llmCacheKey(
    request: Readonly<Record<string, unknown>>,
  ): { readonly recipe: string; readonly cacheKey: string } | undefined;
  /** Lists the played side effects of nodes for the tenant. */
  sideEffects(caller: Caller): readonly SideEffect[];
  /** Forgets both. */
  forget(caller: Caller): void;
  /** The files that each turn of a run's supervisor was given, in the order of the turns. */
  turnWorkspaces(caller: Caller, runId: string): Promise<HostAnswer<readonly TurnWorkspace[]>>;
  /** Sets variables of a run from outside. */
  setVariables(
    caller: Caller,
    runId: string,
    variables: Readonly<Record<string, unknown>>,
  ): Promise<HostAnswer<{ readonly runId: string }>>;
}

export interface TurnWorkspace {
  readonly iteration: number;
  readonly paths: readonly string[];
}

/** workspace-file.schema.json without its content. */
export interface WorkspaceFileInfo {
  readonly path: string;
  readonly contentType: string;
  readonly version: number;
  readonly etag: string;
  /** ISO 8601. */
  readonly updatedAt: string;
}

export type WorkspaceFile = WorkspaceFileInfo & { readonly content: string };

export interface NewWorkspaceFile {
  readonly content: string;
  readonly contentType?: string;
  /** Tags of which the file must have one, or any file at all; absent: whatever is there. */
  readonly ifMatch?: readonly string[] | "any";
}

/** The tags of which a file must have one to be changed. */
export type FileCondition = Pick<NewWorkspaceFile, "ifMatch">;

/** The files that a tenant's runs share (RFC 0059). */
export interface TenantWorkspace {
  list(query: { readonly prefix?: string }): Promise<HostAnswer<readonly WorkspaceFileInfo[]>>;
  read(path: string, version?: number): Promise<HostAnswer<WorkspaceFile>>;
  write(path: string, file: NewWorkspaceFile): Promise<HostAnswer<WorkspaceFile>>;
  remove(path: string, when: FileCondition): Promise<HostAnswer<{ readonly version: number }>>;
}

export interface WorkflowHost {
  readonly hostId: string;
  create(caller: Caller, request: CreateRun): Promise<HostAnswer<CreatedRun>>;
  snapshot(caller: Caller, runId: string): Promise<HostAnswer<RunSnapshot>>;
  /** Events from a sequence on, at most `limit`. */
  events(
    caller: Caller,
    runId: string,
    range: { readonly from: number; readonly limit: number },
  ): Promise<HostAnswer<EventPage>>;
  /**
   * Calls `wake` whenever the run may have new events, also those of other processes, until the returned function is
   * called. Costs nothing while nothing happens.
   */
  watch(runId: string, wake: () => void): () => void;
  /** Tells that this process appended to a run which this host does not drive: a coordination. */
  changed(runId: string): void;
  /** A new run out of the events of another one (docs/adr/0013). */
  fork(caller: Caller, request: ForkRun): Promise<HostAnswer<ForkedRun>>;
  cancel(
    caller: Caller,
    runId: string,
    request: { readonly reason?: string },
  ): Promise<HostAnswer<CreatedRun>>;
  pause(caller: Caller, runId: string, request: PauseRun): Promise<HostAnswer<CreatedRun>>;
  resume(caller: Caller, runId: string): Promise<HostAnswer<CreatedRun>>;
  /** Returns the open question that is named, without a token; refused where it is settled, or the node asks none. */
  question(caller: Caller, runId: string, question: QuestionPlace): Promise<HostAnswer<OpenInterrupt>>;
  /** Answers an open question; refused where the one that is named is settled, whatever its node asks now. */
  resolve(
    caller: Caller,
    runId: string,
    question: QuestionPlace,
    resumeValue: unknown,
  ): Promise<HostAnswer<ResolvedInterrupt>>;
  /** The token is the authority. */
  inspectToken(token: string): Promise<HostAnswer<OpenInterrupt>>;
  resolveToken(token: string, resumeValue: unknown): Promise<HostAnswer<ResolvedInterrupt>>;
  ancestry(caller: Caller, runId: string): Promise<HostAnswer<Ancestry>>;
  workflow(caller: Caller, workflowId: string): Promise<HostAnswer<WorkflowDefinition>>;
  /** Ids of the workflows that everybody may run. */
  workflowIds(): readonly string[];
  /** Registers a workflow for a tenant (a test seam of the protocol). */
  register(caller: Caller, definition: unknown): Promise<HostAnswer<{ readonly workflowId: string }>>;
  memory(
    caller: Caller,
    scope: string,
    query: Omit<MemoryQuery, "now" | "asOf">,
  ): Promise<readonly MemoryEntry[]>;
  /** The agents of manifests that are installed, by their ids. */
  agents(): readonly AgentEntry[];
  /**
   * Starts the agent's run, and resolves when it has ended or waits for people. An abort ends the waiting only: the run goes on,
   * and `cancel` ends it.
   */
  runAgent(caller: Caller, agentRun: AgentRunAsked, signal: AbortSignal): Promise<HostAnswer<AgentRun>>;
  /** `owner`: for tests, of a workspace of its own within the tenant. */
  workspace(caller: Caller, owner?: string): TenantWorkspace;
  readonly requests: RequestLog;
  /** There where the host has a conformance play. */
  readonly seams?: WorkflowSeams;
  /** Goes on with the runs that a process left behind, and beats. Resolves when the first look is done. */
  start(): Promise<void>;
  /** Stops driving; every run goes on from its log with the next process. */
  stop(): Promise<void>;
}
