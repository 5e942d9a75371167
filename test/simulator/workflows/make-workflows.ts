/** Owns: the workflows of a seed: a graph of any shape, a run within a run, a supervisor with its workers, and its workers. */
import type { WorkflowDefinition } from "../../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { deriveSeed, diceOf, type Dice } from "../../crash/plan-dice.ts";
import { createEdge, createNode, createWorkflow } from "../../support/workflow-definitions.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Those that callers create runs of. */
export const WORKFLOW_IDS = ["graph", "nested", "supervised", "guarded"] as const;
/** Those that only other runs begin. */
export const WORKERS = ["worker-a", "worker-b"] as const;
/** A workflow that no supervisor has as a worker. */
export const FOREIGN_WORKER = "graph";

/** No node is tried again more often. */
export const RETRIES_MAX = 2;

const RULES = ["all_success", "any_success", "all_complete", "none_failed", "any_failed"] as const;

export function makeWorkflows(seed: number): readonly WorkflowDefinition[] {
  const dice = diceOf(deriveSeed(seed, "workflows"));
  return [
    makeGraph(dice, "graph"),
    makeNested(dice),
    makeSupervised(dice),
    makeGuarded(dice),
    ...WORKERS.map((id) => makeWorker(dice, id)),
  ];
}

type Body = readonly [typeId: string, config: Fields];

function makeBody(dice: Dice): Body {
  return dice.oneOf<readonly [Body, ...Body[]]>([
    ["core.noop", {}],
    ["core.delay", { delayMs: dice.oneOf([5, 2_000, 20_000]) }],
    ["core.fail", {}],
    ["core.approvalGate", dice.chance(0.5) ? { timeoutMs: dice.oneOf([5_000, 60_000]) } : {}],
    ["core.clarificationGate", { questions: [{ id: "q1", question: "?" }] }],
    ["core.subWorkflow", makeChildConfig(dice)],
    ["openclaw.memory.write", { content: "a note" }],
    ["core.ai.callPrompt", { prompt: "?" }],
    ["core.ai.callPrompt", { mcp: { tool: "echo", url: "http://tool" } }],
  ]);
}

function makeChildConfig(dice: Dice): Fields {
  return {
    workflowId: dice.oneOf(WORKERS),
    outputMapping: { got: "result" },
    ...(dice.chance(0.5) && { onChildFailure: "absorb" }),
    ...(dice.chance(0.3) && { outputAttestation: { checksum: true, requireApproval: dice.chance(0.5) } }),
  };
}

function makeGraph(dice: Dice, id: string): WorkflowDefinition {
  const count = dice.int(1, 6);
  const ids = Array.from({ length: count }, (_, index) => `n${index}`);
  const edges = new Map<string, Fields>();
  for (let index = 0; index < dice.int(0, count * 2); index += 1) {
    const [one, other] = [dice.int(0, count - 1), dice.int(0, count - 1)];
    const isBack = dice.chance(0.1);
    const [from, to] = one < other ? [one, other] : [other, one];
    if (from === to) continue;
    const arrow = isBack ? `n${to}>n${from}` : `n${from}>n${to}`;
    edges.set(arrow, createEdge(arrow, { triggerRule: dice.oneOf(RULES) }));
  }
  return createWorkflow(id, {
    nodes: ids.map((nodeId) => createNode(nodeId, ...makeBody(dice))),
    edges: [...edges.values()],
    variables: { got: undefined },
    settings: { maxRetries: dice.int(0, RETRIES_MAX), maxLoopbackIterations: dice.int(1, 3) },
  });
}

function makeNested(dice: Dice): WorkflowDefinition {
  return createWorkflow("nested", {
    nodes: [
      createNode("sub", "core.subWorkflow", { ...makeChildConfig(dice), workflowId: "supervised" }),
      createNode("beside", ...makeBody(dice)),
      createNode("join"),
    ],
    edges: [createEdge("sub>join", { triggerRule: dice.oneOf(RULES) }), createEdge("beside>join")],
    variables: { got: undefined },
  });
}

function makeSupervised(dice: Dice): WorkflowDefinition {
  return createWorkflow("supervised", {
    nodes: [
      createNode("supervisor", "core.orchestrator.supervisor", { prompt: "Lead.", workers: [...WORKERS] }),
      createNode("dispatch", "core.dispatch", {
        outputMapping: { got: "result" },
        ...(dice.chance(0.4) && { verifier: makeVerifier(dice) }),
        ...(dice.chance(0.3) && { outputAttestation: { checksum: true } }),
      }),
    ],
    edges: [createEdge("supervisor>dispatch"), createEdge("dispatch>supervisor")],
    variables: { got: undefined },
    settings: { maxRetries: dice.int(0, 1) },
  });
}

function makeVerifier(dice: Dice): Fields {
  return {
    agentId: "critic",
    checks: { word: { kind: "pattern", pattern: "did" } },
    revisionsMax: dice.int(0, 2),
    ...(dice.chance(0.5) && { onUnresolved: "fail" }),
    ...(dice.chance(0.5) && { approvalTimeoutMs: 60_000 }),
  };
}

/** A question before anything that has an effect, and something behind it. */
function makeGuarded(dice: Dice): WorkflowDefinition {
  return createWorkflow("guarded", {
    nodes: [
      createNode("gate", "core.approvalGate", dice.chance(0.4) ? { timeoutMs: 30_000 } : {}),
      createNode("write", "openclaw.memory.write", { content: "it was let" }),
      createNode("behind", ...makeBody(dice)),
    ],
    edges: [createEdge("gate>write"), createEdge("write>behind")],
    variables: { got: undefined },
  });
}

function makeWorker(dice: Dice, id: string): WorkflowDefinition {
  const bodies = dice.oneOf<readonly [readonly Body[], ...(readonly Body[])[]]>([
    [["core.noop", {}]],
    [["core.delay", { delayMs: dice.int(1, 8_000) }]],
    [["core.approvalGate", {}]],
    [["core.ai.callPrompt", { prompt: "?" }]],
    [["core.fail", {}]],
    [["openclaw.memory.write", { content: "of a worker" }]],
  ]);
  return createWorkflow(id, {
    nodes: bodies.map((body, index) => createNode(`w${index}`, ...body)),
    variables: { result: `${id} did it` },
  });
}
