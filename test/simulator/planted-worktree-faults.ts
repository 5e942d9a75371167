/** Owns: faults in how attempts are given worktrees, and how their work is merged back. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";
const DISPATCH = "src/agents/coordination/dispatch";

export const WORKTREE_FAULTS: readonly PlantedFault[] = [
  {
    name: "merge-not-recorded-first",
    file: `${RUNTIME}/worktrees/merge-worktree.ts`,
    find: "  if (writes.length > 0 && !(await recordMergeBegun(merge, writes))) return undefined;\n",
    replace: "",
    breaks: "W2: files are written before the log says so",
  },
  {
    name: "merge-drops-conflicts",
    file: `${RUNTIME}/worktrees/merge-worktree.ts`,
    find: "  if (problems.length > 0) return { unmerged: problems, written: 0 };\n",
    replace: "",
    breaks: "W3: what could not be merged is dropped, and nobody is asked",
  },
  {
    name: "merge-beside-claim",
    file: `${RUNTIME}/arbiter/find-opposition.ts`,
    find: "  if (holders.length > 0) return true;\n",
    replace: "",
    breaks: "A2: a merge writes what another step holds",
  },
  {
    name: "late-worktree-left",
    file: `${RUNTIME}/worktrees/remove-worktree.ts`,
    find: "return dependencies.worktreeTurns.run(name, () => removeWorktreeIfOver(dependencies, about, name));",
    replace: "return removeWorktreeIfOver(dependencies, about, name);",
    breaks: "W1: the worktree of an attempt that was over when it was made is left",
  },
  {
    name: "worktree-removed-for-void-end",
    file: `${RUNTIME}/log/run-log.ts`,
    find: "if (await isDurable(entry)) return found",
    replace: "await isDurable(entry); return found",
    breaks: "W2: a worktree is removed for an end that did not reach the ledger",
  },
  {
    name: "worktree-removed-before-merge",
    file: `${DISPATCH}/worktree-effects.ts`,
    find: '["dispatched", "running", "held"]',
    replace: '["dispatched", "running"]',
    breaks: "W2: a worktree is removed while its result waits to be merged",
  },
  {
    name: "worktree-removed-under-stray",
    file: `${DISPATCH}/worktree-effects.ts`,
    find: "return !plan?.strays.some((stray) => stray.stepId === stepId && stray.attempt === attempt);",
    replace: "return true;",
    breaks: "W1: a worktree is removed while an agent that was given up is still at work in it",
  },
];
