/** Mutants that change nothing which anybody could notice, each with the reason. */
import { AREAS } from "./areas.ts";
import { DECIDING } from "./explained-deciding.ts";
import { DISPATCH } from "./explained-dispatch.ts";
import { RECORDING } from "./explained-recording.ts";
import { WORKFLOW_NODES } from "./explained-workflow-nodes.ts";
import { WORKFLOW_STATE } from "./explained-workflow-state.ts";
import { WORKFLOW } from "./explained-workflow.ts";
import type { ExplainedMutants } from "./tally-mutants.ts";

const LANES: readonly ExplainedMutants[] = [
  {
    file: "binary-heap.ts",
    code: "if (parent === undefined || compare(item, parent) >= 0) return;",
    changes: [["compare(item, parent) >= 0", "compare(item, parent) > 0"]],
    why: "The heap promises no order of equal items, and ranks are never equal.",
  },
  {
    file: "binary-heap.ts",
    code: "if (child === undefined || compare(child, item) >= 0) return;",
    changes: [["compare(child, item) >= 0", "compare(child, item) > 0"]],
    why: "The heap promises no order of equal items, and ranks are never equal.",
  },
  {
    file: "binary-heap.ts",
    code: "return left !== undefined && right !== undefined && compare(right, left) < 0 ? leftAt + 1 : leftAt;",
    changes: [
      ["left !== undefined", "true"],
      ["compare(right, left) < 0", "compare(right, left) <= 0"],
    ],
    why: "Where there is a right child there is a left one, and the heap promises no order of equal items.",
  },
  {
    file: "pick-best.ts",
    code: "keepIfBetter(group, { request, rank }, Math.min(count, spend.left(request)));",
    changes: [["Math.min(count, spend.left(request))", "Math.max(count, spend.left(request))"]],
    why: "A group that keeps more than can be picked takes memory; the others are passed over afterwards.",
  },
  {
    file: "pick-best.ts",
    code: 'return ofSession || ofAgent ? JSON.stringify([ofSession && session, ofAgent && agentId]) : "";',
    changes: [
      ["ofSession || ofAgent", "true"],
      ['""', '"Stryker was here!"'],
    ],
    why: "Without allowances all requests are in one group, whatever its name is.",
  },
  {
    file: "pick-best.ts",
    code: "if (kept.size() < max) kept.add(candidate);",
    changes: [
      ["kept.size() < max", "true"],
      ["kept.size() < max", "kept.size() <= max"],
    ],
    why: "A group that keeps more than can be picked takes memory; the others are passed over afterwards.",
  },
  {
    file: "pick-best.ts",
    code: "else if (last && compareLastFirst(candidate, last) > 0) {",
    changes: [["compareLastFirst(candidate, last) > 0", "compareLastFirst(candidate, last) >= 0"]],
    why: "No two requests have the same rank.",
  },
  {
    file: "pick-best.ts",
    code: "kept.takeFirst();",
    changes: [["kept.takeFirst();", ";"]],
    why: "A group that keeps more than can be picked takes memory; the others are passed over afterwards.",
  },
  {
    file: "provider-lane.ts",
    code: "leadMs: lane.leadMs + longerMs * (longerMs > 0 ? LEAD_SHARE : 1),",
    changes: [["longerMs > 0", "longerMs >= 0"]],
    why: "Any share of no difference is none.",
  },
  {
    file: "provider-lane.ts",
    code: "return a > b ? a : b;",
    changes: [["a > b", "a >= b"]],
    why: "Either of two equal times is the later one.",
  },
];

const ARBITRATION: readonly ExplainedMutants[] = [
  {
    file: "arbitrate.ts",
    code: "default:",
    changes: [['default: return assertNever(contest.strategy, "strategy");', "default:"]],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "arbitrate.ts",
    code: 'return assertNever(contest.strategy, "strategy");',
    changes: [['"strategy"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "arbitrate.ts",
    code: 'assertInvariant(winner !== undefined && next !== undefined, "A1: a conflict has two sides");',
    changes: [["winner !== undefined", "true"]],
    why: "Where there is a second contestant there is a first one.",
  },
  {
    file: "strategy-for.ts",
    code: "const isHighRisk = [...(operator.highRisk ?? []), ...(plan?.highRisk ?? [])].some((pattern) =>",
    changes: [["[]", '["Stryker was here"]']],
    why: "A pattern that fits no other resource makes none high-risk.",
  },
];

const GATES: readonly ExplainedMutants[] = [
  {
    file: "placeholder.ts",
    code: 'return PLACEHOLDER.exec(text)?.groups?.["name"];',
    changes: [['PLACEHOLDER.exec(text)?.groups?.["name"]', 'PLACEHOLDER.exec(text)?.groups["name"]']],
    why: "The pattern has a named group, so that each match has groups.",
  },
  {
    file: "placeholder.ts",
    code: '"u",',
    changes: [['"u"', '""']],
    why: "The pattern means the same by code units.",
  },
];

const LEDGER: readonly ExplainedMutants[] = [
  {
    file: "evolve-claims.ts",
    code: "default:",
    changes: [['default: return assertNever(event, "claim fact");', "default:"]],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "evolve-claims.ts",
    code: 'return assertNever(event, "claim fact");',
    changes: [['"claim fact"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "evolve-step.ts",
    code: "default:",
    changes: [
      ['default: return assertNever(event, "step fact");', "default:"],
      ['default: return assertNever(event, "outcome");', "default:"],
    ],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "evolve-step.ts",
    code: 'return assertNever(event, "step fact");',
    changes: [['"step fact"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "evolve-step.ts",
    code: 'return assertNever(event, "outcome");',
    changes: [['"outcome"', '""']],
    why: "The compiler holds the switch to be complete.",
  },
  {
    file: "evolve-step.ts",
    code: 'if (event.type === "step.completed") return end;',
    changes: [
      ['event.type === "step.completed"', "false"],
      ['"step.completed"', '""'],
    ],
    why: "A completion names neither a time nor a question, without which the next lines return the same.",
  },
  {
    file: "evolve-step.ts",
    code: "assertInvariant(escalated !== undefined, `blocked without a question: ${event.eventId}`);",
    changes: [
      ["escalated !== undefined", "true"],
      ["`blocked without a question: ${event.eventId}`", "``"],
    ],
    why: "The compiler needs it: without a time and without a question the attempt was returned before.",
  },
  {
    file: "evolve.ts",
    code: 'state.kind === "open" && event.type !== "usage.recorded",',
    changes: [
      ['event.type !== "usage.recorded"', "true"],
      ['"usage.recorded"', '""'],
    ],
    why: "The usage of what is open is booked before.",
  },
  {
    file: "evolve.ts",
    code: "assertInvariant(before !== undefined, `no step ${stepId} in ${state.coordinationId}`);",
    changes: [["before !== undefined", "true"]],
    why: "In `changeStep`: `updateStep` says the same of the same step at once.",
  },
  {
    file: "evolve.ts",
    code: "const wait = state.plan?.waits.get(stepId);",
    changes: [["state.plan?.waits", "state.plan.waits"]],
    why: "Without a plan the fact was done with before.",
  },
  {
    file: "evolve.ts",
    code: ': event.type === "step.dispatched"',
    changes: [['event.type === "step.dispatched"', "true"]],
    why: "Only a dispatch names the session that it is for.",
  },
  {
    file: "evolve.ts",
    code: 'if (moved.kind !== "open" || !moved.plan) return moved;',
    changes: [['moved.kind !== "open"', "false"]],
    why: "No step of what has ended goes from one phase to another.",
  },
  {
    file: "evolve-usage.ts",
    code: "const [spentBefore, spent] = [before.steps.get(stepId)?.spent, after.steps.get(stepId)?.spent];",
    changes: [
      ["before.steps.get(stepId)?.spent", "before.steps.get(stepId).spent"],
      ["after.steps.get(stepId)?.spent", "after.steps.get(stepId).spent"],
    ],
    why: "A fact about the step was evolved, which demands that there is one.",
  },
  {
    file: "evolve-usage.ts",
    code: "if (spentBefore === spent) return after;",
    changes: [["spentBefore === spent", "false"]],
    why: "The sum less and plus the same is the sum.",
  },
  {
    file: "evolve-usage.ts",
    code: "const endStatus = state.steps.get(spec.stepId)?.phase.status;",
    changes: [["state.steps.get(spec.stepId)?.phase", "state.steps.get(spec.stepId).phase"]],
    why: "A fact about the step was evolved, which demands that there is one.",
  },
  {
    file: "evolve-worktrees.ts",
    code: "if (!state.steps.get(stepId)?.spec.isolate) return state;",
    changes: [["state.steps.get(stepId)?.spec", "state.steps.get(stepId).spec"]],
    why: "The dispatch of the step was evolved, which demands that there is one.",
  },
  {
    file: "open-questions.ts",
    code: "return askedBy === command.askedBy && question?.sha256 === command.question.sha256;",
    changes: [["question?.sha256", "question.sha256"]],
    why: "Whatever an agent asks has a text.",
  },
  {
    file: "open-questions.ts",
    code: ".flatMap((escalationId) => escalations.get(escalationId) ?? []);",
    changes: [["[]", '["Stryker was here"]']],
    why: "Whatever is open is there.",
  },
  {
    file: "plan-progress.ts",
    code: "if (!state.plan || !step?.spec.planned || !wait) return state;",
    changes: [
      ["!state.plan || !step?.spec.planned", "false"],
      ["!state.plan || !step?.spec.planned", "!state.plan && !step?.spec.planned"],
    ],
    why: "Only a plan's step has a wait, and only in a plan.",
  },
  {
    file: "plan-progress.ts",
    code: "if (!wait || !waiting?.spec.planned) return plan;",
    changes: [["waiting?.spec", "waiting.spec"]],
    why: "Only a step that was admitted has a wait.",
  },
  {
    file: "plan-progress.ts",
    code: 'before.status === "waiting"',
    changes: [['before.status === "waiting"', "true"]],
    why: "A step that began is in none of what is taken off: it changes nothing.",
  },
  {
    file: "state.ts",
    code: "return state.openSteps.toArray().flatMap((stepId) => state.steps.get(stepId) ?? []);",
    changes: [["[]", '["Stryker was here"]']],
    why: "Each open step is among the steps.",
  },
  {
    file: "state.ts",
    code: '(phase.status === "dispatched" ? phase.targetSession : undefined)',
    changes: [['phase.status === "dispatched"', "true"]],
    why: "No other phase has a session that we chose.",
  },
  {
    file: "withheld-words.ts",
    code: "const isMismatch = spec.gate?.holdMismatch === true && differences.length > 0;",
    changes: [["spec.gate?.holdMismatch", "spec.gate.holdMismatch"]],
    why: "Only steps with a gate come here.",
  },
  {
    file: "withheld-words.ts",
    code: 'const step = cause === "agent" && stepId !== undefined ? steps.get(stepId) : undefined;',
    changes: [["stepId !== undefined", "true"]],
    why: "No step has no id.",
  },
];

function placeIn(area: string, explained: readonly ExplainedMutants[]): ExplainedMutants[] {
  const folder = AREAS[area]!.folder;
  return explained.map(({ file, code, changes, why }) => ({ file: `${folder}/${file}`, code, changes, why }));
}

/** The explained mutants of all areas. */
export const EXPLAINED: readonly ExplainedMutants[] = [
  ...placeIn("lanes", LANES),
  ...placeIn("arbitration", ARBITRATION),
  ...placeIn("gates", GATES),
  ...placeIn("ledger", LEDGER),
  ...placeIn("dispatch", [...DISPATCH, ...DECIDING, ...RECORDING]),
  ...placeIn("workflow", [...WORKFLOW, ...WORKFLOW_NODES, ...WORKFLOW_STATE]),
];
