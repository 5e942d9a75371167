/** Owns: what a host without the conformance play does with workflows and runs that need it: it refuses, and says why. */
import { describe, expect, test } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { checkReplay } from "../../src/agents/coordination/runtime/workflow-host/check-replay.ts";
import { needsPlay } from "../../src/agents/coordination/workflow/node-contract/conformance-parts.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import {
  CONFORMANCE_AGENT,
  CONFORMANCE_AGENTS,
} from "../../src/plugins/openwop/conformance/conformance-agents.ts";
import { NODE_PLAY } from "../../src/plugins/openwop/conformance/node-play.ts";
import { PLAY_SETTINGS } from "../support/workflow-arbitraries.ts";
import {
  createEdge,
  createNode,
  createSupervised,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, valueOf } from "../support/workflow-scene.ts";

const SUPERVISOR = "core.orchestrator.supervisor";
const TERMINATE = { kind: "terminate", reason: "done" };
const { play: _, ...UNPLAYED_SETTINGS } = PLAY_SETTINGS;

describe("a host without the conformance play", () => {
  test.each([
    ["typeId core.conformance.mock-agent", "core.conformance.mock-agent", {}],
    ["typeId core.conformance.mcp-invoke", "core.conformance.mcp-invoke", { mcp: { tool: "echo" } }],
    ["typeId core.conformance.side-effect", "core.conformance.side-effect", {}],
    ["typeId conformance.requiresMissing", "conformance.requiresMissing", {}],
    ["config.provider mock", "core.ai.structuredOutput", { provider: "mock" }],
    ["config.mockDispatchPlan", SUPERVISOR, { mockDispatchPlan: [TERMINATE] }],
    ["config.mockDecisions", SUPERVISOR, { mockDecisions: [TERMINATE] }],
    ["config.mockPendingDecision", SUPERVISOR, { prompt: "Plan.", mockPendingDecision: TERMINATE }],
    [
      "config.verifier.mockVerdicts",
      "core.dispatch",
      { verifier: { agentId: "critic", mockVerdicts: ["pass"] } },
    ],
  ])("refuses a node with %s, whatever its workflow is called", async (part, typeId, config) => {
    const nodes = [createNode("n", typeId, config)];
    const ids = ["w", "conformance-w"];
    const scene = createWorkflowScene({
      definitions: ids.map((id) => createWorkflow(id, { nodes })),
      isTested: false,
    });
    expect(scene.host.workflowIds()).toEqual([]);
    for (const workflowId of ids)
      expect(await scene.host.create(ALICE, { workflowId, inputs: {}, transport: "rest" })).toMatchObject({
        code: "capability_required",
        message: `node n has ${part}, which only a host that is tested plays: serve it with --test-seams, or take it out`,
      });
    expect(codeOf(await scene.host.register(ALICE, createWorkflow("v", { nodes })))).toBe(
      "capability_required",
    );
  });

  test("refuses a supervisor that nobody decides for, and says what to give it", async () => {
    const definitions = [createWorkflow("w", { nodes: [createNode("s", SUPERVISOR)] })];
    const scene = createWorkflowScene({ definitions, isTested: false });
    expect(await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" })).toMatchObject({
      code: "validation_error",
      message:
        "node s is a supervisor without a model to decide: give it config.prompt, config.systemPrompt or config.model",
    });
  });

  test("has no seams, and believes no voter", async () => {
    const gate = createNode("gate", "core.approvalGate", { requiredApprovals: 2 });
    const definitions = [createWorkflow("conformance-quorum", { nodes: [gate] })];
    const scene = createWorkflowScene({ definitions, isTested: false });
    expect(scene.host.seams).toBeUndefined();
    const runId = await scene.run("conformance-quorum");
    expect(codeOf(await scene.answer(runId, "gate", { action: "accept", voter: "x" }))).toBe("forbidden");
  });
});

/** A run that a tested host left, and a host without the play on the same ledger. */
async function leavePlayedRun() {
  const holdNode = createNode("held", "core.conformance.hold");
  const definitions = [
    createWorkflow("w", {
      nodes: [createNode("gate", "core.approvalGate"), holdNode],
      edges: [createEdge("gate>held")],
    }),
  ];
  const tested = createWorkflowScene({ definitions });
  const runId = await tested.run("w");
  tested.die();
  const { ledger, clock } = tested;
  const scene = createWorkflowScene({ definitions, ledger, clock, pid: 2, isTested: false });
  await scene.host.start();
  await scene.settle();
  return { scene, runId };
}

describe("a run that was played, on a host without the play", () => {
  test("fails at the first node that needs it, and says why", async () => {
    const { scene, runId } = await leavePlayedRun();
    await scene.answer(runId, "gate", { action: "accept" });
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: {
        code: "capability_required",
        message: expect.stringContaining("node held has typeId core.conformance.hold") as string,
      },
    });
  });

  test("is not forked", async () => {
    const { scene, runId: sourceRunId } = await leavePlayedRun();
    expect(await scene.host.fork(ALICE, { sourceRunId, mode: "replay" })).toMatchObject({
      code: "capability_required",
      message: expect.stringContaining("--test-seams") as string,
    });
  });
});

describe("a replay", () => {
  const load = { count: 0 };
  const loadPlay = () => {
    load.count += 1;
    return Promise.resolve(NODE_PLAY);
  };

  async function checkRun(workflowId: string) {
    load.count = 0;
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("scripted", [{ kind: "next-worker", nextWorkerIds: ["worker"] }]),
        createWorker("worker"),
      ],
    });
    const runId = (await scene.run(workflowId)) as CoordinationId;
    const replayed = await checkReplay(scene.ledger.open(), runId, {
      from: 0,
      settings: UNPLAYED_SETTINGS,
      loadPlay,
    });
    return { replayed, loads: load.count };
  }

  test("loads the play for a run that was played, and finds it equal", async () => {
    const { replayed, loads } = await checkRun("scripted");
    expect([replayed.difference, loads]).toEqual([undefined, 1]);
    expect(replayed.to).toBeGreaterThan(5);
  });

  test("loads nothing for every other run", async () => {
    const { replayed, loads } = await checkRun("worker");
    expect([replayed.difference, loads]).toEqual([undefined, 0]);
  });

  test("knows the one that needs it by its definition", () => {
    const isPlayNeeded = (config: object) => {
      const definition = createWorkflow("w", { nodes: [createNode("s", SUPERVISOR, { ...config })] });
      const compiled = compileWorkflow(definition, "0".repeat(64));
      return compiled.ok && needsPlay(compiled.graph);
    };
    expect([
      isPlayNeeded({ prompt: "Plan." }),
      isPlayNeeded({}),
      isPlayNeeded({ mockDecisions: [] }),
    ]).toEqual([...[false, true, true]]);
  });
});

test("an agent's script is none on such a host: its live model is asked", async () => {
  const requests: string[] = [];
  const scene = createWorkflowScene({
    isTested: false,
    agents: { installed: CONFORMANCE_AGENTS },
    chat: {
      complete: ({ system = "" }) => {
        requests.push(system);
        return Promise.resolve({ kind: "refused", code: "not_configured", message: "no model" });
      },
    },
  });
  const configurable = { ai: { provider: "mock", model: "m", script: [{ say: "scripted" }] } };
  const agent = { agentId: CONFORMANCE_AGENT, source: "run-api", inputs: {}, configurable } as const;
  const running = scene.host.runAgent(ALICE, agent, new AbortController().signal);
  await scene.settle();
  const { snapshot } = valueOf(await running);
  expect([requests.length, snapshot.status]).toEqual([1, "failed"]);
  expect(JSON.stringify(scene.events(snapshot.runId))).not.toContain('"text":"scripted"');
});
