/** Owns: that a replay takes what the log holds, also where the log could not hold it by now. */
import { describe, expect, it } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { continueRecord, copyEvents, recordRun, replay } from "./workflow-replay-scene.ts";

/** A value of so many records, one within the other. */
function nest(levels: number): unknown {
  let value: unknown = "end";
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

describe("outputs that the log could not hold by now", () => {
  const createRecord = (outputs: object) => {
    const inputs = { port: { type: "variable", variableName: "deep" } };
    const nodes = [createNode("a", "core.identity", {}, { inputs })];
    const record = recordRun({ nodes, variables: { deep: undefined } }, [], { inputs: { deep: nest(60) } });
    const completed: WorkflowDraft = {
      type: "node.completed",
      nodeId: "a",
      payload: { nodeId: "a", outputs: { ...outputs }, durationMs: 0 },
    };
    return { record, older: continueRecord(record, 2, [0, completed]) };
  };

  it("are taken where they were recorded and follow from the log", () => {
    const { record, older } = createRecord({ port: nest(60) });
    expect(record.events[2]).toMatchObject({
      type: "node.failed",
      payload: { error: { code: "value_not_recordable" } },
    });
    const { events, then } = replay(older);
    expect([events, then]).toEqual([copyEvents(older.events.slice(1)), { kind: "over" }]);
  });

  it("are a divergence where others follow from the log", () => {
    const { older } = createRecord({ port: nest(59) });
    expect(replay(older).then).toMatchObject({ kind: "diverged", divergence: { event: { sequence: 2 } } });
  });
});
