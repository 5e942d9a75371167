/** Mutants that change nothing which anybody could notice, each with the reason. */
import { AREAS } from "./areas.ts";
import type { Explained } from "./tally-mutants.ts";

const LANES: readonly Explained[] = [
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
    code: "keepBest(group, { request, rank }, Math.min(count, spend.left(request)));",
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

const ARBITRATION: readonly Explained[] = [
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

const GATES: readonly Explained[] = [
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

const LEDGER: readonly Explained[] = [
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

const DISPATCH: readonly Explained[] = [
  {
    file: "late-outcome.ts",
    code: "const lateOutcomes = step.late ?? [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no outcome, and one more is below the bound.",
  },
];

function placeIn(area: string, explained: readonly Explained[]): Explained[] {
  const folder = AREAS[area]!.folder;
  return explained.map(({ file, code, changes, why }) => ({ file: `${folder}/${file}`, code, changes, why }));
}

/** The explained mutants of all areas. */
export const EXPLAINED: readonly Explained[] = [
  ...placeIn("lanes", LANES),
  ...placeIn("arbitration", ARBITRATION),
  ...placeIn("gates", GATES),
  ...placeIn("ledger", LEDGER),
  ...placeIn("dispatch", DISPATCH),
];
