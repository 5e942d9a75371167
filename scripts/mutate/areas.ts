/** Parts of the core whose tests are tested by `npm run mutate`, and which tests those are. */

/** A part of the core and the tests that answer for it. */
export interface Area {
  /** The folder that is mutated, from the root of the project. */
  readonly folder: string;
  /** Globs of test files: fast ones, in one process, without gateways and servers. */
  readonly tests: readonly string[];
}

const DISPATCH_TESTS = [
  "test/core/{decide*,dispatch*,planned-*,observe-child,answer-question,conflict-sentence,gate-effects}.test.ts",
  "test/core/{envelope-of,late-outcome,refused-calls,notices,notify-people,progress,recovery,refused-answers,rule-on-answer,telling-message}.test.ts",
  "test/core/{gates-ends,gates-asked,gates-faults,question-waits,judge-plan}.test.ts",
  "test/core/{arbitrate-hooks*,usage-recorder,what-if,ask-again}.test.ts",
];

/** Areas by the names that the command takes. */
export const AREAS: Readonly<Record<string, Area>> = {
  lanes: {
    folder: "src/agents/coordination/lanes",
    tests: ["test/core/{lanes-*,provider-lane,provider-lanes,spawn-gate}.test.ts"],
  },
  arbitration: {
    folder: "src/agents/coordination/arbitration",
    tests: ["test/core/{arbitrate*,conflict-sentence,matches-pattern,resource-names,strategy-for}.test.ts"],
  },
  gates: {
    folder: "src/agents/coordination/gates",
    tests: [
      "test/core/{child-differences,confidence-gate,placeholder,stated-confidence,verifier-gate}.test.ts",
      "test/core/{gate-of,gates-ends}.test.ts",
    ],
  },
  ledger: {
    folder: "src/agents/coordination/ledger",
    tests: [
      "test/core/{bill,ended-steps,evolve*,declared-resources,gate-of,readable-results,summary,withheld-words}.test.ts",
      ...DISPATCH_TESTS,
    ],
  },
  dispatch: { folder: "src/agents/coordination/dispatch", tests: DISPATCH_TESTS },
  workflow: {
    folder: "src/agents/coordination/workflow",
    tests: ["test/core/{workflow-*,run-diff,trace-context,agent-tools,ask-again}.test.ts"],
  },
};

/** Tests that take seconds each time: they would be run again for every mutant. */
export const SLOW_TESTS = [
  "test/core/*-{properties,crash,heartbeat}.test.ts",
  "test/core/{workflow-forks,workflow-forks-refused,workflow-stateful,plan-forks}.test.ts",
  "test/core/{planned-decide,plan-run,plan-worktrees,progress}.test.ts",
];
