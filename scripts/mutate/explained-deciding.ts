/** Mutants of the files of `dispatch` that decide on claims, questions and ends, which change nothing that anybody could notice. */
import type { Explained } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const DECIDING: readonly Explained[] = [
  {
    file: "worktree-effects.ts",
    code: "if (state.worktrees.isEmpty()) return [];",
    changes: [["state.worktrees.isEmpty()", "false"]],
    why: "It only saves making empty lists.",
  },
  {
    file: "worktree-effects.ts",
    code: "const phase = steps.get(stepId)?.phase;",
    changes: [["steps.get(stepId)?.phase", "steps.get(stepId).phase"]],
    why: "Where there is a worktree there is its step.",
  },
  {
    file: "worktree-effects.ts",
    code: "if (phase?.attempt === attempt && IN_USE.has(phase.status)) return false;",
    changes: [["phase?.attempt", "phase.attempt"]],
    why: "Where there is a worktree there is its step.",
  },
  {
    file: "worktree-effects.ts",
    code: "return !plan?.strays.some((stray) => stray.stepId === stepId && stray.attempt === attempt);",
    changes: [["plan?.strays", "plan.strays"]],
    why: "Only steps of plans have worktrees.",
  },
  {
    file: "worktree-effects.ts",
    code: 'if (worktree.merge) return worktree.merge.status === "begun";',
    changes: [["worktree.merge", "false"]],
    why: "A merge begins where the result is to count, and what could not be merged waits for people.",
  },
  {
    file: "worktree-effects.ts",
    code: "const resolution = escalations.get(escalationId)?.closed?.resolution;",
    changes: [["escalations.get(escalationId)?.closed", "escalations.get(escalationId).closed"]],
    why: "A step names only questions that there are.",
  },
  {
    file: "release-claims.ts",
    code: ".flatMap((conflictId) => findConflict(state, conflictId) ?? [])",
    changes: [["[]", '["Stryker was here"]']],
    why: "Where there is a review there is its conflict.",
  },
  {
    file: "release-claims.ts",
    code: ".filter(({ contest }) => contest !== undefined && isOfStep(contest.requester));",
    changes: [["contest !== undefined", "true"]],
    why: "What people review was recorded with its contest.",
  },
  {
    file: "release-claims.ts",
    code: "const mayHold = stepId === undefined || state.claimCounts.has(stepId);",
    changes: [["stepId === undefined || state.claimCounts.has(stepId)", "true"]],
    why: "It only saves looking for claims that there are not.",
  },
  {
    file: "decide-gates.ts",
    code: "default:",
    changes: [['default: return assertNever(command, "command");', "default:"]],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "decide-gates.ts",
    code: 'return assertNever(command, "command");',
    changes: [['"command"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "decide-gates.ts",
    code: "{ shortened = [] }: Step,",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no text, and one more is below the bound.",
  },
];
