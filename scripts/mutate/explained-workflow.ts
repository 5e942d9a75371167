/** Mutants of `workflow` that change nothing which anybody could notice, each with the reason. */
import type { Explained } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const WORKFLOW: readonly Explained[] = [
  {
    file: "state/edges.ts",
    code: "if (!graph.hasLoops || next.length === 0) return next;",
    changes: [["next.length === 0", "false"]],
    why: "Where nothing is next, nothing is left out of it either: it saves the search.",
  },
  {
    file: "state/edges.ts",
    code: "return ruleOf(run, forward, -1);",
    changes: [["-1", "+1"]],
    why: "No node that was started ends as early as the first event after the run's start.",
  },
  {
    file: "state/edges.ts",
    code: "const isNews = (edge: GraphEdge): boolean => endOf(run, edge) > nodeRun.startedSequence;",
    changes: [["endOf(run, edge) > nodeRun.startedSequence", "endOf(run, edge) >= nodeRun.startedSequence"]],
    why: "Only its own skip is both the start and the end of a node, and no edge from a node to itself fires after a skip.",
  },
  {
    file: "state/edges.ts",
    code: "return run.nodes.get(sourceNodeId)?.endedSequence ?? -1;",
    changes: [["-1", "+1"]],
    why: "No node is started before the first event after the run's start, so neither is later than a start.",
  },
  {
    file: "state/edges.ts",
    code: "group.map((edge) => ({ signal: signalOf(run, edge), isNews: endOf(run, edge) > since })),",
    changes: [["endOf(run, edge) > since", "endOf(run, edge) >= since"]],
    why: "No edge from another node ends with the event that started this one, and a source that has not ended has no signal.",
  },
  {
    file: "state/edges.ts",
    code: 'return hasAll(arrived) ? "start" : undefined;',
    changes: [['"start"', '""']],
    why: "Of a rule that needs all, only a skip and what is open are looked at; all else is a start.",
  },
  {
    file: "state/edges.ts",
    code: 'all_complete: (arrived) => (hasAll(arrived) ? "start" : undefined),',
    changes: [['"start"', '""']],
    why: "Of a rule that needs all, only a skip and what is open are looked at; all else is a start.",
  },
  {
    file: "state/edges.ts",
    code: 'return arrived.some(({ signal }) => signal === "success") ? "start" : "skip";',
    changes: [['"start"', '""']],
    why: "Of a rule that needs all, only a skip and what is open are looked at; all else is a start.",
  },
  {
    file: "state/edges.ts",
    code: "default:",
    changes: [["default: return undefined;", "default:"]],
    why: "The end of the function returns undefined as well.",
  },
  {
    file: "state/edges.ts",
    code: "for (const { closesLoop, targetNodeId } of graph.nodes.get(id)?.outgoing ?? []) {",
    changes: [
      ["[]", '["Stryker was here"]'],
      ["graph.nodes.get(id)?.outgoing", "graph.nodes.get(id).outgoing"],
    ],
    why: "Whatever is next or at work is a node of the graph.",
  },
  {
    file: "state/values.ts",
    code: 'const { type = "expression", left = "", right } = condition;',
    changes: [['""', '"Stryker was here!"']],
    why: "A condition that names nothing on its left reads nothing, whatever stands for the name.",
  },
  {
    file: "state/values.ts",
    code: 'return isExpressionHolding(condition.expression ?? "", outputs);',
    changes: [['""', '"Stryker was here!"']],
    why: "Neither text is an expression.",
  },
  {
    file: "state/values.ts",
    code: "const [, not, path, operator, literal] = COMPARISON.exec(expression) ?? [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "The whole match is not looked at.",
  },
  {
    file: "state/values.ts",
    code: "if (operator === undefined || literal === undefined) return Boolean(value);",
    changes: [
      ["operator === undefined || literal === undefined", "operator === undefined && literal === undefined"],
      ["operator === undefined", "false"],
      ["literal === undefined", "false"],
    ],
    why: "The pattern finds both or neither; the compiler wants both to be looked at.",
  },
];
