import { describe, expect, test } from "vitest";
import {
  createEdge,
  createNode,
  createWorker,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, type SceneOptions } from "../support/workflow-scene.ts";

async function playNodes(small: SmallWorkflow, options: SceneOptions = {}, inputs = {}) {
  const scene = createWorkflowScene({
    ...options,
    definitions: [createWorkflow("w", small), ...(options.definitions ?? [])],
  });
  const runId = await scene.run("w", { inputs });
  return { scene, runId, snapshot: await scene.snapshot(runId) };
}

function findOutputs(played: Awaited<ReturnType<typeof playNodes>>, id: string) {
  return played.scene.payloads(played.runId, "node.completed").find(({ nodeId }) => nodeId === id)?.outputs;
}

describe("a node that needs nobody", () => {
  test("echoes its ports: static, variable, connection and expression, and none that has no value", async () => {
    const played = await playNodes(
      {
        nodes: [
          createNode(
            "a",
            "core.identity",
            {},
            { inputs: { s: { type: "static", value: [1] }, v: { type: "variable", variableName: "given" } } },
          ),
          createNode(
            "b",
            "core.identity",
            {},
            {
              inputs: {
                c: { type: "connection", nodeId: "a", outputKey: "s" },
                e: { type: "expression", expression: "$.given.deep" },
                unset: { type: "variable", variableName: "unset" },
                proto: { type: "connection", nodeId: "a", outputKey: "constructor" },
              },
            },
          ),
        ],
        edges: [createEdge("a>b")],
        variables: { given: "default", unset: undefined },
      },
      {},
      { given: { deep: "x" } },
    );
    expect(findOutputs(played, "a")).toEqual({ s: [1], v: { deep: "x" } });
    expect(findOutputs(played, "b")).toEqual({ c: [1], e: "x" });
    expect(played.snapshot["variables"]).toEqual({ given: { deep: "x" } });
  });

  test("reads an output by its name also where that has a dot", async () => {
    const played = await playNodes({
      nodes: [
        createNode("a", "core.identity", {}, { inputs: { "user.id": { type: "static", value: 7 } } }),
        createNode(
          "b",
          "core.identity",
          {},
          {
            inputs: { id: { type: "connection", nodeId: "a", outputKey: "user.id" } },
          },
        ),
      ],
      edges: [createEdge("a>b")],
    });
    expect(findOutputs(played, "b")).toEqual({ id: 7 });
  });

  test("waits as long as its input, or any of its older settings, says", async () => {
    for (const config of [{ delayMs: 50 }, { durationMs: 50 }, { ms: 50 }]) {
      const { scene, runId } = await playNodes({ nodes: [createNode("a", "core.delay", config)] });
      await scene.clock.advance(49);
      expect(await scene.status(runId)).toBe("running");
      await scene.clock.advance(1);
      expect(await scene.status(runId)).toBe("completed");
    }
  });

  test("fails as it is told, and is tried again as often as the workflow says", async () => {
    const { scene, runId, snapshot } = await playNodes({
      nodes: [createNode("a", "core.fail", { code: "odd", message: "why" })],
      settings: { maxRetries: 2 },
    });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "odd", message: "why" } });
    expect(scene.types(runId)).toEqual([
      ...["run.started", "node.started", "node.retried", "node.started", "node.retried", "node.started"],
      ...["node.failed", "run.failed"],
    ]);
    expect(scene.payloads(runId, "node.failed")[0]).toMatchObject({ attempts: 3 });
  });

  test("that is disabled is skipped, and so is what only it leads to", async () => {
    const played = await playNodes({
      nodes: [createNode("a", "core.noop", {}, { disabled: true }), createNode("b")],
      edges: [createEdge("a>b")],
    });
    expect(played.snapshot).toMatchObject({
      nodeStates: { a: { status: "skipped" }, b: { status: "skipped" } },
    });
  });

  test("that needs what no host has fails the run by that name", async () => {
    const played = await playNodes({ nodes: [createNode("a", "conformance.requiresMissing")] });
    expect(played.snapshot).toMatchObject({ error: { code: "capability_not_provided" } });
  });
});

describe("what a run hands out", () => {
  const createPort = (value: unknown) => ({ inputs: { out: { type: "static", value } } });

  test.each([
    ["its only end", [createNode("a", "core.identity", {}, createPort(1))], [], { out: 1 }],
    [
      "its primary node",
      [createNode("a", "core.identity", {}, { ...createPort(1), outputRole: "primary" }), createNode("b")],
      [createEdge("a>b")],
      { out: 1 },
    ],
    [
      "all its ends",
      [createNode("a", "core.identity", {}, createPort(1)), createNode("b")],
      [],
      { a: { out: 1 }, b: {} },
    ],
  ])("is that of %s", async (_, nodes, edges, expected) => {
    expect((await playNodes({ nodes, edges })).snapshot["outputs"]).toEqual(expected);
  });

  test("hides variables that are sensitive", async () => {
    const scene = createWorkflowScene({
      definitions: [
        {
          ...createWorker("w"),
          variables: [{ name: "secret", type: "string", sensitive: true, defaultValue: "plain" }],
        },
      ],
    });
    expect((await scene.snapshot(await scene.run("w")))["variables"]).toEqual({ secret: "[masked]" });
  });
});

describe("a node that calls a tool or another agent", () => {
  const mcp = createNode("a", "core.conformance.mcp-invoke", {
    mcp: { tool: "echo", url: "http://tool", arguments: { x: 1 } },
  });
  const a2a = createNode("a", "core.conformance.a2a-invoke", { skill: "plan", url: "http://agent" });

  test("records the call before it is made, and what came back as untrusted, caused by the call", async () => {
    const seen: unknown[] = [];
    const { scene, runId } = await playNodes(
      { nodes: [mcp] },
      {
        tools: {
          callMcp: ({ tool, args, url, traceparent }) => {
            seen.push({ tool, args, url, traceparent });
            return Promise.resolve({ kind: "answered", ok: true, content: [], text: "echo" });
          },
        },
      },
    );
    const [called, returned] = scene.events(runId).filter(({ type }) => type.startsWith("agent.tool"));
    expect(seen).toMatchObject([{ tool: "echo", args: { x: 1 }, url: "http://tool" }]);
    expect(called?.payload).toMatchObject({ toolName: "echo", transport: "mcp", inputs: { x: 1 } });
    expect(returned?.causationId).toBe(called?.eventId);
    expect(returned?.payload).toMatchObject({
      status: "ok",
      outcome: { text: "echo", contentTrust: "untrusted" },
    });
  });

  test("fails with the tool's failure, and tells of it", async () => {
    const failing = {
      callMcp: () => Promise.resolve({ kind: "answered", ok: false, content: [], text: "no" } as const),
    };
    const { scene, runId, snapshot } = await playNodes({ nodes: [mcp] }, { tools: failing });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "tool_failed" } });
    expect(scene.payloads(runId, "agent.toolReturned")[0]).toMatchObject({ status: "error" });
    const unset = await playNodes({
      nodes: [createNode("a", "core.conformance.mcp-invoke", { mcp: { tool: "echo" } })],
    });
    expect(unset.snapshot).toMatchObject({ error: { code: "not_configured" } });
  });

  test("passes the trace of the run on, under a span of its own", async () => {
    const seen: (string | undefined)[] = [];
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [mcp] })],
      tools: {
        callMcp: ({ traceparent }) => {
          seen.push(traceparent);
          return Promise.resolve({ kind: "answered", ok: true, content: [], text: "" });
        },
      },
    });
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await scene.run("w", { traceparent });
    expect(seen[0]).toMatch(new RegExp(`^00-${"a".repeat(32)}-[0-9a-f]{16}-01$`));
    expect(seen[0]).not.toBe(traceparent);
  });

  test.each([
    ["auth-required", false, "waiting-input"],
    ["input-required", false, "waiting-input"],
    ["rejected", false, "failed"],
    ["failed", false, "failed"],
    ["completed", true, "completed"],
  ] as const)("to an agent whose task is %s leaves the run %s", async (state, ok, status) => {
    const { snapshot } = await playNodes(
      { nodes: [a2a] },
      { tools: { sendA2a: () => Promise.resolve({ kind: "answered", ok, state, text: "", data: [] }) } },
    );
    expect(snapshot.status).toBe(status);
    if (state === "rejected") expect(snapshot).toMatchObject({ error: { code: "rejected_by_remote" } });
  });
});

describe("a sub-workflow", () => {
  const child = createWorker("child", { result: "child did it", received: "baked in" });
  const createSub = (config: object) => [
    createNode("sub", "core.subWorkflow", { workflowId: "child", ...config }),
    createNode("after"),
  ];
  const failing = createWorkflow("child", {
    nodes: [createNode("boom", "core.fail")],
    variables: { result: "never" },
  });

  test("gets what is mapped, and hands back what is mapped", async () => {
    const played = await playNodes(
      {
        nodes: createSub({
          inputMapping: { received: "given" },
          outputMapping: { got: "result", none: "missing" },
        }),
        edges: [createEdge("sub>after")],
        variables: { given: "g", none: "kept" },
      },
      { definitions: [child] },
    );
    const { childRunId } = findOutputs(played, "sub") as { childRunId: string };
    expect(findOutputs(played, "sub")).toEqual({ childRunId, childStatus: "completed" });
    expect(await played.scene.snapshot(childRunId)).toMatchObject({
      parentRunId: played.runId,
      parentNodeId: "sub",
      variables: { received: "g", result: "child did it" },
    });
    expect(played.snapshot["variables"]).toEqual({ given: "g", got: "child did it", none: "kept" });
    expect(played.scene.types(played.runId)).not.toContain("core.workflowChain.event");
  });

  test("keeps its default where the parent has nothing to give", async () => {
    const played = await playNodes(
      { nodes: createSub({ inputMapping: { received: "unset" } }), variables: { unset: undefined } },
      { definitions: [child] },
    );
    const { childRunId = "" } = played.scene.payloads(played.runId, "node.dispatched")[0] ?? {};
    expect(await played.scene.snapshot(childRunId)).toMatchObject({ variables: { received: "baked in" } });
  });

  test("that fails is its parent's failure, unless that is absorbed, and hands nothing back", async () => {
    const mapped = { outputMapping: { got: "result" } };
    const fails = await playNodes(
      { nodes: createSub(mapped), edges: [createEdge("sub>after")] },
      { definitions: [failing] },
    );
    expect(fails.snapshot).toMatchObject({
      status: "failed",
      error: { code: "child_failed" },
      variables: {},
    });
    for (const onChildFailure of ["absorb", "continue"]) {
      const played = await playNodes(
        { nodes: createSub({ ...mapped, onChildFailure }) },
        { definitions: [failing] },
      );
      expect(played.snapshot).toMatchObject({ status: "completed", variables: {} });
      expect(findOutputs(played, "sub")).toMatchObject({ childStatus: "failed" });
    }
  });

  test("that is tried again is another run", async () => {
    const played = await playNodes(
      { nodes: createSub({}), settings: { maxRetries: 1 } },
      { definitions: [failing] },
    );
    const children = played.scene
      .payloads(played.runId, "node.dispatched")
      .map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(2);
  });

  test("that is not there fails its parent, and one without a name is refused", async () => {
    const played = await playNodes({ nodes: createSub({}) });
    expect(played.snapshot).toMatchObject({ error: { code: "unknown_child_workflow" } });
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("a", "core.subWorkflow")] })],
    });
    const refused = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
    expect(codeOf(refused)).toBe("validation_error");
  });

  test("within itself ends where nesting does", async () => {
    const played = await playNodes({ nodes: [createNode("sub", "core.subWorkflow", { workflowId: "w" })] });
    expect(played.snapshot).toMatchObject({ status: "failed", error: { code: "child_failed" } });
    expect(played.scene.ledger.runs.size).toBe(17);
  });

  test("that shares a name with another node's turn is another run", async () => {
    const played = await playNodes(
      {
        nodes: [
          createNode("s", "core.orchestrator.supervisor", {
            mockDispatchPlan: [{ kind: "next-worker", nextWorkerIds: ["child", "child"] }],
          }),
          createNode("d", "core.dispatch"),
          createNode("d:1", "core.subWorkflow", { workflowId: "other" }),
        ],
        edges: [createEdge("s>d"), createEdge("d>s")],
      },
      { definitions: [child, createWorker("other")] },
    );
    const children = played.scene
      .payloads(played.runId, "node.dispatched")
      .map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(3);
  });
});
