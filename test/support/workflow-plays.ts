/** Owns: workflows that use a bit of everything, a person who answers whatever is asked, and what must hold of every log. */
import { expect } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { isEndedPhase } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "./workflow-definitions.ts";
import type { MemoryWorkflowLedger } from "./memory-workflow-store.ts";
import { ALICE, listEvents, type WorkflowScene } from "./workflow-scene.ts";

const gatedWorker = createWorkflow("gated-worker", {
  nodes: [
    createNode("gate", "core.approvalGate"),
    createNode("note", "openclaw.memory.write", { content: "seen" }),
  ],
  edges: [createEdge("gate>note")],
  variables: { result: "gated did it" },
});
const slowWorker = createWorkflow("slow-worker", {
  nodes: [createNode("wait", "core.delay", { delayMs: 1_000 })],
  variables: { result: "slow did it" },
});

/** Each is run from its first definition. */
export const PLAYS: Readonly<Record<string, readonly WorkflowDefinition[]>> = {
  loop: [
    createSupervised(
      "loop",
      [
        sendNextWorker("gated-worker", "slow-worker"),
        { ...sendNextWorker("slow-worker"), confidence: 0.3 },
        TERMINATE,
      ],
      { dispatch: { outputMapping: { got: "result" } } },
    ),
    gatedWorker,
    slowWorker,
  ],
  held: [createSupervised("held", [{ kind: "terminate", confidence: 0.2 }])],
  nested: [
    createWorkflow("nested", {
      nodes: [
        createNode("read", "openclaw.memory.read", { into: "before" }),
        createNode("sub", "core.subWorkflow", { workflowId: "middle", outputMapping: { got: "result" } }),
        // Longer than everything beside it, whatever is in between.
        createNode("wait", "core.delay", { delayMs: 20_000 }),
        createNode("join"),
      ],
      edges: [
        createEdge("read>sub"),
        createEdge("read>wait"),
        createEdge("sub>join"),
        createEdge("wait>join"),
      ],
    }),
    createSupervised("middle", [sendNextWorker("slow-worker"), sendNextWorker("failing"), TERMINATE], {
      variables: { result: "middle did it" },
    }),
    slowWorker,
    createWorkflow("failing", { nodes: [createNode("boom", "core.fail")] }),
  ],
  asks: [
    createWorkflow("asks", {
      nodes: [
        createNode("model", "core.ai.callPrompt", { prompt: "?" }),
        createNode("tool", "core.ai.callPrompt", { mcp: { tool: "echo", url: "http://tool" } }),
        createNode("ask", "core.clarificationGate", { questions: [{ id: "q1", question: "?" }] }),
      ],
      edges: [createEdge("model>tool"), createEdge("tool>ask")],
      settings: { maxRetries: 1 },
    }),
  ],
  verified: [
    createSupervised("verified", [sendNextWorker("slow-worker"), sendNextWorker("slow-worker"), TERMINATE], {
      dispatch: {
        outputMapping: { got: "result" },
        outputAttestation: { checksum: true },
        verifier: {
          agentId: "critic",
          criteria: ["done"],
          mockVerdicts: ["revise", { verdict: "pass", confidence: 0.2 }, "fail"],
        },
      },
    }),
    slowWorker,
  ],
  attested: [
    createWorkflow("attested", {
      nodes: [
        createNode("sub", "core.subWorkflow", {
          workflowId: "slow-worker",
          outputMapping: { got: "result" },
          outputAttestation: { checksum: true, requireApproval: true },
          verifier: { agentId: "critic", checks: { word: { kind: "pattern", pattern: "slow" } } },
        }),
        createNode("behind"),
      ],
      edges: [createEdge("sub>behind")],
      variables: { got: undefined },
    }),
    slowWorker,
  ],
  plain: [createWorker("plain")],
};

const ANSWERS: Readonly<Record<string, unknown>> = {
  approval: { action: "accept" },
  clarification: { answers: { q1: "blue" } },
  "low-confidence": { action: "accept" },
};

/** Answers whatever any run of the ledger asks, and lets time pass, until all of them have ended. */
export async function finish(scene: WorkflowScene): Promise<void> {
  for (let turn = 0; turn < 40; turn += 1) {
    await scene.settle();
    const open = [...scene.ledger.runs.keys()].filter((runId) => !hasEnded(scene.ledger, runId));
    if (open.length === 0 || !scene.isAlive) return;
    for (const runId of open) await answerOpen(scene, runId).catch(() => undefined);
    await scene.clock.advance(1_100);
  }
}

async function answerOpen(scene: WorkflowScene, runId: string): Promise<void> {
  const run = foldWorkflow(listEvents(scene.ledger, runId));
  for (const { nodeId, interrupt } of run?.nodes.values() ?? [])
    if (interrupt) await scene.host.resolve(ALICE, runId, { nodeId }, ANSWERS[interrupt.kind]);
}

export function hasEnded(ledger: MemoryWorkflowLedger, runId: string): boolean {
  const run = foldWorkflow(listEvents(ledger, runId));
  return run !== undefined && isEndedPhase(run.phase);
}

const TERMINAL = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** Rules for the log of every run, however it came about. */
export function checkLog(events: readonly WorkflowEvent[]): void {
  const before = new Set<string>();
  const begun = new Set<string>();
  let decided = 0;
  for (const [index, event] of events.entries()) {
    expect(event.sequence, "sequences are gapless").toBe(index);
    if (event.causationId !== undefined)
      expect(before, `${event.type} is caused by an earlier event`).toContain(event.causationId);
    expect(before, "event ids are unique").not.toContain(event.eventId);
    before.add(event.eventId);
    if (event.type === "node.started") begun.add(event.payload.nodeId);
    if (event.type === "node.completed" || event.type === "node.failed")
      expect(begun.delete(event.payload.nodeId), `${event.payload.nodeId} was started before it ended`).toBe(
        true,
      );
    if (event.type === "runOrchestrator.decided") expect(event.payload.iteration).toBe((decided += 1));
  }
  const ends = events.flatMap(({ type }, index) => (TERMINAL.has(type) ? [index] : []));
  if (ends.length > 0) expect(ends, "one end, and nothing behind it").toEqual([events.length - 1]);
}

/** The logs of a ledger by run, without what tells of processes, and with ids that say only who is who. */
export function storyOf(ledger: MemoryWorkflowLedger): string[] {
  const names = new Map<string, string>();
  const ordered = [...ledger.runs.keys()].toSorted((one, other) => (one < other ? -1 : 1));
  for (const runId of ordered) names.set(runId, workflowOf(ledger, runId));
  return ordered
    .map((runId) => {
      const messages = listEvents(ledger, runId)
        .filter(({ type }) => type !== "run.resuming")
        .map(
          ({ type, nodeId = "", payload }) => `${type} ${nodeId} ${JSON.stringify(removeChanging(payload))}`,
        );
      let text = [names.get(runId) ?? "", ...messages].join("\n");
      for (const [id, name] of names) text = text.replaceAll(id, `<${name}>`);
      return text;
    })
    .toSorted();
}

function workflowOf(ledger: MemoryWorkflowLedger, runId: string): string {
  const [first] = listEvents(ledger, runId);
  return first?.type === "run.started" ? first.payload.workflowId : "";
}

/** Removes times, and the trace, whose ids follow from the id of the run. */
function removeChanging(payload: object): object {
  const { durationMs: _, traceparent: _trace, ...rest } = payload as Record<string, unknown>;
  return "outputs" in rest && JSON.stringify(rest["outputs"]).includes("createdAt")
    ? { ...rest, outputs: {} }
    : rest;
}
