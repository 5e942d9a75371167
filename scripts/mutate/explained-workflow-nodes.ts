/** Mutants of nodes, of their contract and of replays that change nothing which anybody could notice, each with the reason. */
import type { ExplainedMutants } from "./tally-mutants.ts";

/** Explained mutants, their files from the folder of the area on. */
export const WORKFLOW_NODES: readonly ExplainedMutants[] = [
  {
    file: "replay-workflow.ts",
    code: "while (count > 0 && events[count - 1]?.timestamp === timestamp) count -= 1;",
    changes: [["events[count - 1]?.timestamp", "events[count - 1].timestamp"]],
    why: "The types do not say that there is an event in each place below the count.",
  },
  {
    file: "replay-workflow.ts",
    code: "events: [],",
    changes: [["[]", '["Stryker was here"]']],
    why: "A replay compares instead of appending, and nobody reads what it would have appended.",
  },
  {
    file: "replay-workflow.ts",
    code: "memory: [],",
    changes: [["[]", '["Stryker was here"]']],
    why: "A replay keeps nothing in memory, and nobody reads what it would have kept.",
  },
  {
    file: "replay-workflow.ts",
    code: 'const NOTHING: DerivedEvents = { kind: "nothing" };',
    changes: [
      ['{ kind: "nothing" }', "{}"],
      ['"nothing"', '""'],
    ],
    why: "It is told apart by being none of the others.",
  },
  {
    file: "replay-workflow.ts",
    code: 'const NOWHERE = "replay:nowhere";',
    changes: [['"replay:nowhere"', '""']],
    why: "Any text is an address: it is never called, and stands in no event.",
  },
  {
    file: "replay-workflow.ts",
    code: 'const [draft] = derived.kind === "other" ? derived.drafts : [];',
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no draft: it has no type that an event could have.",
  },
  {
    file: "replay-workflow.ts",
    code: 'draft.type !== "core.workflowChain.event" ||',
    changes: [['draft.type !== "core.workflowChain.event"', "false"]],
    why: "No other event has a phase: two that have none have the same.",
  },
  {
    file: "node-contract/conformance-parts.ts",
    code: "cachedParts.set(node, cached);",
    changes: [["cachedParts.set(node, cached);", ";"]],
    why: "It saves time only: the part of a node that does not change is found again.",
  },
  {
    file: "nodes/tool-nodes.ts",
    code: '(isRecord(view.node.node.config["mcp"]) ? mcpTool : callPrompt).settle?.(view, effect, outcome) ?? [],',
    changes: [
      ["[]", '["Stryker was here"]'],
      [
        '(isRecord(view.node.node.config["mcp"]) ? mcpTool : callPrompt).settle?.(view, effect, outcome)',
        '(isRecord(view.node.node.config["mcp"]) ? mcpTool : callPrompt).settle(view, effect, outcome)',
      ],
    ],
    why: "Both types settle; the type of a node does not say so.",
  },
  {
    file: "nodes/tool-nodes.ts",
    code: 'const isOk = outcome.kind === "tool_answered" && outcome.ok;',
    changes: [['outcome.kind === "tool_answered"', "true"]],
    why: "A call that failed has no member `ok`.",
  },
  {
    file: "nodes/supervisor.ts",
    code: 'return decision.kind === "ask-user" ? 1 : (decision.confidence ?? 1);',
    changes: [
      ['decision.kind === "ask-user"', "false"],
      ['"ask-user"', '""'],
    ],
    why: "A decision to ask the user cannot state a confidence: the case is for the types.",
  },
  {
    file: "nodes/supervisor.ts",
    code: "return verifier ? [verifier] : [];",
    changes: [["[]", '["Stryker was here"]']],
    why: "It is no verifier: it has neither a rule for what is unresolved nor a time.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "const isDoubted = confidence !== undefined && bound !== undefined && confidence < bound.threshold;",
    changes: [["confidence !== undefined", "true"]],
    why: "No confidence is as high as none: the comparison with undefined is false.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "return findCalledTool(bound?.tools ?? [], toolName);",
    changes: [
      ["[]", '["Stryker was here"]'],
      ["bound?.tools", "bound.tools"],
    ],
    why: "An invocation without bounds is broken before any call is looked at.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "return (turns.at(-1)?.calls ?? []).filter(",
    changes: [["[]", '["Stryker was here"]']],
    why: "A text has no name of a tool, so the filter drops it.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "const scope = invocation.bound?.memoryScope;",
    changes: [["invocation.bound?.memoryScope", "invocation.bound.memoryScope"]],
    why: "An invocation without bounds is broken before its memory is looked at.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: 'const toAgentId = invocation.handoff?.toAgentId ?? "";',
    changes: [
      ['""', '"Stryker was here!"'],
      ["invocation.handoff?.toAgentId", "invocation.handoff.toAgentId"],
    ],
    why: "The effect is made only where the handoff is on record, which the types do not say.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "inputs: wrapTaskAsInputs(request?.task ?? invocation.bound?.task),",
    changes: [
      ["request?.task", "request.task"],
      ["invocation.bound?.task", "invocation.bound.task"],
    ],
    why: "A handoff on record has its call in the newest turn and comes behind the bounds, which the types do not say.",
  },
  {
    file: "nodes/agent-invocation.ts",
    code: "const observed = invocation.completed?.confidence ?? 0;",
    changes: [["invocation.completed?.confidence", "invocation.completed.confidence"]],
    why: "People are asked only where the invocation has completed.",
  },
  {
    file: "nodes/agent-node.ts",
    code: "return manifest === undefined ? undefined : { agentId: named, manifest };",
    changes: [["manifest === undefined", "false"]],
    why: "A name that the record of agents has of its own has a hash there; the compiler does not know it.",
  },
  {
    file: "nodes/agent-node.ts",
    code: "const hidden = new Set(graph.variables.flatMap(({ name, sensitive }) => (sensitive ? [name] : [])));",
    changes: [["[]", '["Stryker was here"]']],
    why: "No variable has that name.",
  },
  {
    file: "nodes/child-gate.ts",
    code: "return verifier?.revisionsMax !== undefined && revision >= verifier.revisionsMax;",
    changes: [
      ["verifier?.revisionsMax !== undefined", "true"],
      ["verifier?.revisionsMax", "verifier.revisionsMax"],
    ],
    why: "Only a gate with a verifier has a verdict to revise, and no number of revisions is as many as none.",
  },
  {
    file: "nodes/child-gate.ts",
    code: 'return outcome.kind === "failed" ? { kind: "child_judged", isSelf: false, judgements: [] } : undefined;',
    changes: [
      ['"child_judged"', '""'],
      ["[]", '["Stryker was here"]'],
    ],
    why: "Nobody reads the kind of a judgement once it is one, and a text among the judgements is neither a verdict nor none.",
  },
  {
    file: "nodes/gate-nodes.ts",
    code: 'return voices > 0 && typeof requiredApprovals === "number" && requiredApprovals > voices',
    changes: [['typeof requiredApprovals === "number"', "true"]],
    why: "Anything but a number, null or nothing was refused before, and neither of those is more than any number of voices.",
  },
];
