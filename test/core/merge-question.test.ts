import { expect, it } from "vitest";
import { stepIdSchema } from "../../src/agents/coordination/contracts/ids.ts";
import { formatMergeQuestion } from "../../src/agents/coordination/runtime/worktrees/merge-question.ts";

const PROBLEM = {
  stepId: stepIdSchema.parse("a"),
  repository: "/repository",
  branch: "coordination/a-1",
  folder: "/worktrees/a-1",
  unmerged: [{ path: "lib", because: "not_a_file" }],
  written: 0,
} as const;
const findWhere = (text: string): string | undefined => text.split("\n")[1];

it("says that all work is on the branch, where it is", () => {
  expect(findWhere(formatMergeQuestion(PROBLEM))).toBe(
    "All of its work is on branch coordination/a-1, in folder /worktrees/a-1, until you answer.",
  );
});

it("says that all work is in the folder, where git could not put it on the branch", () => {
  const text = formatMergeQuestion({ ...PROBLEM, problem: `git says: ${"x".repeat(4_000)}` });
  expect(findWhere(text)).toMatch(
    /^All of its work is in folder \/worktrees\/a-1 until you answer; git could not put all of it on branch coordination\/a-1: git says: x+\.$/u,
  );
  expect(text).toContain("Approve: ");
});
