/** Decisions that have changed since they were first recorded: a replay of an older log decides them as they were then. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { CHECKING, createHeldScene, createRunningScene, DOUBTING, finishDone } from "./gates-scene.ts";
import {
  admit,
  beginSteps,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  openPlan,
  planScene,
  planStep,
  recordFinding,
  recordNoVerdict,
  report,
  SETTLE_PLAN,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { createContentRef, RUN, timeAt } from "./scene.ts";

const DEADLINE_MS = 100_000;
const TIMED = { plan: { deadlineAtMs: timeAt(DEADLINE_MS) } };

const draftFacts = ({ state }: PlanScene, command: Command, ms: number): readonly FactDraft[] => {
  const decision = decide(state, command, timeAt(ms));
  return "facts" in decision ? (decision.facts ?? []) : [];
};
const listTypes = (facts: readonly FactDraft[]): string => facts.map(({ type }) => type).join(" ");

/** Decides the log of a scene with these facts behind it again, and returns where that differs from what is recorded. */
async function findDifference({ state, log }: PlanScene, facts: readonly FactDraft[], ms = DEADLINE_MS) {
  const whole = [...log, ...recordFacts(state, facts, timeAt(ms)).events];
  const store = {
    read: (_: unknown, { from, limit }: { from: number; limit: number }) =>
      Promise.resolve(whole.slice(from, from + limit)),
    get: () => Promise.resolve(undefined),
  };
  const { decisions, difference } = await replayCoordination(store, RUN);
  expect(decisions).toBeGreaterThan(0);
  return difference;
}

/** A plan whose step `a` works in a worktree, and whose changes are being merged back. */
function createMergingScene(): PlanScene {
  const about = { stepId: "a" as StepId, attempt: 1 };
  return planScene(
    openPlan({ steps: 1, ...TIMED }),
    admit(planStep("a", { isolate: "worktree", timeoutMs: DEADLINE_MS })),
    dispatch("a"),
    { type: "openWorktree", ...about, repository: "/repo", base: "a".repeat(40), folder: "/trees/a-1" },
    ...beginSteps("a").slice(1),
    finish("a", 1, { output: createContentRef("out") }),
    { type: "beginMerge", ...about, files: [{ path: "/repo/a.txt", before: "1", after: "2" }] },
  );
}

const ASK_ABOUT_MERGE: Command = {
  type: "askAboutMerge",
  stepId: "a" as StepId,
  attempt: 1,
  files: [{ path: "/repo/a.txt", because: "both_changed" }],
  changed: [],
  question: createContentRef("question"),
};

describe("a result that people would have to rule on after the plan's deadline", () => {
  it.each<readonly [string, PlanScene, (scene: PlanScene) => Command]>([
    ["result.held", createRunningScene(DOUBTING, { opened: TIMED }), () => finishDone("a", 100)],
    [
      "result.held",
      createRunningScene(DOUBTING, { opened: TIMED }).then(report("a", 1, { confidence: 100 })),
      () => finishDone("a"),
    ],
    [
      "verification.failed",
      createHeldScene(CHECKING, undefined, { opened: TIMED }),
      (scene) => recordNoVerdict(scene.step("a")),
    ],
    [
      "result.verified",
      createHeldScene({ ...CHECKING, revisionsMax: 0 }, undefined, { opened: TIMED }),
      (scene) => recordFinding(scene.step("a"), { verdict: "revise", criteria: ["shipped"] }),
    ],
    ["worktree.conflicted", createMergingScene(), () => ASK_ABOUT_MERGE],
  ])(
    "is asked about behind %s in the log of an earlier release, and withheld in one of ours",
    async (lead, scene, nameCommand) => {
      const command = nameCommand(scene);
      const earlier = draftFacts(scene, command, DEADLINE_MS - 1);
      expect(listTypes(earlier)).toBe(`${lead} coordination.escalated`);
      expect(await findDifference(scene, earlier)).toBeUndefined();
      const current = draftFacts(scene, command, DEADLINE_MS);
      expect(listTypes(current)).toBe(`${lead} step.failed`);
      expect(await findDifference(scene, current)).toBeUndefined();
      expect(await findDifference(scene, current, DEADLINE_MS - 1)).toBeDefined();
    },
  );
});

describe("a plan's owner", () => {
  const createTellingScene = (...begun: readonly Command[]): PlanScene =>
    planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      ...beginSteps("a"),
      finish("a"),
      SETTLE_PLAN,
      dispatch(DELIVERY),
      ...begun,
    );
  const dropRetry = (facts: readonly FactDraft[]): FactDraft[] =>
    facts.map((fact) => {
      if (fact.type !== "step.failed") return fact;
      const { retryAtMs, ...payload } = fact.payload;
      expect(retryAtMs).toBeDefined();
      return { type: "step.failed", payload };
    });

  it("whose turn failed before it was told is told again, but in the log of an earlier release", async () => {
    const scene = createTellingScene(startStep(DELIVERY));
    const failed = draftFacts(scene, failStep(DELIVERY), DEADLINE_MS);
    expect(await findDifference(scene, failed)).toBeUndefined();
    expect(await findDifference(scene, dropRetry(failed))).toBeUndefined();
  });

  it("for whom the host began no turn is told again in each log", async () => {
    const scene = createTellingScene();
    const failed = draftFacts(scene, failStep(DELIVERY, 1, "spawn_refused"), DEADLINE_MS);
    expect(await findDifference(scene, failed)).toBeUndefined();
    expect(await findDifference(scene, dropRetry(failed))).toBeDefined();
  });
});
