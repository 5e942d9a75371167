/** Owns: a workflow host that holds runs in memory and does only what a test tells it to, for the rules of HTTP. */
import type { CoordinationId, EventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  hasRunEnded,
  type WorkflowStatus,
} from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  KeyedRequestStart,
  KeptAnswer,
  RequestLog,
} from "../../src/agents/coordination/ports/workflow-store.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import type {
  HostAnswer,
  Caller,
  CreatedRun,
  CreateRun,
  HostErrorCode,
  HostRefusal,
  TenantWorkspace,
  WorkflowHost,
} from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import {
  createOpenWopApp,
  type OpenWopApp,
  type OpenWopDependencies,
} from "../../src/plugins/openwop/app.ts";
import { DEFAULTS } from "../../src/plugins/openwop/http/advertised.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";

export const TOKEN = "alpha-token-0123456789";
export const OTHER_TOKEN = "beta-token-0123456789";
export const BEARER = { authorization: `Bearer ${TOKEN}` };

export interface FakeRun {
  readonly runId: string;
  readonly tenant: string;
  status: WorkflowStatus;
  readonly events: WorkflowEvent[];
}

export interface FakeHost extends WorkflowHost {
  readonly runs: Map<string, FakeRun>;
  /** Requests, in order. */
  readonly created: { readonly caller: Caller; readonly request: CreateRun }[];
  readonly watching: () => number;
  /** How often events were read. */
  readonly reads: () => number;
  /** Appends an event, and wakes who watches. */
  append(runId: string, type: string, payload?: unknown): void;
  /** Throws from now on where it is asked for anything. */
  fail(error: unknown): void;
  /** Answers no request for a run before the returned function is called. */
  holdCreating(): () => void;
  put(runId: string, tenant?: string): FakeRun;
}

function refuse(code: HostErrorCode, message: string, details?: Record<string, unknown>): HostRefusal {
  return { kind: "refused", code, message, ...(details && { details }) };
}

function answerDone<T>(value: T): HostAnswer<T> {
  return { kind: "done", value };
}

const NOWHERE = refuse("not_found", "There is no such run.");

const answerNowhere = (): Promise<HostRefusal> => Promise.resolve(NOWHERE);
const NO_FILES: TenantWorkspace = {
  list: () => Promise.resolve(answerDone([])),
  read: answerNowhere,
  write: answerNowhere,
  remove: answerNowhere,
};

const NOOP = {
  id: "conformance-noop",
  name: "noop",
  version: "1.0.0",
  edges: [],
  triggers: [],
  variables: [],
  nodes: [
    { id: "noop", typeId: "core.noop", name: "noop", position: { x: 0, y: 0 }, config: {}, inputs: {} },
  ],
  metadata: {},
  settings: {},
} as WorkflowDefinition;

export function createFakeHost(): FakeHost {
  const runs = new Map<string, FakeRun>();
  const watchers = new Map<string, Set<() => void>>();
  const created: { caller: Caller; request: CreateRun }[] = [];
  let failure: { readonly error: unknown } | undefined;
  let mayCreate: Promise<unknown> = Promise.resolve();
  let reads = 0;
  let made = 0;
  const findOwnRun = (caller: Caller, runId: string): FakeRun | undefined => {
    if (failure) throw failure.error;
    const run = runs.get(runId);
    return run?.tenant === caller.tenant ? run : undefined;
  };
  const withRun = <T>(
    caller: Caller,
    runId: string,
    use: (run: FakeRun) => HostAnswer<T>,
  ): Promise<HostAnswer<T>> =>
    Promise.resolve().then(() => {
      const run = findOwnRun(caller, runId);
      return run ? use(run) : NOWHERE;
    });
  const showRun = ({ runId, status }: FakeRun): HostAnswer<CreatedRun> =>
    answerDone({ runId: runId as CoordinationId, status });
  const move = (run: FakeRun, status: WorkflowStatus, type: string): HostAnswer<CreatedRun> => {
    run.status = status;
    host.append(run.runId, type);
    return showRun(run);
  };
  const host: FakeHost = {
    hostId: "https://host.test",
    runs,
    created,
    requests: createMemoryRequests(),
    agents: () => [],
    runAgent: () => Promise.resolve(NOWHERE),
    workspace: () => NO_FILES,
    watching: () => [...watchers.values()].reduce((sum, { size }) => sum + size, 0),
    reads: () => reads,
    fail: (error) => {
      failure = { error };
    },
    holdCreating: () => {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      mayCreate = promise;
      return () => resolve(undefined);
    },
    put: (runId, tenant = "alpha") => {
      const run: FakeRun = { runId, tenant, status: "running", events: [] };
      runs.set(runId, run);
      host.append(runId, "run.started", { workflowId: "conformance-noop" });
      return run;
    },
    append: (runId, type, payload = {}) => {
      const { events } = runs.get(runId)!;
      const sequence = events.length;
      const timestamp = "2026-01-02T03:04:05.678Z";
      const eventId = `${runId}:${sequence}` as EventId;
      events.push({ eventId, runId, sequence, type, timestamp, payload } as unknown as WorkflowEvent);
      for (const wake of watchers.get(runId) ?? []) wake();
    },
    create: async (caller, request) => {
      await mayCreate;
      if (failure) throw failure.error;
      if (request.workflowId !== "conformance-noop") return refuse("workflow_not_found", "No such workflow.");
      created.push({ caller, request });
      const runId = request.runId ?? `run-${(made += 1)}`;
      return showRun(runs.get(runId) ?? host.put(runId, caller.tenant));
    },
    fork: (caller, { sourceRunId, mode, fromSeq = 0 }) =>
      withRun(caller, sourceRunId, ({ runId }) => {
        const forked = host.put(`run-${(made += 1)}`, caller.tenant).runId as CoordinationId;
        return answerDone({ runId: forked, sourceRunId: runId as CoordinationId, fromSeq, mode });
      }),
    snapshot: (caller, runId) =>
      withRun(caller, runId, ({ status }) => answerDone({ runId, workflowId: "conformance-noop", status })),
    events: (caller, runId, { from, limit }) =>
      withRun(caller, runId, ({ events, status }) => {
        reads += 1;
        const page = events.slice(from, from + limit);
        return answerDone({ events: page, isComplete: hasRunEnded(status) && from + limit >= events.length });
      }),
    watch: (runId, wake) => {
      const all = watchers.get(runId) ?? new Set();
      watchers.set(runId, all.add(wake));
      return () => {
        all.delete(wake);
      };
    },
    changed: (runId) => {
      for (const wake of watchers.get(runId) ?? []) wake();
    },
    cancel: (caller, runId) =>
      withRun(caller, runId, (run) =>
        hasRunEnded(run.status) ? showRun(run) : move(run, "cancelled", "run.cancelled"),
      ),
    pause: (caller, runId) =>
      withRun(caller, runId, (run) =>
        run.status === "running"
          ? move(run, "paused", "run.paused")
          : refuse("run_not_pausable", "The run does not run.", { runStatus: run.status }),
      ),
    resume: (caller, runId) =>
      withRun(caller, runId, (run) =>
        run.status === "paused"
          ? move(run, "running", "run.resumed")
          : refuse("run_not_paused", "The run is not paused.", { runStatus: run.status }),
      ),
    question: answerNowhere,
    resolve: (caller, runId, { nodeId }) =>
      withRun(caller, runId, ({ status }) =>
        nodeId === "gate"
          ? answerDone({ runId, nodeId, interruptId: "i1", status })
          : refuse("not_found", "No interrupt."),
      ),
    inspectToken: (token) =>
      Promise.resolve(
        token === "good"
          ? answerDone({
              interruptId: "i1",
              runId: "run-1",
              nodeId: "gate",
              kind: "approval",
              key: "gate:1",
              data: { artifactId: "a", artifactType: "t", title: "Go?", actions: ["accept"] },
              askedAt: "2026-01-02T03:04:05.678Z",
            })
          : token === "late"
            ? refuse("interrupt_expired", "It is too late.")
            : refuse("not_found", "No such interrupt."),
      ),
    resolveToken: (token) =>
      Promise.resolve(
        token === "good"
          ? answerDone({ runId: "run-1", nodeId: "gate", interruptId: "i1", status: "running" as const })
          : refuse("interrupt_expired", "It is too late."),
      ),
    ancestry: (caller, runId) =>
      withRun(caller, runId, () => answerDone({ runId, hostId: "https://host.test", parent: null })),
    workflow: (_caller, workflowId) =>
      Promise.resolve(
        workflowId === NOOP.id ? answerDone(NOOP) : refuse("workflow_not_found", "No such workflow."),
      ),
    workflowIds: () => [NOOP.id],
    register: (_caller, definition) =>
      Promise.resolve(answerDone({ workflowId: (definition as { workflowId: string }).workflowId })),
    memory: () => Promise.resolve([]),
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
  return host;
}

function createMemoryRequests(): RequestLog {
  const kept = new Map<
    string,
    { digest: string; subject: string; answer?: KeptAnswer; hasLapsed?: boolean }
  >();
  const nameKey = (key: { tenant: string; endpoint: string; key: string }): string =>
    JSON.stringify([key.tenant, key.endpoint, key.key]);
  return {
    begin: (request): Promise<KeyedRequestStart> => {
      const found = kept.get(nameKey(request));
      if (!found) {
        kept.set(nameKey(request), { digest: request.digest, subject: request.subject });
        return Promise.resolve({ kind: "new", subject: request.subject });
      }
      if (found.digest !== request.digest) return Promise.resolve({ kind: "mismatch" });
      const { answer } = found;
      if (answer) return Promise.resolve({ kind: "answered", answer });
      if (found.hasLapsed !== true) return Promise.resolve({ kind: "in_flight" });
      found.hasLapsed = false;
      return Promise.resolve({ kind: "new", subject: found.subject });
    },
    finish: (key, answer) => {
      kept.get(nameKey(key))!.answer = answer;
      return Promise.resolve();
    },
    release: (key) => {
      kept.delete(nameKey(key));
      return Promise.resolve();
    },
    lapse: (key) => {
      kept.get(nameKey(key))!.hasLapsed = true;
      return Promise.resolve();
    },
    deleteBefore: () => Promise.resolve(0),
  };
}

export interface FakeFace {
  readonly app: OpenWopApp;
  readonly host: FakeHost;
  readonly clock: FakeClock;
  readonly logged: LoggedLine[];
}

export const ADVERTISED = { ...DEFAULTS, implementation: { name: "test", version: "0.0.0" } };

export const TOKENS = [
  { token: TOKEN, tenant: "alpha" },
  { token: OTHER_TOKEN, tenant: "beta", principal: "bob" },
];

export function createFakeFace(
  options: Partial<OpenWopDependencies> & { readonly clock?: Clock } = {},
): FakeFace {
  const host = createFakeHost();
  const clock = createFakeClock();
  const { logger, logged } = createRecordingLogger();
  const app = createOpenWopApp({
    host,
    clock,
    logger,
    advertised: ADVERTISED,
    tokens: TOKENS,
    ...options,
  });
  return { app, host, clock, logged };
}

export interface LoggedLine {
  readonly level: keyof Logger;
  readonly fields: unknown;
  readonly message: string;
}

export function createRecordingLogger(): { logger: Logger; logged: LoggedLine[] } {
  const logged: LoggedLine[] = [];
  const record =
    (level: keyof Logger) =>
    (fields: unknown, message: string): void => {
      logged.push({ level, fields, message });
    };
  const logger = {
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
  };
  return { logger, logged };
}

/** A POST with a token and a JSON body. */
export function createPost(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers: { ...BEARER, "content-type": "application/json", ...headers },
  };
}

export interface ErrorBody {
  readonly error: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
