/** Owns: planted faults of hosts of workflows: runs, their nodes, questions to people, children, and who drives what. */
import type { PlantedFault } from "./planted-fault.ts";

const WORKFLOW = "src/agents/coordination/workflow";
const HOST = "src/agents/coordination/runtime/workflow-host";
const OWNERSHIP = "src/agents/coordination/runtime/ownership";

type WorkflowFault = Omit<PlantedFault, "world">;

const FAULTS: readonly WorkflowFault[] = [
  {
    name: "workflow-floor-ignored",
    file: `${WORKFLOW}/nodes/supervisor.ts`,
    find: "const isDoubted = readDecisionConfidence(decision) < view.settings.confidenceFloor;",
    replace: "const isDoubted = readDecisionConfidence(decision) < 0.1;",
    breaks: "G2: a decision below the floor is not held",
  },
  {
    name: "workflow-refused-decision-made",
    file: `${WORKFLOW}/nodes/supervisor.ts`,
    find: "if (!decision || !isAgreedAnswer({ resumeValue })) {",
    replace: "if (!decision) {",
    breaks: "G3: a decision that people refused is made",
  },
  {
    name: "workflow-foreign-worker",
    file: `${WORKFLOW}/nodes/supervisor-prompt.ts`,
    find: "return decision.nextWorkerIds.find((workerId) => !workers.includes(workerId));",
    replace: "return undefined;",
    breaks: "H5: a model begins a worker that its supervisor does not have",
  },
  {
    name: "workflow-retry-too-often",
    file: `${WORKFLOW}/node-failure.ts`,
    find: "attempt >= graph.maxRetries;",
    replace: "attempt >= 3;",
    breaks: "D4: a node is tried again more often than its workflow says",
  },
  {
    name: "workflow-attempt-in-a-pause",
    file: `${WORKFLOW}/node-failure.ts`,
    find: '    if (view.run.phase.kind === "paused") return [...closed, retry];\n',
    replace: "",
    breaks: "H4: a node begins while its run is paused",
  },
  {
    name: "workflow-paused-goes-on",
    file: `${WORKFLOW}/advance-run.ts`,
    find: 'if (isEndedPhase(run.phase) || run.phase.kind === "paused") return false;',
    replace: "if (isEndedPhase(run.phase)) return false;",
    breaks: "H4: a paused run goes on",
  },
  {
    name: "workflow-cut-off-not-again",
    file: `${WORKFLOW}/workflow-commands.ts`,
    find: "    if (!isRetrying && !isCutOff) return [];\n",
    replace: "    if (!isCutOff) return [];\n",
    breaks: "D5: a node that failed in a pause goes on in an attempt that never began",
  },
  {
    name: "workflow-cancel-not-recorded",
    file: `${WORKFLOW}/workflow-commands.ts`,
    find: 'return [...draftNodeCancellations(run, "the run was cancelled"), { type: "run.cancelled", payload: by }];',
    replace:
      'return [...draftNodeCancellations(run, "the run was cancelled"), { type: "run.completed", payload: { outputs: {} } }];',
    breaks: "H4: a run that was cancelled has completed",
  },
  {
    name: "workflow-other-tenants-run",
    file: `${HOST}/requests/read-runs.ts`,
    find: "loadedRun?.run.started.owner.tenant === tenant ? loadedRun : undefined;",
    replace: "tenant ? loadedRun : undefined;",
    breaks: "CTI-1: a caller sees the runs of another tenant",
  },
  {
    name: "workflow-stale-first-event",
    file: `${HOST}/driving/advance-driven.ts`,
    find: "  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);\n  const driven = driving",
    replace: "  const driven = driving",
    breaks: "L4: a second request to create a run changes what is said of it",
  },
  {
    name: "workflow-take-forgotten",
    file: `${OWNERSHIP}/take-over.ts`,
    find: "const missed = life.isUncertain ? await ownRuns.listUnknown() : [];",
    replace: "const missed: OwnedRun[] = [];",
    breaks: "D5: runs that were taken over stand still",
  },
  {
    name: "workflow-refused-gate-opens",
    file: `${WORKFLOW}/nodes/gate-nodes.ts`,
    find: 'if (action === "accept" || action === "edit-accept" || action === "refine")',
    replace: "if (action !== undefined)",
    breaks: "G3: a gate opens that people refused, or whose time is over",
  },
  {
    name: "workflow-one-success-is-all",
    file: `${WORKFLOW}/state/edges.ts`,
    find: '    return hasEverySignal(arrived) ? "start" : undefined;\n  },\n  any_success',
    replace:
      '    return arrived.some(({ signal }) => signal === "success") ? "start" : undefined;\n  },\n  any_success',
    breaks: "D6: a node begins before all that it waits for has ended",
  },
  {
    name: "workflow-failure-ends-nothing",
    file: `${WORKFLOW}/node-contract/run-end.ts`,
    find: 'if (node.status === "failed" && !isFailureHandled(graph, node)) return',
    replace: 'if (node.status === "failed" && graph.nodes.size === 0) return',
    breaks: "D5: a run completes although one of its nodes failed",
  },
  {
    name: "workflow-tool-called-twice",
    file: `${HOST}/effects/perform-tools.ts`,
    find: "  const answer = await caller.callMcp({ ...address, tool, args, callId, signal, parent, ...trace });\n",
    replace:
      "  await caller.callMcp({ ...address, tool, args, callId, signal, parent, ...trace });\n" +
      "  const answer = await caller.callMcp({ ...address, tool, args, callId, signal, parent, ...trace });\n",
    breaks: "D2: a tool is called twice",
  },
  {
    name: "workflow-answer-after-its-time",
    file: `${HOST}/requests/interrupts.ts`,
    find: "return timeoutMs > 0 && now >= atMs + timeoutMs && !isAtFork(run);",
    replace: "return timeoutMs > 0 && now < atMs && !isAtFork(run);",
    breaks: "E2: an answer counts after the time of its question",
  },
  {
    name: "workflow-merge-without-verdict",
    file: `${WORKFLOW}/nodes/child-gate.ts`,
    find: "  if (isRuledOut(gate, handoff, ruling)) return verdictDrafts;\n",
    replace: "",
    breaks: "G1: what a verifier did not pass is merged",
  },
];

export const WORKFLOW_FAULTS: readonly PlantedFault[] = FAULTS.map((fault) => ({
  ...fault,
  world: "workflows",
}));
