/** Owns: faults in which runs are pruned, and in what stays of them. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";

export const PRUNING_FAULTS: readonly PlantedFault[] = [
  {
    name: "prune-splits-families",
    file: `${RUNTIME}/prune-ledger.ts`,
    find: '  if (families.isKept(run.runId)) return "related";\n',
    replace: "",
    breaks: "a run is pruned though a fork or a plan inside of it is kept",
  },
  {
    name: "prune-takes-recent-runs",
    file: `${RUNTIME}/prune-ledger.ts`,
    find: '  if (run.state !== "prunable") return run.state;\n',
    replace: '  if (run.state === "open") return run.state;\n',
    breaks: "a run is pruned that ended just now",
  },
  {
    name: "prune-frees-words",
    file: `${RUNTIME}/bound-children.ts`,
    find: '  if (isEverythingWithheld(step, session)) bindings.push("gate");\n',
    replace: "",
    breaks: "what a gate withholds is free when its run was pruned",
  },
];
