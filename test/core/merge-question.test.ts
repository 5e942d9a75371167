import { expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
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

const LAST_LINE =
  "Approve: its result counts, and what you did not merge yourself is dropped. Deny: its result is withheld.";

it("names as many files as there is room for, and always says where the work is and what the answers do", () => {
  const paths = Array.from(
    { length: 30 },
    (_, index) => `${String(index).padStart(2, "0")}${"x".repeat(800)}`,
  );
  const unmerged = paths.map((path) => ({ path, because: "both_changed" }) as const);
  const text = formatMergeQuestion({ ...PROBLEM, unmerged });
  expect(text.length).toBeLessThanOrEqual(BOUNDS.questionCharsMax);
  expect(text).toContain(
    `${paths[3]} (changed in the folder, too), 26 more. Nothing of it is written there.\n`,
  );
  expect(text).not.toContain("04x");
  expect(findWhere(text)).toContain("on branch coordination/a-1");
  expect(text.split("\n").at(-1)).toBe(LAST_LINE);
});

it.each([
  ["why nothing was merged", { message: "x".repeat(5_000) }],
  ["the names of folders", { folder: "x".repeat(5_000), repository: "x".repeat(5_000) }],
])("says what the answers do whatever the length of %s", (_, long) => {
  const text = formatMergeQuestion({ ...PROBLEM, ...long });
  expect(text.length).toBeLessThanOrEqual(BOUNDS.questionCharsMax);
  expect(text.split("\n").at(-1)).toBe(LAST_LINE);
});
