/** Owns: that a replay takes what the log holds, also where it would be recorded otherwise by now. */
import { describe, expect, it } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { continueRecord, copyEvents, recordRun, replay, wait } from "./workflow-replay-scene.ts";

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

describe("the end of an approval's time", () => {
  const createRecord = () =>
    recordRun({ nodes: [createNode("n", "core.approvalGate", { timeoutMs: 9_000 })] }, [[9, wait]]);
  const vote = { nodeId: "n", interruptId: "n~1", action: "timeout" };
  const received: WorkflowDraft = { type: "approval.received", nodeId: "n", payload: vote };
  const resumeValue = { action: "timeout", decision: "rejected", reason: "timeout" };
  const payload = { ...vote, kind: "approval" as const, resumeValue };
  const resolved: WorkflowDraft = { type: "interrupt.resolved", nodeId: "n", payload };

  it("is recorded as an approval that nobody gave, and then as what follows", () => {
    const record = createRecord();
    expect(record.events.slice(4, 6)).toMatchObject([received, resolved]);
    expect(replay(record).then).toEqual({ kind: "over" });
  });

  it.each<[string, readonly WorkflowDraft[]]>([
    ["as this release records it", [received, resolved]],
    ["as earlier releases recorded it", [resolved]],
    ["in a branch that was cut off in the middle", [received, received, resolved]],
  ])("is replayed %s", (_case, drafts) => {
    const moments = drafts.map((draft) => [9, draft] as const);
    const older = continueRecord(createRecord(), 4, ...moments);
    const { events, then } = replay(older);
    expect([events, then]).toEqual([copyEvents(older.events.slice(1)), { kind: "over" }]);
  });
});
