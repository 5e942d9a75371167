/** When the work of a worktree is merged back, and when a worktree is removed. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  mustMergeWorktree,
  planWorktreeEffects,
} from "../../src/agents/coordination/dispatch/worktree-effects.ts";
import { openOf } from "./claims-scene.ts";
import {
  admit,
  answer,
  cancel,
  dispatch,
  failStep,
  finish,
  openPlan,
  planScene,
  planStep,
  runOut,
  startStep,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

const STEP = "a" as StepId;
const GATE = { threshold: 10_000, requireConfidence: true };

const beginMerge: Command = {
  type: "beginMerge",
  stepId: STEP,
  attempt: 1,
  files: [{ path: "/repo/a.txt", before: "1", after: "2" }],
};
const askAboutMerge: Command = {
  type: "askAboutMerge",
  stepId: STEP,
  attempt: 1,
  files: [{ path: "/repo/a.txt", because: "both_changed" }],
  changed: [],
  question: { sha256: "0".repeat(64), bytes: 1 },
};

/** Two steps with worktrees of their own; the first is dispatched. */
const openBegun = (fields: StepFields = {}): PlanScene =>
  planScene(
    openPlan({ steps: 2 }),
    admit(planStep("a", { isolate: "worktree", ...fields }), planStep("b", { isolate: "worktree" })),
    dispatch("a"),
  );
const openHeld = (fields: StepFields = {}): PlanScene => openBegun(fields).then(startStep("a"), finish("a"));

const listEffects = (scene: PlanScene): string[] =>
  planWorktreeEffects(openOf(scene)).map(({ kind, effectId }) => `${kind} ${effectId}`);

const MERGE = "mergeWorktree co-1:a:1:merge";
const REMOVE = "removeWorktree co-1:a:1:unworktree";

describe("a worktree", () => {
  it.each<readonly [string, () => PlanScene]>([
    ["begins", () => openBegun()],
    ["works", () => openBegun().then(startStep("a"))],
    ["waits for people", () => openHeld({ gate: GATE })],
  ])("is left alone while its attempt %s", (_, open) => {
    expect(listEffects(open())).toEqual([]);
  });

  it("is removed when its attempt is over", () => {
    expect(listEffects(openBegun().then(failStep("a")))).toEqual([REMOVE]);
  });

  it("is removed when the next attempt works in another one", () => {
    const scene = openBegun({ retryBudget: 1 }).then(failStep("a"), dispatch("a", 2));
    expect(listEffects(scene)).toEqual([REMOVE]);
    scene.then(startStep("a", 2));
    expect(listEffects(scene)).toEqual([REMOVE]);
  });

  it("is left alone while the child of an attempt that was given up may still write there", () => {
    const scene = openBegun({ retryBudget: 1 }).then(startStep("a"), runOut("a"), dispatch("a", 2));
    const { plan } = openOf(scene);
    expect(plan?.strays.valueSeq().toArray()).toMatchObject([{ stepId: STEP, attempt: 1 }]);
    expect(listEffects(scene)).toEqual([]);
  });

  it("is removed though the child of another attempt or step may still be at work", () => {
    const retried = openBegun({ retryBudget: 2 }).then(
      startStep("a"),
      runOut("a"),
      dispatch("a", 2),
      failStep("a", 2),
    );
    expect(listEffects(retried)).toEqual(["removeWorktree co-1:a:2:unworktree"]);
    const other = openBegun({ retryBudget: 1 }).then(
      dispatch("b"),
      startStep("b"),
      runOut("b"),
      failStep("a"),
    );
    expect(listEffects(other)).toContain(REMOVE);
  });
});

describe("what a held attempt left in its worktree", () => {
  it("is merged when nothing gates the result, and on after a merge began", () => {
    const scene = openHeld();
    expect(listEffects(scene)).toEqual([MERGE]);
    scene.then(beginMerge);
    expect(listEffects(scene)).toEqual([MERGE]);
  });

  it.each<readonly [string, Command, readonly string[]]>([
    ["approve", answer(1, "approve"), [MERGE]],
    ["answer", answer(1, "answer"), [MERGE]],
    ["deny", answer(1, "deny"), [REMOVE]],
  ])("is merged as people say: %s", (_, command, effects) => {
    expect(listEffects(openHeld({ gate: GATE }).then(command))).toEqual(effects);
  });

  it("is not merged again while people look after what could not be merged", () => {
    expect(listEffects(openHeld().then(askAboutMerge))).toEqual([]);
  });

  it("is not merged when the step was cancelled", () => {
    expect(listEffects(openHeld().then(cancel("a")))).toEqual([REMOVE]);
  });

  it("is that of the attempt, which must be held and have a worktree", () => {
    const state = openOf(openHeld());
    expect(mustMergeWorktree(state, STEP, 1)).toBe(true);
    expect(mustMergeWorktree(state, STEP, 2)).toBe(false);
    expect(mustMergeWorktree(state, "b" as StepId, 1)).toBe(false);
    expect(mustMergeWorktree({ ...state, worktrees: state.worktrees.clear() }, STEP, 1)).toBe(false);
    const retried = openOf(
      openBegun({ retryBudget: 1 }).then(
        startStep("a"),
        runOut("a"),
        dispatch("a", 2),
        startStep("a", 2),
        finish("a", 2),
      ),
    );
    expect([1, 2].map((attempt) => mustMergeWorktree(retried, STEP, attempt))).toEqual([false, true]);
    expect(mustMergeWorktree(openOf(openBegun()), STEP, 1)).toBe(false);
  });
});
