import fc from "fast-check";
import { expect, test } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { expectReplayOf, forkIn, lengthIn, sameLog } from "../support/forks.ts";
import { supervisedWorkflows, workflows } from "../support/workflow-arbitraries.ts";
import { worker } from "../support/workflow-definitions.ts";
import { finish, hasEnded } from "../support/workflow-plays.ts";
import {
  ALICE,
  eventsIn,
  workflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const any = fc.oneof(workflows({ loops: false }), workflows({ loops: true }), supervisedWorkflows);

const CHAT: NonNullable<SceneOptions["chat"]> = {
  complete: () =>
    Promise.resolve({
      kind: "answered",
      text: "said",
      finishReason: "stop",
      model: "m",
      provider: "p",
      usage: {},
    }),
};

/** A run of a workflow that was made up, at its end or somewhere before it. */
async function played(made: WorkflowDefinition, turns: number): Promise<WorkflowScene> {
  const it = workflowScene({ definitions: [made, worker("child"), worker("a"), worker("b")], chat: CHAT });
  await it.host.create(ALICE, { workflowId: "made-up", inputs: {}, transport: "rest" });
  await it.settle();
  if (turns === 0) await finish(it);
  else await it.clock.advance(turns * 5);
  return it;
}

test("any run, at its end and before it, is replayed from every event on, and nothing is done for it", async () => {
  await fc.assert(
    fc.asyncProperty(any, fc.nat({ max: 4 }), async (definition, turns) => {
      const it = await played(definition, turns);
      const { ledger, clock } = it;
      const other = workflowScene({ ledger, clock, pid: 2 });
      for (const sourceRunId of [...ledger.runs.keys()]) {
        const source = sameLog(eventsIn(ledger, sourceRunId));
        const runs = ledger.runs.size;
        const kept = ledger.entries.length;
        for (let fromSeq = 0; fromSeq <= source.length; fromSeq += 1) {
          const runId = await forkIn(other, { sourceRunId, mode: "replay", fromSeq });
          if (hasEnded(ledger, sourceRunId)) expectReplayOf(ledger, runId, sourceRunId);
          expect(sameLog(eventsIn(ledger, runId)).slice(0, source.length)).toEqual(source);
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
      const it = await played(definition, 0);
      const { ledger, clock } = it;
      await clock.advance(3_600_000);
      const [sourceRunId = ""] = ledger.runs.keys();
      const source = eventsIn(ledger, sourceRunId);
      const fromSeq = at % (source.length + 1);
      const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq });
      await finish(it);
      const events = eventsIn(ledger, runId);
      expect(sameLog(events.slice(0, fromSeq))).toEqual(sameLog(source.slice(0, fromSeq)));
      expect(hasEnded(ledger, runId)).toBe(true);
      expect(eventsIn(ledger, sourceRunId)).toEqual(source);
      const again = await forkIn(it, { sourceRunId: runId, mode: "replay" });
      expectReplayOf(ledger, again, runId);
      expect(lengthIn(ledger, again)).toBe(events.length);
    }),
    { numRuns: 150 },
  );
});
