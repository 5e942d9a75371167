/** Owns: what the drawing of a timeline says of moments. */
import { describe, expect, it } from "vitest";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { nameFile } from "../../src/agents/coordination/contracts/resource-names.ts";
import { markTimelineRows } from "../../src/plugins/page/drawing/row-marks.ts";
import type { Timeline } from "../../src/plugins/reports/timeline.ts";

const STEP = "write" as StepId;

function createTimeline(resource: string): Timeline {
  return {
    coordinationId: "co-1" as CoordinationId,
    status: "running",
    startedAtMs: 0 as EpochMs,
    durationMs: 20,
    rows: [
      {
        stepId: STEP,
        depth: 0,
        status: "running",
        lane: "data",
        agentId: "main" as AgentId,
        attempt: 1,
        startMs: 0,
        durationMs: 20,
      },
    ],
    conflicts: [{ conflictId: "conflict-1", stepId: STEP, resource, detectedMs: 10, outcome: "refused" }],
  };
}

describe("the moments of a timeline", () => {
  it("say of a contested file on which machine it lies", () => {
    const [row] = markTimelineRows(createTimeline(nameFile("/shop/prices.ts", "office")), []);
    expect(row?.moments).toEqual([
      {
        stepId: STEP,
        kind: "conflict",
        atMs: 10,
        label: "conflict over file:/shop/prices.ts on office: refused",
      },
    ]);
  });
});
