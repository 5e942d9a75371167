/** Owns: the host of workflow runs: one method for each thing that may be asked of it. */
import type { CoordinationId } from "../../contracts/ids.ts";
import { cancel, endOrphan, pause, resume } from "./requests/control-runs.ts";
import { inventoryEntry } from "./records/agent-inventory.ts";
import { createRun, refusalOf, refuse } from "./driving/create-run.ts";
import { forkRun } from "./requests/fork-run.ts";
import { type Hosting } from "./requests/hosting.ts";
import { createHosting } from "./requests/create-hosting.ts";
import { answer, inspectToken, resolveToken } from "./requests/interrupts.ts";
import { acceptedOf, ancestry, events, snapshot } from "./requests/read-runs.ts";
import { createRecovery } from "./driving/recover-runs.ts";
import { registerWorkflow } from "./requests/register-workflow.ts";
import { tenantWorkspace } from "./requests/tenant-workspace.ts";
import { runAgent } from "./agents/run-agent.ts";
import type { Answered, Caller, CreatedRun, CreateRun, WorkflowHost } from "./records/workflow-host.ts";
import type { WorkflowHostParts } from "./records/workflow-parts.ts";
import { ownWorkspace } from "./records/run-workspace.ts";

/** What this host would refuse to run is not offered. */
function runnableIds({ definitions, book, settings, agentBook }: Hosting): readonly string[] {
  return definitions.flatMap((definition) => {
    const { workflow } = book.compile(definition);
    return workflow && !refusalOf({ settings, agentBook }, workflow) ? [definition.id] : [];
  });
}

async function create(it: Hosting, caller: Caller, request: CreateRun): Promise<Answered<CreatedRun>> {
  const created = await createRun({ ...it, driver: it.runs }, caller, request);
  return created.kind === "done" ? { kind: "done", value: acceptedOf(created.value) } : created;
}

export function createWorkflowHost(parts: WorkflowHostParts): WorkflowHost {
  const it = createHosting(parts);
  const recovery = createRecovery({ ...parts, runs: it.runs, orphaned: (entry) => endOrphan(it, entry) });
  const interrupts = { ...parts, driver: it.runs };
  const runnable = runnableIds(it);
  return {
    // Known when the host listens.
    get hostId() {
      return parts.settings.hostId;
    },
    create: (caller, request) => create(it, caller, request),
    snapshot: (caller, runId) => snapshot(it, caller, runId),
    events: (caller, runId, range) => events(it, caller, runId, range),
    watch: (runId, wake) => it.watching.watch(runId, wake),
    fork: (caller, request) => forkRun(it, caller, request),
    cancel: (caller, runId, { reason }) => cancel(it, caller, { runId, reason }),
    pause: (caller, runId, request) => pause(it, caller, runId, request),
    resume: (caller, runId) => resume(it, caller, runId),
    resolve: ({ tenant, principal }, runId, nodeId, value) =>
      answer(interrupts, { runId: runId as CoordinationId, nodeId, value, by: principal, tenant }),
    inspectToken: (token) => inspectToken(interrupts, token),
    resolveToken: (token, value) => resolveToken(interrupts, token, value),
    ancestry: (caller, runId) => ancestry(it, caller, runId),
    workflow: async ({ tenant }, workflowId) => {
      const found = await it.book.workflow(tenant, workflowId);
      return found
        ? { kind: "done", value: found.definition }
        : refuse("not_found", `there is no workflow ${workflowId}`);
    },
    workflowIds: () => runnable,
    register: (caller, definition) =>
      registerWorkflow({ ...it, isOff: (name) => it.seams.isOff(name) }, caller, definition),
    memory: ({ tenant }, scope, query) =>
      parts.store.memory.list({ tenant, scope }, { ...query, now: parts.clock.now() }),
    runAgent: (caller, asked, signal) =>
      runAgent(
        {
          create: (by, request) => create(it, by, request),
          snapshot: (by, runId) => snapshot(it, by, runId),
          watch: (runId, wake) => it.watching.watch(runId, wake),
        },
        { caller, asked, signal },
      ),
    agents: () => it.agentBook.installed.map(inventoryEntry),
    workspace: ({ tenant }, owner) =>
      tenantWorkspace(
        parts,
        owner === undefined ? ownWorkspace(tenant) : { tenant, scope: `owner:${owner}` },
      ),
    requests: parts.store.requests,
    ...(parts.testSeams && { seams: it.seams }),
    start: () => recovery.start(),
    stop: async () => {
      it.watching.stop();
      await recovery.stop();
      await it.runs.stop();
    },
  };
}
