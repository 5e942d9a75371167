import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { goOn } from "../support/stateful-scene.ts";
import { createNode, createSupervised, TERMINATE, createWorkflow } from "../support/workflow-definitions.ts";
import { listEvents, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const worker = createWorkflow("worker", { nodes: [createNode("only")] });

/** How a turn of the loop comes to wait for people, and what lets it go on. */
const PAUSES = {
  held: {
    decision: { ...goOn("worker"), confidence: 0.1 },
    nodeId: "supervisor",
    answer: { action: "accept" },
  },
  asks: {
    decision: { kind: "ask-user", prompt: "Which?" },
    nodeId: "dispatch",
    answer: { answers: { q1: "this" } },
  },
  gated: {
    decision: goOn("gated"),
    nodeId: "gate",
    answer: { action: "accept" },
  },
} as const;
const gated = createWorkflow("gated", {
  nodes: [createNode("gate", "core.approvalGate", { title: "Go on?" })],
});

/** A host by itself: it beats, time passes, it dies and another one looks at what it left. */
const beat = fc.oneof(
  fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 20 * 60_000 }) }),
  fc.record({ kind: fc.constant("die" as const) }),
  fc.record({ kind: fc.constant("stop" as const) }),
);

function listIterations(events: readonly WorkflowEvent[]): readonly number[] {
  return events.flatMap((event) =>
    event.type === "runOrchestrator.decided" ? [event.payload.iteration] : [],
  );
}

/** The run whose node has asked, the loop itself or a worker of it. */
function findAskingRun(ledger: MemoryWorkflowLedger, nodeId: string): string {
  const isAsking = ({ type, nodeId: at }: WorkflowEvent): boolean =>
    type === "interrupt.requested" && at === nodeId;
  return (
    [...ledger.runs.keys()].find((runId) => listEvents(ledger, runId).some(isAsking)) ??
    expect.fail("nobody asks")
  );
}

describe("a loop that waits for people", () => {
  test("is not advanced by any beat, wake or recovery, and goes on at the same iteration when it is answered", async () => {
    const turns = fc.integer({ min: 0, max: 3 });
    const pauses = fc.constantFrom(...(Object.keys(PAUSES) as (keyof typeof PAUSES)[]));
    await fc.assert(
      fc.asyncProperty(turns, pauses, fc.array(beat, { maxLength: 8 }), async (before, pause, beats) => {
        const { decision, nodeId, answer } = PAUSES[pause];
        const plan = [...Array.from({ length: before }, () => goOn("worker")), decision, TERMINATE];
        const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
        const definitions = [createSupervised("loop", plan), worker, gated];
        let pid = 1;
        const start = async (): Promise<WorkflowScene> => {
          const scene = createWorkflowScene({ ...shared, definitions, pid: (pid += 1) });
          await scene.host.start();
          await scene.settle();
          return scene;
        };
        let scene = await start();
        const runId = await scene.run("loop");
        const asking = findAskingRun(shared.ledger, nodeId);
        const suspended = listEvents(shared.ledger, asking);
        const decided = listIterations(listEvents(shared.ledger, runId));
        for (const each of beats) {
          // Whoever waits for a worker that waits still has a time of its own.
          if (each.kind === "wait")
            await shared.clock.advance(pause === "gated" ? Math.ceil(each.ms / 30) : each.ms);
          else {
            if (each.kind === "die") scene.die();
            else await scene.host.stop();
            scene = await start();
          }
          expect(listEvents(shared.ledger, asking)).toEqual(suspended);
          expect(listIterations(listEvents(shared.ledger, runId))).toEqual(decided);
        }
        await scene.answer(asking, nodeId, answer);
        await shared.clock.advance(60_000);
        expect(await scene.status(runId)).toBe("completed");
        const all = listIterations(listEvents(shared.ledger, runId));
        expect(all).toEqual(plan.map((_, index) => index + 1));
        expect(all.slice(0, decided.length)).toEqual(decided);
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});
