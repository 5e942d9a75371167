/** Owns: an approval that is refused with the older words and with feedback, which asks for another version (interrupt.md). */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  answerInterrupt,
  isRecordedAnswer,
} from "../../src/agents/coordination/workflow/state/answer-interrupt.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";
import { createNodeRun, NOW, RUN } from "./workflow-view-scene.ts";

const WITH_REFINE = { actions: ["accept", "reject", "refine"] };
const FEEDBACK = { decision: "rejected", feedback: "shorten it" };
const REFINED = {
  ...FEEDBACK,
  action: "refine",
  refineFeedback: { scope: "whole", text: "shorten it" },
};
const REJECTED = { ...FEEDBACK, action: "reject" };

/** Returns the value that the node goes on with. */
function answer(data: Values, value: unknown): unknown {
  const eventId = createEventId(RUN, 2);
  const interrupt = {
    interruptId: "i",
    kind: "approval",
    key: "k",
    atMs: NOW,
    eventId,
    data,
    votes: [],
  } as const;
  const node = createNodeRun("gate", "suspended", { interrupt, interrupts: 1 });
  const answered = answerInterrupt({ node, interrupt, value, by: "alice" });
  const drafts = answered.ok ? answered.drafts : [];
  return drafts.find((draft) => draft.type === "interrupt.resolved")?.payload.resumeValue;
}

describe("a refusal in the older words", () => {
  it("with feedback asks for another version where the gate offers that", () => {
    expect(answer(WITH_REFINE, FEEDBACK)).toEqual(REFINED);
  });

  it("keeps the feedback that is stated in the newer form", () => {
    const refineFeedback = { scope: "items", itemIds: ["a"] };
    expect(answer(WITH_REFINE, { ...FEEDBACK, refineFeedback })).toMatchObject({
      action: "refine",
      refineFeedback,
    });
  });

  it.each<[title: string, data: Values, value: Values]>([
    ["without feedback", WITH_REFINE, { decision: "rejected" }],
    ["with empty feedback", WITH_REFINE, { decision: "rejected", feedback: " " }],
    ["with feedback that is no text", WITH_REFINE, { decision: "rejected", feedback: 5 }],
    ["with an action that says no", WITH_REFINE, REJECTED],
    ["at a gate that does not offer refine", { actions: ["accept", "reject"] }, FEEDBACK],
  ])("is a no %s", (_title, data, value) => {
    expect(answer(data, value)).toEqual({ ...value, action: "reject" });
  });

  it("is a vote against where several must approve, because a vote has no feedback", () => {
    expect(answer({ ...WITH_REFINE, requiredApprovals: 2 }, FEEDBACK)).toEqual(REJECTED);
  });

  it("completes the gate of a run, which then knows the feedback", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", { nodes: [createNode("gate", "core.approvalGate", { ...WITH_REFINE })] }),
      ],
    });
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", FEEDBACK);
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "node.completed")).toMatchObject([
      { outputs: { approved: false, action: "refine", refineFeedback: REFINED.refineFeedback } },
    ]);
  });
});

describe("the same refusal again", () => {
  const isRecorded = (resumeValue: Values, value: unknown): boolean =>
    isRecordedAnswer(
      {
        interruptId: "i",
        kind: "approval",
        resumeValue,
        by: "alice",
        eventId: createEventId(RUN, 3),
        asked: { data: WITH_REFINE },
      },
      { node: createNodeRun("gate", "completed"), value, by: "alice" },
    );

  it("is known, also where an earlier release recorded it as a no", () => {
    expect(isRecorded(REFINED, FEEDBACK)).toBe(true);
    expect(isRecorded(REJECTED, FEEDBACK)).toBe(true);
  });

  it("is not another one's", () => {
    for (const recorded of [REFINED, REJECTED])
      expect(isRecorded(recorded, { ...FEEDBACK, feedback: "lengthen it" })).toBe(false);
    expect(isRecorded({ decision: "approved", action: "accept" }, FEEDBACK)).toBe(false);
  });
});
