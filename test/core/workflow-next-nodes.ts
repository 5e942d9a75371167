/** Owns: the nodes that are next after a log in words, for tests of the edges between nodes. */
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createRunEvent } from "../../src/agents/coordination/workflow/advance-run.ts";
import { listNextNodes } from "../../src/agents/coordination/workflow/state/edges.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { isAtWork, type WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode, type SmallWorkflow } from "../support/workflow-definitions.ts";
import { createGraph, createRun, NOW } from "./workflow-view-scene.ts";

/** `fate` is a word of the log: `go` is a completion with the output that the condition `ifGo` wants, `retried` the beginning of another attempt. */
function draftFate(nodeId: string, fate: string): WorkflowDraft {
  switch (fate) {
    case "started":
      return { type: "node.started", payload: { nodeId, typeId: "core.noop", attempt: 0 } };
    case "retried":
      return { type: "node.started", payload: { nodeId, typeId: "core.noop", attempt: 1 } };
    case "completed":
      return { type: "node.completed", payload: { nodeId, outputs: { go: false } } };
    case "go":
      return { type: "node.completed", payload: { nodeId, outputs: { go: true } } };
    case "failed":
      return { type: "node.failed", payload: { nodeId, error: { code: "broken", message: "it broke" } } };
    case "cancelled":
      return { type: "node.cancelled", payload: { nodeId } };
    case "skipped":
      return { type: "node.skipped", payload: { nodeId } };
    default:
      throw new Error(`no node can be ${fate}`);
  }
}

/** Returns the run after a log such as `a completed, b started`; a node that ends is started first, where it is not yet. */
export function playLog(log: string): WorkflowRun {
  let run = createRun();
  const append = (draft: WorkflowDraft): void => {
    run = evolveWorkflow(run, createRunEvent(run, draft, NOW));
  };
  for (const entry of log.split(", ").filter(Boolean)) {
    const [id = "", fate = ""] = entry.split(" ");
    const nodeRun = run.nodes.get(id);
    const needsStart = !BEGINNINGS.has(fate) && !(nodeRun && isAtWork(nodeRun));
    if (needsStart) append(draftFate(id, "started"));
    append(draftFate(id, fate));
  }
  return run;
}

const BEGINNINGS: ReadonlySet<string> = new Set(["started", "retried", "skipped"]);

/** Returns the nodes that are next after the log. */
export function listNext(small: SmallWorkflow, log: string): string[] {
  return listNextNodes(playLog(log), createGraph(small)).map(({ kind, node }) => `${kind} ${node.node.id}`);
}

export const ifGo = { condition: { type: "equals", left: "go", right: true } } as const;
export const rule = (triggerRule: string) => ({ triggerRule });
export const createNodes = (ids: string) => ids.split(" ").map((id) => createNode(id));
