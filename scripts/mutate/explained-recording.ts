/** Mutants of the files of `dispatch` that record facts, which change nothing that anybody could notice, each with the reason. */
import type { ExplainedMutants } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const RECORDING: readonly ExplainedMutants[] = [
  {
    file: "decide-progress.ts",
    code: "if (nextAtMs !== undefined && now < nextAtMs)",
    changes: [["nextAtMs !== undefined", "true"]],
    why: "No time is as early as none.",
  },
  {
    file: "observe-child.ts",
    code: "([field, value]) => value !== undefined && !isSameRunValue(before[field], value),",
    changes: [["value !== undefined", "true"]],
    why: "A field without a value is left out of the event as it is written.",
  },
  {
    file: "observe-child.ts",
    code: 'return typeof a === "object" && typeof b === "object" ? a.sha256 === b.sha256 : a === b;',
    changes: [['typeof b === "object"', "true"]],
    why: "Both are values of one field, and tools are objects alone.",
  },
  {
    file: "observe-child.ts",
    code: "{ spec: { stepId }, phase: { attempt }, differences: recorded = [] }: Step,",
    changes: [["[]", '["Stryker was here"]']],
    why: "It equals no difference, and one more is below the bound.",
  },
  {
    file: "observe-child.ts",
    code: 'return a.field === b.field && a.asked === b.asked && (a.field === "writes" || a.ran === b.ran);',
    changes: [["a.asked === b.asked", "true"]],
    why: "A step was asked for one value of each field.",
  },
  {
    file: "record.ts",
    code: "default:",
    changes: [['default: return assertNever(draft, "fact draft");', "default:"]],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "record.ts",
    code: 'return assertNever(draft, "fact draft");',
    changes: [['"fact draft"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "record.ts",
    code: ".reduce((newest, fact) => (parseSequence(fact) > parseSequence(newest) ? fact : newest), step.lastFactId);",
    changes: [
      ["parseSequence(fact) > parseSequence(newest)", "parseSequence(fact) >= parseSequence(newest)"],
    ],
    why: "No two facts have one number.",
  },
  {
    file: "record.ts",
    code: 'return step?.phase.status === "completed" ? [step.lastFactId] : [];',
    changes: [
      ["step?.phase", "step.phase"],
      ["[]", '["Stryker was here"]'],
    ],
    why: "Each dependency is a step, and what is no id of an event is not newer than one.",
  },
  {
    file: "record.ts",
    code: 'if (state.kind !== "unopened") for (const counterpart of projectFact(fact, state)) append(counterpart);',
    changes: [
      ['state.kind !== "unopened"', "true"],
      ['"unopened"', '""'],
    ],
    why: "After a fact the coordination is open.",
  },
  {
    file: "record.ts",
    code: 'return "stepId" in draft.payload && draft.payload.stepId ? { nodeId: draft.payload.stepId } : {};',
    changes: [
      [
        '"stepId" in draft.payload && draft.payload.stepId',
        '"stepId" in draft.payload || draft.payload.stepId',
      ],
    ],
    why: "A payload has the field where it has a value for it.",
  },
  {
    file: "record.ts",
    code: 'if (state.kind === "unopened" || draft.type === "coordination.created") return undefined;',
    changes: [
      [
        'state.kind === "unopened" || draft.type === "coordination.created"',
        'state.kind === "unopened" && draft.type === "coordination.created"',
      ],
      ['state.kind === "unopened"', "false"],
      ['"unopened"', '""'],
      ['draft.type === "coordination.created"', "false"],
      ['"coordination.created"', '""'],
    ],
    why: "The first fact is that the coordination was opened, which has no cause either.",
  },
  {
    file: "record.ts",
    code: 'case "worktree.removed":',
    changes: [
      [
        'case "worktree.removed": return state.steps.get(draft.payload.stepId)?.lastFactId;',
        'case "worktree.removed":',
      ],
    ],
    why: "The next cases differ only where there is no step.",
  },
  {
    file: "record.ts",
    code: "return state.steps.get(draft.payload.stepId)?.lastFactId;",
    changes: [
      [
        "state.steps.get(draft.payload.stepId)?.lastFactId",
        "state.steps.get(draft.payload.stepId).lastFactId",
      ],
    ],
    why: "Such a fact is about a step that is there.",
  },
  {
    file: "record.ts",
    code: "return state.conflicts.find(({ conflictId }) => conflictId === id)?.detectedEventId;",
    changes: [
      [
        "state.conflicts.find(({ conflictId }) => conflictId === id)?.detectedEventId",
        "state.conflicts.find(({ conflictId }) => conflictId === id).detectedEventId",
      ],
    ],
    why: "Only what was discovered is ruled on.",
  },
  {
    file: "record.ts",
    code: "const dependsOn = step?.spec.planned?.dependsOn;",
    changes: [["step?.spec", "step.spec"]],
    why: "A step that is dispatched is there.",
  },
  {
    file: "record.ts",
    code: 'if (!step || step.phase.status !== "waiting" || !dependsOn?.length) return step?.lastFactId;',
    changes: [
      ['!step || step.phase.status !== "waiting"', '!step && step.phase.status !== "waiting"'],
      ["step?.lastFactId", "step.lastFactId"],
    ],
    why: "A step that is dispatched is there.",
  },
];
