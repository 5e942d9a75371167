/** Owns: how a node asks, and waits for the answer: it is suspended, and right behind that comes what is asked. */
import { addMs } from "../../contracts/ids.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import type { NewInterrupt, NodeStep, NodeView } from "./node-type.ts";
import { findLogIdentity, type Interrupt } from "../state/workflow-state.ts";

/** Drafts that a node is suspended, and right behind that the question that it asks. */
export function draftSuspension({ run, nodeRun }: NodeView, question: NewInterrupt): WorkflowDraft[] {
  const { nodeId } = nodeRun;
  const { kind, data, timeoutMs, resumeSchema, reason, agentId, threshold, observed } = question;
  const interruptId = `${nodeId}~${nodeRun.interrupts + 1}`;
  const key = `${findLogIdentity(run)}:${interruptId}`;
  return [
    {
      type: "node.suspended",
      nodeId,
      payload: {
        nodeId,
        interruptId,
        kind,
        key,
        ...(reason !== undefined && { reason }),
        ...(agentId !== undefined && { agentId }),
        ...(threshold !== undefined && { threshold }),
        ...(observed !== undefined && { observed }),
      },
    },
    {
      type: "interrupt.requested",
      nodeId,
      payload: {
        kind,
        key,
        data: { ...data },
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(resumeSchema && { resumeSchema: { ...resumeSchema } }),
      },
    },
  ];
}

/** Returns the node's step that waits until its question is answered, or its time, if it has one, is over. */
export function createWaitStep({ atMs, timeoutMs }: Interrupt): NodeStep {
  return timeoutMs ? { kind: "wait", atMs: addMs(atMs, timeoutMs) } : { kind: "wait" };
}
