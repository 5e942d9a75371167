/** Owns: the host of workflow runs: one method for each thing that may be asked of it. */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { WorkflowDefinition } from "../../contracts/workflows/workflow-definition.ts";
import { requestCancel, endOrphan, requestPause, requestResume } from "./requests/control-runs.ts";
import { createInventoryEntry } from "./records/agent-inventory.ts";
import { createRun, findWorkflowRefusal } from "./driving/create-run.ts";
import { refuse } from "./records/refuse.ts";
import { forkRun } from "./requests/fork-run.ts";
import type { HostCollaborators } from "./requests/hosting.ts";
import { createHosting } from "./requests/create-hosting.ts";
import { recordQuestionAnswer, findOpenQuestion, inspectToken, resolveToken } from "./requests/interrupts.ts";
import { describeAcceptedRun, readAncestry, readRunEvents, readRunSnapshot } from "./requests/read-runs.ts";
import { createRecovery, type RunRecovery } from "./driving/recover-runs.ts";
import { registerWorkflow } from "./requests/register-workflow.ts";
import { createTenantWorkspace } from "./requests/tenant-workspace.ts";
import { runAgent, type AgentRunHost } from "./agents/run-agent.ts";
import type { HostAnswer, Caller, CreatedRun, CreateRun, WorkflowHost } from "./records/workflow-host.ts";
import { createTurnsByName } from "../../std/turns-by-name.ts";
import type { WorkflowHostDependencies } from "./records/workflow-dependencies.ts";
import { createOwnWorkspaceScope } from "./records/run-workspace.ts";

/** Lists the workflows that this host would not refuse to run, and logs a warning for each other one. */
function listRunnableWorkflowIds(hosting: HostCollaborators): readonly string[] {
  return hosting.definitions.flatMap((definition) => {
    const { id } = definition;
    const refusal = describeRefusal(hosting, definition);
    if (refusal === undefined) return [id];
    hosting.logger.warn({ workflowId: id }, `the workflow ${id} is not offered: ${refusal}`);
    return [];
  });
}

/** Describes why this host would refuse to run a workflow; `undefined` where it would not. */
function describeRefusal(
  { book, settings, agentBook }: HostCollaborators,
  definition: WorkflowDefinition,
): string | undefined {
  const { workflow, problems } = book.compile(definition);
  return workflow ? findWorkflowRefusal({ settings, agentBook }, workflow)?.message : problems.join("; ");
}

/** Starts a run, and returns what its caller is told of it. */
async function createAcceptedRun(
  hosting: HostCollaborators,
  caller: Caller,
  request: CreateRun,
): Promise<HostAnswer<CreatedRun>> {
  const created = await createRun(hosting, caller, request);
  return created.kind === "done" ? { kind: "done", value: describeAcceptedRun(created.value) } : created;
}

async function readDefinition(
  { book }: HostCollaborators,
  tenant: string,
  workflowId: string,
): Promise<HostAnswer<WorkflowDefinition>> {
  const found = await book.workflow(tenant, workflowId);
  return found
    ? { kind: "done", value: found.definition }
    : refuse("not_found", `there is no workflow ${workflowId}`);
}

async function stopHost({ watching, driver }: HostCollaborators, recovery: RunRecovery): Promise<void> {
  watching.stop();
  recovery.stop();
  await driver.stop();
  await recovery.leave();
}

/** Returns the requests that the run of one agent makes of its host. */
function createAgentRuns(hosting: HostCollaborators): AgentRunHost {
  return {
    create: (caller, request) => createAcceptedRun(hosting, caller, request),
    snapshot: (caller, runId) => readRunSnapshot(hosting, caller, runId),
    watch: (runId, wake) => hosting.watching.watch(runId, wake),
  };
}

/** Creates the host of workflow runs from its parts: the requests of callers, and what starts and stops it. */
export function createWorkflowHost(dependencies: WorkflowHostDependencies): WorkflowHost {
  const hosting = createHosting(dependencies);
  const recovery = createRecovery({ ...hosting, orphaned: (entry) => endOrphan(hosting, entry) });
  const runnable = listRunnableWorkflowIds(hosting);
  const forkTurns = createTurnsByName();
  return {
    // Known when the host listens.
    get hostId() {
      return dependencies.settings.hostId;
    },
    create: (caller, request) => createAcceptedRun(hosting, caller, request),
    snapshot: (caller, runId) => readRunSnapshot(hosting, caller, runId),
    events: (caller, runId, range) => readRunEvents(hosting, caller, runId, range),
    watch: (runId, wake) => hosting.watching.watch(runId, wake),
    changed: (runId) => hosting.watching.changed(runId),
    // One at a time for each tenant: a fork may copy a whole run, and others are to have their turn in between.
    fork: (caller, request) => forkTurns.run(caller.tenant, () => forkRun(hosting, caller, request)),
    cancel: (caller, runId, { reason }) => requestCancel(hosting, caller, { runId, reason }),
    pause: (caller, runId, request) => requestPause(hosting, caller, runId, request),
    resume: (caller, runId) => requestResume(hosting, caller, runId),
    question: ({ tenant }, runId, question) =>
      findOpenQuestion(hosting, { ...question, runId: runId as CoordinationId, tenant }),
    resolve: ({ tenant, principal }, runId, question, value) =>
      recordQuestionAnswer(hosting, {
        ...question,
        runId: runId as CoordinationId,
        value,
        by: principal,
        tenant,
      }),
    inspectToken: (token) => inspectToken(hosting, token),
    resolveToken: (token, value) => resolveToken(hosting, token, value),
    ancestry: (caller, runId) => readAncestry(hosting, caller, runId),
    workflow: ({ tenant }, workflowId) => readDefinition(hosting, tenant, workflowId),
    workflowIds: () => runnable,
    register: (caller, definition) => registerWorkflow(hosting, caller, definition),
    memory: ({ tenant }, scope, query) =>
      dependencies.store.memory.list({ tenant, scope }, { ...query, now: dependencies.clock.now() }),
    runAgent: (caller, agentRun, signal) =>
      runAgent(createAgentRuns(hosting), { caller, asked: agentRun, signal }),
    agents: () => hosting.agentBook.installed.map(createInventoryEntry),
    workspace: ({ tenant }, owner) =>
      createTenantWorkspace(
        dependencies,
        owner === undefined ? createOwnWorkspaceScope(tenant) : { tenant, scope: `owner:${owner}` },
      ),
    requests: dependencies.store.requests,
    ...(hosting.seams && { seams: hosting.seams }),
    start: () => recovery.start(),
    stop: () => stopHost(hosting, recovery),
  };
}
