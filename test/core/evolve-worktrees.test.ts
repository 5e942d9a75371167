import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { formatWorktreeKey } from "../../src/agents/coordination/ledger/evolve-worktrees.ts";
import { openOf } from "./claims-scene.ts";
import { admit, dispatch, openPlan, planStep, runOut, startStep } from "./planned-scene.ts";
import { OPEN, openScene, timeAt, type Scene } from "./scene.ts";

const ALONE = "alone" as StepId;
const SHARED = "shared" as StepId;
const OPENED = { repository: "/repo", base: "a".repeat(40), folder: "/trees/alone-1" };
const FILES = [{ path: "/repo/a.txt", before: "1", after: "2" }];

/** Two steps at work, one of them in a worktree. */
function openIsolated(...more: readonly Command[]): Scene {
  return openScene(
    openPlan({ steps: 2 }),
    admit(planStep("alone", { isolate: "worktree", retryBudget: 1 }), planStep("shared")),
    dispatch("alone"),
    dispatch("shared"),
    startStep("alone"),
    ...more,
  );
}

/** Its first attempt ran out of time, and the second one began. */
const openRetried = (): Scene => openIsolated(runOut("alone"), dispatch("alone", 2));

const attemptOf = (attempt = 1, stepId = ALONE) => ({ stepId, attempt });
const createOpened = (attempt = 1, stepId = ALONE): FactDraft => ({
  type: "worktree.opened",
  payload: { ...attemptOf(attempt, stepId), ...OPENED },
});
const createBegun = (attempt = 1): FactDraft => ({
  type: "worktree.merge_begun",
  payload: { ...attemptOf(attempt), files: FILES },
});
const createMerged = (attempt = 1): FactDraft => ({
  type: "worktree.merged",
  payload: { ...attemptOf(attempt), files: 1 },
});
const createConflicted = (attempt = 1): FactDraft => ({
  type: "worktree.conflicted",
  payload: { ...attemptOf(attempt), files: [] },
});
const createRemoved = (attempt = 1): FactDraft => ({
  type: "worktree.removed",
  payload: { ...attemptOf(attempt), outcome: "removed" },
});

const listWorktrees = (scene: Scene): unknown => openOf(scene).worktrees.toArray();

describe("W1: the worktrees of a coordination", () => {
  it("may be there from the dispatch on, of the steps that work alone and of no others", () => {
    expect(listWorktrees(openIsolated())).toEqual([
      [formatWorktreeKey(ALONE, 1), { stepId: ALONE, attempt: 1 }],
    ]);
  });

  it("are none of a spawn, which is no step of a plan", () => {
    const scene = openScene(OPEN);
    const { planned: _, ...observed } = planStep("alone", { isolate: "worktree" });
    const payload = {
      ...attemptOf(),
      lane: "data",
      idempotencyKey: "k",
      deadlineAtMs: timeAt(90_000),
    } as const;
    scene.happened([
      { type: "step.admitted", payload: observed },
      { type: "step.dispatched", payload },
    ]);
    expect(listWorktrees(scene)).toEqual([]);
  });

  it("are told apart by their steps and by their attempts", () => {
    const keys = [formatWorktreeKey(ALONE, 1), formatWorktreeKey(ALONE, 2), formatWorktreeKey(SHARED, 1)];
    expect(new Set(keys).size).toBe(3);
    expect(openOf(openRetried()).worktrees.keySeq().toArray()).toEqual(keys.slice(0, 2));
  });

  it("are where the log says, from its repository's commit on", () => {
    const scene = openIsolated();
    scene.happened([createOpened()]);
    expect(openOf(scene).worktrees.get(formatWorktreeKey(ALONE, 1))).toStrictEqual({
      ...attemptOf(),
      opened: OPENED,
    });
  });

  it.each([
    ["are being merged, with the files", [createBegun()], { status: "begun", files: FILES }],
    ["are merged", [createBegun(), createMerged()], { status: "merged" }],
    ["are not merged where people are asked", [createConflicted()], { status: "conflicted" }],
  ] as const)("%s", (_, facts, merge) => {
    const scene = openIsolated();
    scene.happened([createOpened(), ...facts]);
    expect(openOf(scene).worktrees.get(formatWorktreeKey(ALONE, 1))).toStrictEqual({
      ...attemptOf(),
      opened: OPENED,
      merge,
    });
    expect(openOf(scene).steps.get(ALONE)?.phase.status).toBe("running");
  });

  it("leave with their step which files it merged, also when they are gone", () => {
    const scene = openIsolated();
    scene.happened([createOpened(), createBegun()]);
    expect(openOf(scene).steps.get(ALONE)).not.toHaveProperty("merged");
    scene.happened([createMerged(), createRemoved()]);
    expect(openOf(scene).steps.get(ALONE)?.merged).toEqual({ repository: "/repo", paths: ["/repo/a.txt"] });
    expect(openOf(scene).steps.get(SHARED)).not.toHaveProperty("merged");
  });

  it("leave nothing with their step where nothing was to be merged", () => {
    const scene = openIsolated();
    scene.happened([createOpened(), createMerged()]);
    expect(openOf(scene).steps.get(ALONE)).not.toHaveProperty("merged");
  });

  it("go when they are removed, each alone", () => {
    const scene = openRetried();
    scene.happened([createRemoved()]);
    expect(openOf(scene).worktrees.keySeq().toArray()).toEqual([formatWorktreeKey(ALONE, 2)]);
    scene.happened([createRemoved(2)]);
    expect(listWorktrees(scene)).toEqual([]);
  });

  it.each([
    ["an attempt that there was not", [createOpened(2)], "W1: no worktree of attempt 2: co-1:"],
    ["a step that shares the folder", [createOpened(1, SHARED)], "W1: no worktree of attempt 1: co-1:"],
    ["an attempt whose worktree is gone", [createRemoved(), createMerged()], "W1: no worktree of attempt 1"],
  ] as const)("are none of %s: such a log is damaged", (_, facts, message) => {
    const scene = openIsolated();
    expect(() => {
      scene.happened(facts);
    }).toThrow(message);
  });
});
