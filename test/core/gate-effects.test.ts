import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
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
import {
  admit,
  beginSteps,
  cancel,
  dispatch,
  expire,
  failStep,
  HITL,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  planScene,
  runOut,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { timeAt, complete, fail, OPEN } from "./scene.ts";

const TEST = { check: "test" } as const;
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
    scene.then(ruleVerdict(scene, "step-1", "revise"), ruleVerdict(scene, "step-1", "pass", TEST));
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

describe("a question of an agent whose attempt is over", () => {
  const createAsking = (retryBudget = 0): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...HITL }),
      admit(planStep("a", { retryBudget }), planStep("b")),
      ...beginSteps("a"),
      ask({ askedBy: nameSessionOfAttempt("a"), stepId: "a" as StepId }),
    );
  const isWithdrawn = (scene: PlanScene): boolean =>
    scene
      .effects()
      .some((effect) => effect.kind === "expireQuestion" && effect.escalationId === "escalation-1");

  it.each([
    ["failed, and is tried again", createAsking(1).then(failStep("a"))],
    ["ran out of time, and waits for people", createAsking().then(runOut("a"))],
    [
      "failed, and the next one is at work",
      createAsking(1).then(failStep("a"), dispatch("a", 2), startStep("a", 2)),
    ],
    ["was cancelled", createAsking().then(cancel("a"), failStep("a", 1, "child_cancelled"))],
  ])("is withdrawn at once: %s", (_, scene) => {
    expect(isWithdrawn(scene)).toBe(true);
    expect(findNextDeadline(scene.state)).toBeLessThanOrEqual(timeAt(scene.nowMs));
    expect(scene.says(expire())).toBe("escalation.closed");
    expect(findQuestion(scene).closed).toEqual({ escalationId: "escalation-1", resolution: "cancelled" });
    expect(scene.open.tellings.size).toBe(0);
    expect(scene.says(expire())).toBe("replay");
  });

  it("is one of its parent, too, which then hears nothing of it", () => {
    const scene = planScene(openPlan({ steps: 1 }), admit(planStep("a")), ...beginSteps("a"));
    scene.then(ask({ askedBy: nameSessionOfAttempt("a"), askedOf: "agent:main:main" as never }));
    expect(scene.plans()).toContain("tellSession");
    scene.then(failStep("a"), expire());
    expect(scene.plans()).not.toContain("tellSession");
  });

  it("stays open while its agent is at work, or its result goes back to it", () => {
    const scene = createAsking();
    expect(isWithdrawn(scene)).toBe(false);
    expect(scene.says(expire())).toBe("NOT_READY");
    const revised = createHeldSpawn(CHECKING_TWICE).then(ask());
    revised.then(ruleVerdict(revised, "step-1", "revise"), ruleVerdict(revised, "step-1", "pass", TEST));
    expect(isWithdrawn(revised)).toBe(false);
  });

  it("of a spawn stays open after its end, because its session goes on, but not where people cancelled it", () => {
    const createSpawn = () => createSpawnedScene(DOUBTING).then(ask());
    expect(isWithdrawn(createSpawn().then(fail(1)))).toBe(false);
    expect(isWithdrawn(createSpawn().then(cancel("step-1"), fail(1, "child_cancelled")))).toBe(true);
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
