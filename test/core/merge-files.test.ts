import fc from "fast-check";
import { expect, it } from "vitest";
import type { TextMerge } from "../../src/agents/coordination/ports/text-merge.ts";
import type { WorktreeChange } from "../../src/agents/coordination/ports/worktrees.ts";
import { planMergedFiles } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";

const WORKTREE = { name: "a-1", repository: "/nowhere", base: "a".repeat(40) };
const version = fc.constantFrom(
  "absent",
  "100644 a",
  "100644 b",
  "100755 a",
  "120000 c",
  "160000 d",
  "folder",
  "other",
);
const isFile = (candidate: string): boolean => /^(?:absent$|100|120)/u.test(candidate);
const changes: fc.Arbitrary<WorktreeChange[]> = fc.uniqueArray(
  fc.record({ path: fc.constantFrom("a", "b", "c"), base: version, theirs: version, ours: version }),
  { selector: ({ path }) => path },
);

/** Merges every text, or none. */
const createDependencies = (isClean: boolean) => ({
  worktrees: {
    texts: () => Promise.resolve({ base: "", theirs: "", ours: "" }),
    versionOf: () => Promise.resolve("100644 merged"),
  },
  textMerge: () =>
    Promise.resolve<TextMerge>({
      merge: () =>
        isClean ? { kind: "clean", text: "merged" } : { kind: "obstacle", obstacle: "overlapping_changes" },
    }),
});

it("takes what only the agent changed, keeps what only others changed, and never drops what both did", async () => {
  await fc.assert(
    fc.asyncProperty(changes, fc.boolean(), async (all, isClean) => {
      const { writes, unmerged } = await planMergedFiles(createDependencies(isClean), WORKTREE, all);
      for (const { path, base, theirs, ours } of all) {
        const write = writes.find((candidate) => candidate.path === path);
        const isForPeople = unmerged.some((file) => file.path === path);
        if (theirs === base || (theirs === ours && isFile(theirs)))
          expect([write, isForPeople]).toEqual([undefined, false]);
        else if (write?.text === undefined && write)
          expect(write).toEqual({ path, before: base, after: theirs });
        else if (write) expect([write.before, isClean]).toEqual([ours, true]);
        else expect(isForPeople).toBe(true);
        if (write) expect(write.before).toBe(ours);
      }
    }),
  );
});
