/** Owns: that a supervisor's loop ends (RFC 0058). Each decision is a turn, and each time that a worker is sent back. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import type { NodeView } from "../node-contract/node-type.ts";
import { draftEndByNode } from "../node-contract/run-end.ts";

/**
 * Drafts the failure of a run whose supervisor's loop would take a turn too many; `undefined` where the turn may be
 * taken.
 */
export function draftExceededLoopLimit({ run, settings, nodeRun }: NodeView): WorkflowDraft[] | undefined {
  const requested = run.started.configurable?.["maxLoopIterations"];
  const limit = Math.min(
    settings.loopIterationsMax,
    typeof requested === "number" && requested >= 1 ? Math.floor(requested) : settings.loopIterationsMax,
  );
  const turn = run.orchestrator.decided + run.orchestrator.revisions + 1;
  if (turn <= limit) return undefined;
  const error = {
    code: "loop_limit_exceeded",
    message: `turn ${turn} of the loop is over the limit of ${limit}`,
  };
  const { nodeId } = nodeRun;
  return [
    { type: "cap.breached", nodeId, payload: { kind: "loop-iterations", limit, observed: turn, nodeId } },
    ...draftEndByNode(run, nodeId, error),
  ];
}
