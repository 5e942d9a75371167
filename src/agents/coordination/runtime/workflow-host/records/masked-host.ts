/**
 * Owns: the secrets that callers say to a host of runs: none reaches a run, a definition, a kept answer or a message.
 * Answers of models, tools and peers are masked where they become events (`driving/plan-runs.ts`).
 */
import type { RequestLog } from "../../../ports/workflow-store.ts";
import { maskText, maskValue, type Secrets } from "./mask-secrets.ts";
import type { HostAnswer, CreateRun, ForkRun, TenantWorkspace, WorkflowHost } from "./workflow-host.ts";

/**
 * Wraps a workflow host: secrets are masked in requests of callers, in refusals and in answers that are kept for
 * repeated requests.
 */
export function createMaskedHost(host: WorkflowHost, secrets: Secrets): WorkflowHost {
  const maskAnswer = async <T>(answering: Promise<HostAnswer<T>>): Promise<HostAnswer<T>> => {
    const answered = await answering;
    return answered.kind === "refused" ? maskValue(answered, secrets) : answered;
  };
  return {
    ...host,
    // Known when the host listens.
    get hostId() {
      return host.hostId;
    },
    create: (caller, request) => maskAnswer(host.create(caller, maskRequest(request, secrets))),
    fork: (caller, request) => maskAnswer(host.fork(caller, maskOverlay(request, secrets))),
    cancel: (caller, runId, request) => maskAnswer(host.cancel(caller, runId, maskValue(request, secrets))),
    pause: (caller, runId, request) => maskAnswer(host.pause(caller, runId, maskValue(request, secrets))),
    resolve: (caller, runId, question, value) =>
      maskAnswer(host.resolve(caller, runId, question, maskValue(value, secrets))),
    resolveToken: (token, value) => maskAnswer(host.resolveToken(token, maskValue(value, secrets))),
    register: (caller, definition) => maskAnswer(host.register(caller, maskValue(definition, secrets))),
    runAgent: (caller, agentRun, signal) =>
      maskAnswer(host.runAgent(caller, maskRequest(agentRun, secrets), signal)),
    workflow: (caller, workflowId) => maskAnswer(host.workflow(caller, workflowId)),
    workspace: (caller, owner) => maskWorkspaceRefusals(host.workspace(caller, owner), maskAnswer),
    requests: maskKeptAnswers(host.requests, secrets),
  };
}

type MaskAnswer = <T>(answering: Promise<HostAnswer<T>>) => Promise<HostAnswer<T>>;

function maskWorkspaceRefusals(workspace: TenantWorkspace, maskAnswer: MaskAnswer): TenantWorkspace {
  return {
    list: (query) => maskAnswer(workspace.list(query)),
    read: (path, version) => maskAnswer(workspace.read(path, version)),
    write: (path, file) => maskAnswer(workspace.write(path, file)),
    remove: (path, when) => maskAnswer(workspace.remove(path, when)),
  };
}

function maskKeptAnswers(requests: RequestLog, secrets: Secrets): RequestLog {
  return {
    begin: (request) => requests.begin(request),
    finish: (key, { status, body }) => requests.finish(key, { status, body: maskText(body, secrets) }),
    release: (key) => requests.release(key),
    lapse: (key) => requests.lapse(key),
    deleteBefore: (time, limit) => requests.deleteBefore(time, limit),
  };
}

type TextFields = Partial<Pick<CreateRun, "inputs" | "configurable" | "tags" | "metadata" | "scopeId">>;

const TEXT_FIELDS = ["inputs", "configurable", "tags", "metadata", "scopeId"] as const;

/** Masks the fields of a request that hold texts. Ids of workflows, runs and traces are names, and stay as they are. */
function maskRequest<T extends TextFields>(request: T, secrets: Secrets): T {
  const texts = Object.fromEntries(
    TEXT_FIELDS.flatMap((name) => (request[name] === undefined ? [] : [[name, request[name]] as const])),
  );
  return { ...request, ...maskValue(texts, secrets) };
}

function maskOverlay(request: ForkRun, secrets: Secrets): ForkRun {
  return request.overlay ? { ...request, overlay: maskValue(request.overlay, secrets) } : request;
}
