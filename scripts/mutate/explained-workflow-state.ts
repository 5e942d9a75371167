/** Mutants of the folder `state` of `workflow` that change nothing which anybody could notice, each with the reason. */
import type { ExplainedMutants } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const WORKFLOW_STATE: readonly ExplainedMutants[] = [
  {
    file: "state/edges.ts",
    code: "if (!next.some(({ node }) => node.isLooped)) return next;",
    changes: [["!next.some(({ node }) => node.isLooped)", "false"]],
    why: "Where nothing that is next can be looped, nothing is left out of it: it saves the search.",
  },
  {
    file: "state/edges.ts",
    code: "if (!source || !hasEnded(source) || source.endedSequence <= since) return false;",
    changes: [["source.endedSequence <= since", "source.endedSequence < since"]],
    why: "Only its own skip is both the start and the end of a node, and no edge from a node to itself fires after a skip.",
  },
  {
    file: "state/edges.ts",
    code: "return !isOneEnough || closesLoop || findRoundBeginning(moment, sourceNodeId, source) > since;",
    changes: [
      [
        "findRoundBeginning(moment, sourceNodeId, source) > since",
        "findRoundBeginning(moment, sourceNodeId, source) >= since",
      ],
    ],
    why: "A node that begins a round is in the past of its own sources only where a loop came round, which begins a later one.",
  },
  {
    file: "state/edges.ts",
    code: "return !closesLoop && target !== undefined && findBeginning(target) < sequence;",
    changes: [["findBeginning(target) < sequence", "findBeginning(target) <= sequence"]],
    why: "Only its own skip is both the start and the end of a node, and no edge forward leads back to a source of its own.",
  },
  {
    file: "state/edges.ts",
    code: "return run.nodes.get(sourceNodeId)?.endedSequence ?? -1;",
    changes: [["-1", "+1"]],
    why: "No node is started before the first event after the run's start, so neither is later than a start.",
  },
  {
    file: "state/edges.ts",
    code: 'return hasEverySignal(arrived) ? "start" : undefined;',
    changes: [['"start"', '""']],
    why: "Of a rule that needs all, only a skip and what is open are looked at; all else is a start.",
  },
  {
    file: "state/edges.ts",
    code: 'all_complete: (arrived) => (hasEverySignal(arrived) ? "start" : undefined),',
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
    code: "for (const { closesLoop, sourceNodeId, targetNodeId } of graph.nodes.get(id)?.[direction] ?? []) {",
    changes: [
      ["[]", '["Stryker was here"]'],
      ["graph.nodes.get(id)?.[direction]", "graph.nodes.get(id)[direction]"],
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
  {
    file: "state/evolve-workflow.ts",
    code: 'const { eventId, sequence, nodeId = "" } = event;',
    changes: [['""', '"Stryker was here!"']],
    why: "Each decision is recorded at the node of its supervisor. The compiler needs it.",
  },
  {
    file: "state/evolve-handoff.ts",
    code: 'const { nodeId = "" } = event;',
    changes: [['""', '"Stryker was here!"']],
    why: "No node is called either, and events of a handoff name theirs. The compiler needs it.",
  },
  {
    file: "state/evolve-handoff.ts",
    code: 'const isSentBack = event.type === "core.workflowChain.event" && isRevision(before.handoff, event);',
    changes: [['event.type === "core.workflowChain.event"', "true"]],
    why: "Only events of the chain have a phase, and without one nothing is sent back. The compiler needs it.",
  },
  {
    file: "state/evolve-handoff.ts",
    code: "unmet: before.verdict?.criteria ?? [],",
    changes: [["before.verdict?.criteria", "before.verdict.criteria"]],
    why: "Only a verdict sends a worker back. The compiler needs it.",
  },
  {
    file: "state/evolve-handoff.ts",
    code: 'const isHarvested = event.type === "core.workflowChain.event" && event.payload.phase === "output.harvested";',
    changes: [['event.type === "core.workflowChain.event"', "true"]],
    why: "Only events of the chain have a phase. The compiler needs it.",
  },
  {
    file: "state/run-view.ts",
    code: 'case "open":',
    changes: [['"open"', '""']],
    why: "Nothing is spread into the snapshot either way.",
  },
  {
    file: "state/run-view.ts",
    code: "if (node?.node.agent && (!last || sequence > last.sequence)) last = { node, sequence };",
    changes: [["sequence > last.sequence", "sequence >= last.sequence"]],
    why: "Each event of a log has a sequence of its own, and starts one node.",
  },
  {
    file: "state/graph.ts",
    code: "const drawn = new Map(nodes.map((node) => [node.id, { node, incoming: incoming.get(node.id) ?? [] }]));",
    changes: [["[]", '["Stryker was here"]']],
    why: "It leads from no node, and so from no supervisor.",
  },
  {
    file: "state/graph.ts",
    code: "if (!supervisor) return [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "It leads from no node to no node, and so belongs to none.",
  },
  {
    file: "state/graph.ts",
    code: "if (!dispatch) return [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "It leads from no node to no node, and so belongs to none.",
  },
  {
    file: "state/graph.ts",
    code: "for (const { sourceNodeId } of nodes.get(id)?.incoming ?? [])",
    changes: [
      ["[]", '["Stryker was here"]'],
      ["nodes.get(id)?.incoming", "nodes.get(id).incoming"],
    ],
    why: "Only nodes of the graph are walked.",
  },
  {
    file: "state/graph.ts",
    code: "? []",
    changes: [["[]", '["Stryker was here"]']],
    why: "It leads from no node to no node, and so belongs to none.",
  },
  {
    file: "state/graph.ts",
    code: "outgoing.set(edge.sourceNodeId, [...(outgoing.get(edge.sourceNodeId) ?? []), edge]);",
    changes: [["[]", '["Stryker was here"]']],
    why: "It leads to no node, from which nothing leads back.",
  },
  {
    file: "state/graph.ts",
    code: "if (state.has(root)) return;",
    changes: [["state.has(root)", "false"]],
    why: "From a node that was walked before, every edge leads to one that is done or closes a loop already: it saves work.",
  },
  {
    file: "state/graph.ts",
    code: 'state.set(at.id, "done");',
    changes: [['"done"', '""']],
    why: "Only whether a node is open, or was never seen, is looked at.",
  },
  {
    file: "state/evolve-node.ts",
    code: 'case "memory.written":',
    changes: [['case "memory.written": return evolveNodeActs(run, event);', 'case "memory.written":']],
    why: "An invocation has nothing to do with what is written to memory: the node is at most copied.",
  },
  {
    file: "state/evolve-node.ts",
    code: 'const { eventId, nodeId = "" } = event;',
    changes: [['""', '"Stryker was here!"']],
    why: "An interrupt's event names its node; one that does not is refused under either name, since no node has it.",
  },
  {
    file: "state/evolve-node.ts",
    code: "if (nodeId === undefined || !run.nodes.has(nodeId)) return run;",
    changes: [["nodeId === undefined", "false"]],
    why: "No node has the key undefined: the other half of the condition returns as well, and this one is for the types.",
  },
  {
    file: "state/values.ts",
    code: "} catch {",
    changes: [["{ return undefined; }", "{}"]],
    why: "A function that ends returns the same.",
  },
  {
    file: "state/sensitive-texts.ts",
    code: "...(run.replacedValues?.get(name) ?? []),",
    changes: [["[]", '["Stryker was here"]']],
    why: "It hides a text that nobody writes.",
  },
  {
    file: "state/sensitive-texts.ts",
    code: 'if (typeof value !== "object" || value === null) return [];',
    changes: [["[]", '["Stryker was here"]']],
    why: "It hides a text that nobody writes.",
  },
];
