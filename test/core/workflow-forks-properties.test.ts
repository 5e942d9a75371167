import fc from "fast-check";
import { expect, test } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { expectReplayOf, forkIn, countEvents, stripRunIds } from "../support/forks.ts";
import { supervisedWorkflows, createWorkflows } from "../support/workflow-arbitraries.ts";
import { createWorker } from "../support/workflow-definitions.ts";
import { finish, hasEnded } from "../support/workflow-plays.ts";
import {
  SAID,
  ALICE,
  listEvents,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const any = fc.oneof(
  createWorkflows({ loops: false }),
  createWorkflows({ loops: true }),
  supervisedWorkflows,
);

const CHAT: NonNullable<SceneOptions["chat"]> = {
  complete: () => Promise.resolve(SAID),
};

/** A run of a workflow that was made up, at its end or somewhere before it. */
async function playOutRun(made: WorkflowDefinition, turns: number): Promise<WorkflowScene> {
  const scene = createWorkflowScene({
    definitions: [made, createWorker("child"), createWorker("a"), createWorker("b")],
    chat: CHAT,
  });
  await scene.host.create(ALICE, { workflowId: "made-up", inputs: {}, transport: "rest" });
  await scene.settle();
  if (turns === 0) await finish(scene);
  else await scene.clock.advance(turns * 5);
  return scene;
}

test("any run, at its end and before it, is replayed from every event on, and nothing is done for it", async () => {
  await fc.assert(
    fc.asyncProperty(any, fc.nat({ max: 4 }), async (definition, turns) => {
      const scene = await playOutRun(definition, turns);
      const { ledger, clock } = scene;
      const other = createWorkflowScene({ ledger, clock, pid: 2 });
      for (const sourceRunId of [...ledger.runs.keys()]) {
        const source = stripRunIds(listEvents(ledger, sourceRunId));
        const runs = ledger.runs.size;
        const kept = ledger.entries.length;
        for (let fromSeq = 0; fromSeq <= source.length; fromSeq += 1) {
          const runId = await forkIn(other, { sourceRunId, mode: "replay", fromSeq });
          if (hasEnded(ledger, sourceRunId)) expectReplayOf(ledger, runId, sourceRunId);
          expect(stripRunIds(listEvents(ledger, runId)).slice(0, source.length)).toEqual(source);
        }
        expect(ledger.runs.size - runs).toBe(source.length + 1);
        expect(ledger.entries.length).toBe(kept);
      }
    }),
    { numRuns: 60 },
  );
});

test("any branch of any run begins as that did, and goes on to an end, and its replay is equal to it", async () => {
  await fc.assert(
    fc.asyncProperty(any, fc.nat(), async (definition, at) => {
      const scene = await playOutRun(definition, 0);
      const { ledger, clock } = scene;
      await clock.advance(3_600_000);
      const [sourceRunId = ""] = ledger.runs.keys();
      const source = listEvents(ledger, sourceRunId);
      const fromSeq = at % (source.length + 1);
      const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
      await finish(scene);
      const events = listEvents(ledger, runId);
      expect(stripRunIds(events.slice(0, fromSeq))).toEqual(stripRunIds(source.slice(0, fromSeq)));
      expect(hasEnded(ledger, runId)).toBe(true);
      expect(listEvents(ledger, sourceRunId)).toEqual(source);
      const again = await forkIn(scene, { sourceRunId: runId, mode: "replay" });
      expectReplayOf(ledger, again, runId);
      expect(countEvents(ledger, again)).toBe(events.length);
    }),
    { numRuns: 150 },
  );
});
