/** L3: every fact names the earlier event that it follows from, and the step that it is about. */
import { describe, expect, it } from "vitest";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  answer,
  createAsk,
  createContest,
  createContestant,
  createHolder,
  NOTES,
  openAtWork,
  REPORT,
  request,
} from "./claims-scene.ts";
import {
  admit,
  beginSteps,
  dispatch,
  failStep,
  finish,
  openPlan,
  planScene,
  planStep,
  report,
  startStep,
} from "./planned-scene.ts";
import {
  acknowledge,
  createContentRef,
  OPEN,
  openScene,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

type Log = readonly RunEvent[];

/** The event of that type, the newest if no step is named. */
function find(log: Log, type: RunEvent["type"], nodeId?: string): RunEvent {
  const event = log.findLast(
    (each) => each.type === type && (nodeId === undefined || each.nodeId === nodeId),
  );
  if (!event) throw new Error(`no ${type}`);
  return event;
}

const causeOf = (log: Log, type: RunEvent["type"], nodeId?: string): RunEvent | undefined => {
  const { causationId } = find(log, type, nodeId);
  return log.find(({ eventId }) => eventId === causationId);
};

describe("the beginning of a coordination", () => {
  it("follows from nothing and is about no step", () => {
    const { log } = openScene(OPEN);
    const created = find(log, "coordination.created");
    expect(created).not.toHaveProperty("causationId");
    expect(created).not.toHaveProperty("nodeId");
  });
});

describe("a fact about a step", () => {
  it("names the step and follows from what happened to it before", () => {
    const { log } = openScene(OPEN, spawn("a"), spawn("b"), acknowledge(1));
    expect(find(log, "step.acknowledged").nodeId).toBe("step-1");
    expect(causeOf(log, "step.acknowledged")).toBe(find(log, "step.dispatched", "step-1"));
  });

  it.each<FactDraft>([
    {
      type: "budget.reached",
      payload: { stepId: stepId(1), limit: "spawns", allowed: 1, used: 1, stopped: "spawn" },
    },
    {
      type: "privilege.refused",
      payload: {
        stepId: stepId(1),
        tool: "write",
        rule: "tools.deny",
        from: { by: "step", stepId: stepId(1) },
      },
    },
    {
      type: "result.shortened",
      payload: { stepId: stepId(1), attempt: 1, text: createContentRef("long"), chars: 5, shownChars: 1 },
    },
    {
      type: "message.suppressed",
      payload: { stepId: stepId(1), attempt: 1, through: "reply", channel: "chat", chars: 5, media: 0 },
    },
  ])("follows from it, too, where it is a $type", (draft) => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1), spawn("b"));
    scene.happened([draft]);
    expect(causeOf(scene.log, draft.type)).toBe(find(scene.log, "step.acknowledged"));
  });

  it("follows from the beginning where it is about the owner, who is no step", () => {
    const scene = openScene(OPEN, spawn("a"));
    scene.happened([
      {
        type: "budget.reached",
        payload: { stepId: OWNER_STEP_ID, limit: "spawns", allowed: 1, used: 1, stopped: "spawn" },
      },
    ]);
    expect(causeOf(scene.log, "budget.reached")).toBe(find(scene.log, "coordination.created"));
  });
});

describe("the ruling on a conflict", () => {
  /** Steps 2 and 3 hold a resource each, and step 1 wants both. */
  const openTwoConflicts = (): Scene => {
    const scene = openAtWork(3, request(2, createAsk(NOTES, 3)), request(3, createAsk(REPORT, 4)));
    for (const [resource, holder, token] of [
      [NOTES, 2, 3],
      [REPORT, 3, 4],
    ] as const)
      scene.when(
        request(
          1,
          createAsk(resource, token + 2, {
            contest: createContest([createContestant(1, token + 2), createHolder(holder, token)]),
          }),
        ),
      );
    return scene;
  };

  it("follows from the discovery of its conflict, whatever happened in between", () => {
    const claims = createContest([createContestant(1, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      reviewByMs: timeAt(600_000),
    });
    const contested = request(1, createAsk(NOTES, 4, { contest: claims }));
    const scene = openAtWork(2, request(2, createAsk(NOTES, 3)), contested, spawn("meanwhile"));
    scene.when(answer(1, "denied"));
    expect(causeOf(scene.log, "conflict.resolved")).toBe(find(scene.log, "conflict.detected"));
  });

  it("follows from the discovery of the same conflict", () => {
    const { log } = openTwoConflicts();
    const rulings = log.filter(({ type }) => type === "conflict.resolved");
    expect(rulings).toHaveLength(2);
    for (const { causationId, payload } of rulings)
      expect(log.find(({ eventId }) => eventId === causationId)).toMatchObject({
        type: "conflict.detected",
        payload: { conflictId: (payload as { conflictId: string }).conflictId },
      });
  });
});

describe("the beginning of a step of a plan", () => {
  const openJoined = (fanIn: number) =>
    planScene(
      openPlan({ steps: 3 }),
      admit(planStep("a"), planStep("b"), planStep("c", { after: ["a", "b"], fanIn, retryBudget: 1 })),
      ...beginSteps("a", "b"),
    );

  it.each([
    ["a", "b"],
    ["b", "a"],
  ])("follows from the dependency that completed last: first %s, then %s", (first, last) => {
    const { log } = openJoined(2).then(finish(first), finish(last), dispatch("c"));
    expect(causeOf(log, "step.dispatched", "c")).toBe(find(log, "step.completed", last));
  });

  it("follows from no dependency that did not complete, whatever happened to it later", () => {
    const { log } = openJoined(1).then(finish("a"), report("b"), dispatch("c"));
    expect(causeOf(log, "step.dispatched", "c")).toBe(find(log, "step.completed", "a"));
  });

  it("follows from the admission where the step depends on nothing", () => {
    const { log } = openJoined(2);
    expect(causeOf(log, "step.dispatched", "a")).toBe(find(log, "step.admitted", "a"));
  });

  it("follows from the failure before it where it is another attempt, though a dependency completed later", () => {
    const scene = openJoined(1).then(finish("a"), dispatch("c"), startStep("c"), failStep("c"), finish("b"));
    const { log } = scene.then(dispatch("c", 2));
    expect(causeOf(log, "step.dispatched", "c")).toBe(find(log, "step.failed", "c"));
  });

  it("follows from the failure before it where it is another attempt", () => {
    const scene = openJoined(2).then(finish("a"), finish("b"), dispatch("c"), startStep("c"), failStep("c"));
    const { log } = scene.then(dispatch("c", 2));
    expect(causeOf(log, "step.dispatched", "c")).toBe(find(log, "step.failed", "c"));
  });
});
