import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/plan-dispatch.ts";
import {
  answer,
  ask,
  CHECKING_TWICE,
  contentRef,
  DOUBTING,
  createHeldScene,
  createHeldSpawn,
  ruleNoVerdict,
  filterByType,
  findQuestion,
  createSpawnedScene,
  recordTold,
  ruleVerdict,
} from "./gates-scene.ts";
import { admit, cancel, expire, openPlan, planStep, planScene, type PlanScene } from "./planned-scene.ts";
import { timeAt, complete, OPEN } from "./scene.ts";

const notify = [
  { channel: "chat", afterMs: 0 },
  { channel: "cli", afterMs: 0 },
  { channel: "chat", afterMs: 10_000 },
];

/** Two questions: step `a` and step `b` are doubted, and people are told of both. */
const createAskedScene = (): PlanScene =>
  planScene(
    { ...openPlan({ steps: 2 }), questions: { answerMs: 60_000, notify } } as Command,
    admit(
      planStep("a", { decision: { confidence: 1_000, floor: 5_000 } }),
      planStep("b", { decision: { confidence: 1_000, floor: 5_000 } }),
    ),
  );

const listNotices = (scene: PlanScene, ms?: number): string[] =>
  scene
    .effects(ms)
    .flatMap((effect) =>
      effect.kind === "notifyPeople" ? [`${effect.channel} ${effect.escalationId} ${effect.notice}`] : [],
    );
const createNoticed = (
  number: number,
  notice: number,
  outcome: "delivered" | "failed" = "delivered",
): Command => ({
  type: "recordNotice",
  escalationId: `escalation-${number}`,
  notice,
  channel: notify[notice]?.channel ?? "chat",
  outcome,
  tries: 1,
});

describe("telling people", () => {
  it("happens one question at a time on each channel, in their order, and reminders in time", () => {
    const scene = createAskedScene();
    expect(listNotices(scene)).toEqual(["chat escalation-1 0", "cli escalation-1 1"]);
    scene.then(createNoticed(1, 0));
    expect(listNotices(scene)).toEqual(["cli escalation-1 1", "chat escalation-2 0"]);
    scene.then(createNoticed(2, 0, "failed"), createNoticed(1, 1), createNoticed(2, 1));
    expect(listNotices(scene)).toEqual([]);
    const reminded = findQuestion(scene).askedAtMs - timeAt(0) + 10_000;
    expect(findNextDeadline(scene.state)).toBe(timeAt(reminded));
    expect(listNotices(scene, reminded)).toEqual(["chat escalation-1 2"]);
  });

  it("has one id for each notice, and passes by those that have had their turn", () => {
    const scene = createAskedScene();
    const listIds = (...overdue: readonly string[]): readonly string[] =>
      planDispatch(scene.state, timeAt(scene.nowMs), {
        room: { control: 1, data: 1, escalation: 1 },
        agingMs: 60_000,
        isUnderway: () => false,
        hasHadTurn: (effectId) => overdue.includes(effectId),
      }).map(({ effectId }) => effectId);
    expect(listIds()).toEqual(["co-1:notify:chat:escalation-1:0", "co-1:notify:cli:escalation-1:1"]);
    expect(listIds("co-1:notify:chat:escalation-1:0")).toEqual([
      "co-1:notify:cli:escalation-1:1",
      "co-1:notify:chat:escalation-2:0",
    ]);
  });

  it("is recorded once for each notice, and for none that there is not", () => {
    const scene = createAskedScene().then(createNoticed(1, 0));
    expect(scene.says(createNoticed(1, 0, "failed"))).toBe("replay");
    expect(scene.says(createNoticed(1, 7))).toBe("replay");
    expect(scene.says(createNoticed(9, 0))).toBe("replay");
    expect(filterByType(scene, "escalation.notified")).toHaveLength(1);
  });

  it("ends with the question", () => {
    const scene = createAskedScene().then(answer("deny", { number: 1 }));
    expect(listNotices(scene)).toEqual(["chat escalation-2 0", "cli escalation-2 1"]);
    scene.then(answer("approve", { number: 2 }));
    expect(listNotices(scene)).toEqual([]);
  });

  it("never holds up work: other steps begin meanwhile", () => {
    const scene = planScene(
      { ...openPlan({ steps: 2 }), questions: { answerMs: 60_000, notify } } as Command,
      admit(planStep("a", { decision: { confidence: 1_000, floor: 5_000 } }), planStep("b")),
    );
    expect(scene.plans()).toContain("runStep b 1");
  });
});

describe("checks of a held result", () => {
  it("are asked for as long as they have not answered, under one id, also at start", () => {
    const scene = createHeldScene(CHECKING_TWICE);
    for (const plan of [planDispatch, planRecovery])
      expect(plan(scene.state, timeAt(scene.nowMs))).toEqual([
        {
          kind: "verifyResult",
          effectId: "co-1:a:1:verify",
          stepId: "a",
          attempt: 1,
          checks: ["lint", "test"],
        },
      ]);
    scene.then(ruleVerdict(scene, "a", "revise", { check: "test" }));
    expect(scene.effects()).toMatchObject([{ checks: ["lint"] }]);
    scene.then(ruleNoVerdict(scene, "a"));
    expect(scene.effects()).toEqual([]);
  });

  it("of another attempt have another id", () => {
    const scene = createHeldSpawn(CHECKING_TWICE);
    scene.then(
      ruleVerdict(scene, "step-1", "revise"),
      ruleVerdict(scene, "step-1", "pass", { check: "test" }),
    );
    expect(scene.plans()).toEqual(["runStep step-1 2"]);
  });

  it("are something to do now, and not something that hides what is due later", () => {
    const scene = createHeldScene(CHECKING_TWICE);
    const { changedAtMs } = scene.open;
    expect(findNextDeadline(scene.state)).toBe(changedAtMs);
    expect(findNextDeadline(scene.state, changedAtMs)).toBeUndefined();
    scene.then(ask());
    const { deadlineAtMs } = findQuestion(scene);
    expect(findNextDeadline(scene.state, timeAt(scene.nowMs))).toBe(deadlineAtMs);
  });
});

describe("a deadline of a question", () => {
  it("is when it is looked at next, and then it expires once", () => {
    const scene = createHeldScene(DOUBTING, 100);
    const { deadlineAtMs } = findQuestion(scene);
    expect(findNextDeadline(scene.state)).toBe(deadlineAtMs);
    const ms = deadlineAtMs - timeAt(0);
    expect(scene.plans(ms - 1)).toEqual([]);
    expect(scene.effects(ms)).toEqual([
      { kind: "expireQuestion", effectId: "co-1:expire:escalation-1", escalationId: "escalation-1" },
    ]);
    scene.when(expire(), ms);
    expect(scene.plans()).toEqual(["endCoordination"]);
  });

  it("of observed spawns is looked at though no step is open", () => {
    const scene = createSpawnedScene(DOUBTING).then(ask(), complete(1));
    expect(findNextDeadline(scene.state)).toBe(findQuestion(scene).deadlineAtMs);
    expect(scene.plans(findQuestion(scene).deadlineAtMs - timeAt(0))).toEqual(["expireQuestion"]);
  });

  it("of what was cancelled is not waited for", () => {
    const scene = createSpawnedScene(DOUBTING).then(ask(), complete(1), cancel());
    expect(findNextDeadline(scene.state)).toBeLessThanOrEqual(timeAt(scene.nowMs + 3_000));
  });
});

describe("an open question or telling", () => {
  it("keeps a coordination without steps from ending, and its end lets it end", () => {
    const scene = planScene(OPEN, ask({ askedBy: "agent:main:main" as never }));
    expect(scene.plans(1_000_000)).toEqual([]);
    scene.then(answer("answer", { text: contentRef("t") }));
    const tellingId = "answer:escalation-1";
    expect(scene.effects(1_000_000)).toEqual([
      { kind: "tellSession", effectId: `co-1:tell:${tellingId}`, tellingId },
    ]);
    expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs));
    scene.then(recordTold(tellingId));
    expect(scene.plans(scene.nowMs + 2_999)).toEqual([]);
    expect(scene.plans(scene.nowMs + 3_000)).toEqual(["endCoordination"]);
  });
});
