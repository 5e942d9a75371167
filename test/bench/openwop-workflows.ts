/** Owns: the workflows that the OpenWOP host is measured with, and its token. */
import {
  readWorkflowDefinition,
  type WorkflowDefinition,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

/** The tenant of the token that `serve --token` takes. */
export const TENANT = "default";
export const TOKEN = "bench-token";

export const NOOP = requireDefinition({
  id: "bench-noop",
  name: "One node that does nothing",
  version: "1",
  nodes: [{ id: "noop", typeId: "core.noop" }],
});

const LONG_NODES = 200;

/** As many events as a client reads in a few pages. */
export const LONG = requireDefinition({
  id: "bench-long",
  name: `${LONG_NODES} nodes that do nothing`,
  version: "1",
  nodes: Array.from({ length: LONG_NODES }, (_, index) => ({ id: `noop-${index}`, typeId: "core.noop" })),
});

/** A supervisor that decides twice: the next worker, whose run is a child, and the end. */
export const HANDOFF = requireDefinition({
  id: "bench-handoff",
  name: "A supervisor hands over once",
  version: "1",
  nodes: [
    {
      id: "supervisor",
      typeId: "core.orchestrator.supervisor",
      config: {
        mockDispatchPlan: [
          { kind: "next-worker", nextWorkerIds: ["bench-child"] },
          { kind: "terminate", reason: "goal-reached" },
        ],
      },
    },
    {
      id: "dispatch",
      typeId: "core.dispatch",
      config: {
        askUserRouting: "auto",
        workerDispatchModel: "child-run",
        fanOutPolicy: "sequential",
        outputMapping: { parentResult: "childOutcome" },
      },
    },
  ],
  edges: [
    { id: "e1", sourceNodeId: "supervisor", targetNodeId: "dispatch" },
    { id: "e2", sourceNodeId: "dispatch", targetNodeId: "supervisor" },
  ],
  variables: [{ name: "parentResult", type: "string", defaultValue: "" }],
});

export const CHILD = requireDefinition({
  id: "bench-child",
  name: "The worker of the handoff",
  version: "1",
  nodes: [{ id: "work", typeId: "core.identity" }],
  variables: [{ name: "childOutcome", type: "string", defaultValue: "done" }],
});

/** Waits for a person for as long as it is left alone. */
export const WAITING = requireDefinition({
  id: "bench-waiting",
  name: "A gate that waits for somebody",
  version: "1",
  nodes: [{ id: "gate", typeId: "core.approvalGate", config: { title: "Go on?" } }],
});

export const WORKFLOWS: readonly WorkflowDefinition[] = [NOOP, LONG, HANDOFF, CHILD, WAITING];

function requireDefinition(value: unknown): WorkflowDefinition {
  const read = readWorkflowDefinition(value);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.value;
}
