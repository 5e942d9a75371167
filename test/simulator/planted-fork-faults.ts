/** Owns: faults in how plans are forked: what a fork has from its source, and what it answers. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";

export const FORK_FAULTS: readonly PlantedFault[] = [
  {
    name: "fork-from-later-place",
    file: `${RUNTIME}/log/carried-results.ts`,
    find: "readStoredState(store, coordinationId, Math.max(sequence, 1));",
    replace: "readStoredState(store, coordinationId, Math.max(sequence, 1) + 6);",
    breaks: "D6: a fork has results that came after its place",
  },
  {
    name: "fork-carries-failures",
    file: `${RUNTIME}/log/carried-results.ts`,
    find: 'if (phase.status !== "completed") continue;',
    replace: 'if (phase.status !== "completed" && phase.status !== "failed") continue;',
    breaks: "D6: a step that failed counts as completed in a fork",
  },
  {
    name: "fork-of-fork-forgets",
    file: `${RUNTIME}/log/carried-results.ts`,
    find: "const earlier = isForkBeingAdmitted(state)",
    replace: 'const earlier = state.kind === "unopened"',
    breaks: "D6: a fork of a fork that was being admitted does steps again that had completed",
  },
  {
    name: "fork-does-carried-steps-again",
    file: "src/agents/coordination/ledger/evolve.ts",
    find: "  if (!carried) return state;\n",
    replace: "  if (carried || !carried) return state;\n",
    breaks: "D2: a fork does what its source had done",
  },
  {
    name: "fork-from-any-place-is-the-same",
    file: `${RUNTIME}/plans/fork-plan.ts`,
    find: "  if (from !== undefined && from !== forkedFrom.sequence) return undefined;\n",
    replace: "",
    breaks: "D1: a fork from another place is said to be there",
  },
  {
    name: "fork-again-is-refused",
    file: `${RUNTIME}/plans/fork-plan.ts`,
    find: "const state = coordinationId && (await dependencies.runs.state(coordinationId));",
    replace: "const state = undefined;",
    breaks: "D2: a fork that is asked for again is refused when its source has grown",
  },
];
