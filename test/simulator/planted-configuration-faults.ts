/** Owns: faults in what becomes of the operator's settings when a process is started again with others. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";

export const CONFIGURATION_FAULTS: readonly PlantedFault[] = [
  {
    name: "first-threshold-stays",
    file: `${RUNTIME}/held-results/gate-of.ts`,
    find: "const operators = ofAgent.confidenceThreshold ?? config.confidenceThreshold;",
    replace:
      "const first = buildGate as unknown as { threshold?: number };\n" +
      "  const operators = ofAgent.confidenceThreshold ?? (first.threshold ??= config.confidenceThreshold);",
    breaks: "results are held to the threshold of an earlier configuration",
  },
  {
    name: "undefined-check-passes",
    file: `${RUNTIME}/held-results/verify-result.ts`,
    find: '  if (!check) return createNoVerdict("unavailable", "nobody defines this check");\n',
    replace: '  if (!check) return { kind: "verdict", verdict: "pass", criteria: [], agentId: "nobody" };\n',
    breaks: "a result counts though nobody defines its check any more",
  },
  {
    name: "question-opens-without-budget",
    file: `${RUNTIME}/questions/ask-question.ts`,
    find: "    ...(budget && { budget }),\n",
    replace: "",
    breaks: "spawns of a turn that asks first are under no budget of the operator",
  },
];
