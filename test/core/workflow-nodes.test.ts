import { describe, expect, test } from "vitest";
import { edge, node, worker, workflow, type Small } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, workflowScene, type SceneOptions } from "../support/workflow-scene.ts";

async function play(small: Small, options: SceneOptions = {}, inputs = {}) {
  const scene = workflowScene({
    ...options,
    definitions: [workflow("w", small), ...(options.definitions ?? [])],
  });
  const runId = await scene.run("w", { inputs });
  return { scene, runId, snapshot: await scene.snapshot(runId) };
}

function outputs(it: Awaited<ReturnType<typeof play>>, id: string) {
  return it.scene.payloads(it.runId, "node.completed").find(({ nodeId }) => nodeId === id)?.outputs;
}

describe("a node that needs nobody", () => {
  test("echoes its ports: static, variable, connection and expression, and none that has no value", async () => {
    const it = await play(
      {
        nodes: [
          node(
            "a",
            "core.identity",
            {},
            { inputs: { s: { type: "static", value: [1] }, v: { type: "variable", variableName: "given" } } },
          ),
          node(
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
        edges: [edge("a>b")],
        variables: { given: "default", unset: undefined },
      },
      {},
      { given: { deep: "x" } },
    );
    expect(outputs(it, "a")).toEqual({ s: [1], v: { deep: "x" } });
    expect(outputs(it, "b")).toEqual({ c: [1], e: "x" });
    expect(it.snapshot["variables"]).toEqual({ given: { deep: "x" } });
  });

  test("waits as long as its input, or any of its older settings, says", async () => {
    for (const config of [{ delayMs: 50 }, { durationMs: 50 }, { ms: 50 }]) {
      const { scene, runId } = await play({ nodes: [node("a", "core.delay", config)] });
      await scene.clock.advance(49);
      expect(await scene.status(runId)).toBe("running");
      await scene.clock.advance(1);
      expect(await scene.status(runId)).toBe("completed");
    }
  });

  test("fails as it is told, and is tried again as often as the workflow says", async () => {
    const { scene, runId, snapshot } = await play({
      nodes: [node("a", "core.fail", { code: "odd", message: "why" })],
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
    const it = await play({
      nodes: [node("a", "core.noop", {}, { disabled: true }), node("b")],
      edges: [edge("a>b")],
    });
    expect(it.snapshot).toMatchObject({ nodeStates: { a: { status: "skipped" }, b: { status: "skipped" } } });
  });

  test("that needs what no host has fails the run by that name", async () => {
    const it = await play({ nodes: [node("a", "conformance.requiresMissing")] });
    expect(it.snapshot).toMatchObject({ error: { code: "capability_not_provided" } });
  });
});

describe("what a run hands out", () => {
  const port = (value: unknown) => ({ inputs: { out: { type: "static", value } } });

  test.each([
    ["its only end", [node("a", "core.identity", {}, port(1))], [], { out: 1 }],
    [
      "its primary node",
      [node("a", "core.identity", {}, { ...port(1), outputRole: "primary" }), node("b")],
      [edge("a>b")],
      { out: 1 },
    ],
    ["all its ends", [node("a", "core.identity", {}, port(1)), node("b")], [], { a: { out: 1 }, b: {} }],
  ])("is that of %s", async (_, nodes, edges, expected) => {
    expect((await play({ nodes, edges })).snapshot["outputs"]).toEqual(expected);
  });

  test("hides variables that are sensitive", async () => {
    const scene = workflowScene({
      definitions: [
        {
          ...worker("w"),
          variables: [{ name: "secret", type: "string", sensitive: true, defaultValue: "plain" }],
        },
      ],
    });
    expect((await scene.snapshot(await scene.run("w")))["variables"]).toEqual({ secret: "[masked]" });
  });
});

describe("an agent that is scripted", () => {
  const config = {
    agentId: "scripted",
    mockReasoning: { streamChunks: ["a", "b"] },
    mockToolCalls: [
      { toolId: "search", arguments: { q: 1 }, result: { hits: 2 } },
      { toolId: "broken", error: { error: "odd", message: "why" }, durationMs: 5 },
    ],
    mockHandoff: { toAgentId: "other", reason: "knows more" },
    mockDecision: { decision: "go", confidence: 0.9 },
  };

  test("reasons, calls, hands over and decides in that order, each return caused by its call", async () => {
    const { scene, runId } = await play({ nodes: [node("a", "core.conformance.mock-agent", config)] });
    const told = scene.events(runId).filter(({ type }) => type.startsWith("agent."));
    expect(told.map(({ type }) => type)).toEqual([
      ...["agent.reasoning.delta", "agent.reasoning.delta", "agent.reasoned"],
      ...["agent.toolCalled", "agent.toolReturned", "agent.toolCalled", "agent.toolReturned"],
      ...["agent.handoff", "agent.decided"],
    ]);
    expect(told[2]?.payload).toMatchObject({ reasoning: "ab" });
    expect(told[4]?.causationId).toBe(told[3]?.eventId);
    expect(told[6]?.causationId).toBe(told[5]?.eventId);
    expect(told[6]?.payload).toMatchObject({ status: "error", error: { code: "odd" }, durationMs: 5 });
  });

  test("does not show its reasoning where the caller wants none", async () => {
    const scene = workflowScene({
      definitions: [workflow("w", { nodes: [node("a", "core.conformance.mock-agent", config)] })],
    });
    const runId = await scene.run("w", { configurable: { reasoningVerbosity: "off" } });
    expect(scene.types(runId).filter((type) => type.startsWith("agent.reason"))).toEqual([]);
  });

  test("is refused outside of workflows that test a host, unless the host allows it", async () => {
    const nodes = [node("a", "core.conformance.mock-agent", config)];
    const scene = workflowScene({
      definitions: [workflow("w", { nodes }), workflow("conformance-w", { nodes })],
      settings: { allowsMocks: false },
    });
    const refused = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
    expect(codeOf(refused)).toBe("capability_required");
    expect(await scene.status(await scene.run("conformance-w"))).toBe("completed");
  });
});

describe("a node that asks a model", () => {
  const saying = (text: string, more = {}): SceneOptions => ({
    chat: {
      complete: () =>
        Promise.resolve({
          kind: "answered",
          text,
          finishReason: "stop",
          model: "m",
          provider: "p",
          usage: { inputTokens: 3 },
          ...more,
        }),
    },
  });

  test("keeps its answer, and what it cost", async () => {
    const it = await play({ nodes: [node("a", "core.ai.callPrompt", { prompt: "?" })] }, saying("yes"));
    expect(outputs(it, "a")).toEqual({ text: "yes" });
    expect(it.scene.payloads(it.runId, "provider.usage")).toMatchObject([
      { model: "m", provider: "p", inputTokens: 3 },
    ]);
  });

  test("finds the structured answer in what the model wrote around it", async () => {
    const it = await play({ nodes: [node("a", "core.ai.structuredOutput")] }, saying('Sure: {"a":[1]} ok?'));
    expect(outputs(it, "a")).toEqual({ result: { a: [1] } });
    const none = await play({ nodes: [node("a", "core.ai.structuredOutput")] }, saying("no"));
    expect(none.snapshot).toMatchObject({ error: { code: "structured_output_invalid" } });
  });

  test("fails without the refusal's text, and is not asked again after one", async () => {
    const it = await play(
      { nodes: [node("a", "core.ai.callPrompt")], settings: { maxRetries: 5 } },
      saying("", { refusal: "SECRET" }),
    );
    expect(it.snapshot).toMatchObject({ error: { code: "envelope_refused_by_provider" } });
    expect(it.scene.types(it.runId)).not.toContain("node.retried");
    expect(JSON.stringify(it.scene.events(it.runId))).not.toContain("SECRET");
  });

  test("is asked again where it could not be reached, as often as the workflow says", async () => {
    let calls = 0;
    const it = await play(
      { nodes: [node("a", "core.ai.callPrompt")], settings: { maxRetries: 2 } },
      {
        chat: {
          complete: () => {
            calls += 1;
            return Promise.resolve({ kind: "unknown", code: "unreachable", message: "no" });
          },
        },
      },
    );
    expect(calls).toBe(3);
    expect(it.snapshot).toMatchObject({ error: { code: "unreachable" } });
  });
});

describe("a node that calls a tool or another agent", () => {
  const mcp = node("a", "core.conformance.mcp-invoke", {
    mcp: { tool: "echo", url: "http://tool", arguments: { x: 1 } },
  });
  const a2a = node("a", "core.conformance.a2a-invoke", { skill: "plan", url: "http://agent" });

  test("records the call before it is made, and what came back as untrusted, caused by the call", async () => {
    const seen: unknown[] = [];
    const { scene, runId } = await play(
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
    const { scene, runId, snapshot } = await play({ nodes: [mcp] }, { tools: failing });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "tool_failed" } });
    expect(scene.payloads(runId, "agent.toolReturned")[0]).toMatchObject({ status: "error" });
    const unset = await play({
      nodes: [node("a", "core.conformance.mcp-invoke", { mcp: { tool: "echo" } })],
    });
    expect(unset.snapshot).toMatchObject({ error: { code: "not_configured" } });
  });

  test("passes the trace of the run on, under a span of its own", async () => {
    const seen: (string | undefined)[] = [];
    const scene = workflowScene({
      definitions: [workflow("w", { nodes: [mcp] })],
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
    const { snapshot } = await play(
      { nodes: [a2a] },
      { tools: { sendA2a: () => Promise.resolve({ kind: "answered", ok, state, text: "", data: [] }) } },
    );
    expect(snapshot.status).toBe(status);
    if (state === "rejected") expect(snapshot).toMatchObject({ error: { code: "rejected_by_remote" } });
  });
});

describe("a sub-workflow", () => {
  const child = worker("child", { result: "child did it", received: "baked in" });
  const sub = (config: object) => [
    node("sub", "core.subWorkflow", { workflowId: "child", ...config }),
    node("after"),
  ];
  const failing = workflow("child", { nodes: [node("boom", "core.fail")], variables: { result: "never" } });

  test("gets what is mapped, and hands back what is mapped", async () => {
    const it = await play(
      {
        nodes: sub({
          inputMapping: { received: "given" },
          outputMapping: { got: "result", none: "missing" },
        }),
        edges: [edge("sub>after")],
        variables: { given: "g", none: "kept" },
      },
      { definitions: [child] },
    );
    const { childRunId } = outputs(it, "sub") as { childRunId: string };
    expect(outputs(it, "sub")).toEqual({ childRunId, childStatus: "completed" });
    expect(await it.scene.snapshot(childRunId)).toMatchObject({
      parentRunId: it.runId,
      parentNodeId: "sub",
      variables: { received: "g", result: "child did it" },
    });
    expect(it.snapshot["variables"]).toEqual({ given: "g", got: "child did it", none: "kept" });
    expect(it.scene.types(it.runId)).not.toContain("core.workflowChain.event");
  });

  test("keeps its default where the parent has nothing to give", async () => {
    const it = await play(
      { nodes: sub({ inputMapping: { received: "unset" } }), variables: { unset: undefined } },
      { definitions: [child] },
    );
    const { childRunId = "" } = it.scene.payloads(it.runId, "node.dispatched")[0] ?? {};
    expect(await it.scene.snapshot(childRunId)).toMatchObject({ variables: { received: "baked in" } });
  });

  test("that fails is its parent's failure, unless that is absorbed, and hands nothing back", async () => {
    const mapped = { outputMapping: { got: "result" } };
    const fails = await play({ nodes: sub(mapped), edges: [edge("sub>after")] }, { definitions: [failing] });
    expect(fails.snapshot).toMatchObject({
      status: "failed",
      error: { code: "child_failed" },
      variables: {},
    });
    for (const onChildFailure of ["absorb", "continue"]) {
      const it = await play({ nodes: sub({ ...mapped, onChildFailure }) }, { definitions: [failing] });
      expect(it.snapshot).toMatchObject({ status: "completed", variables: {} });
      expect(outputs(it, "sub")).toMatchObject({ childStatus: "failed" });
    }
  });

  test("that is tried again is another run", async () => {
    const it = await play({ nodes: sub({}), settings: { maxRetries: 1 } }, { definitions: [failing] });
    const children = it.scene.payloads(it.runId, "node.dispatched").map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(2);
  });

  test("that is not there fails its parent, and one without a name is refused", async () => {
    const it = await play({ nodes: sub({}) });
    expect(it.snapshot).toMatchObject({ error: { code: "unknown_child_workflow" } });
    const scene = workflowScene({ definitions: [workflow("w", { nodes: [node("a", "core.subWorkflow")] })] });
    const refused = await scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" });
    expect(codeOf(refused)).toBe("validation_error");
  });

  test("within itself ends where nesting does", async () => {
    const it = await play({ nodes: [node("sub", "core.subWorkflow", { workflowId: "w" })] });
    expect(it.snapshot).toMatchObject({ status: "failed", error: { code: "child_failed" } });
    expect(it.scene.ledger.runs.size).toBe(17);
  });

  test("that shares a name with another node's turn is another run", async () => {
    const it = await play(
      {
        nodes: [
          node("s", "core.orchestrator.supervisor", {
            mockDispatchPlan: [{ kind: "next-worker", nextWorkerIds: ["child", "child"] }],
          }),
          node("d", "core.dispatch"),
          node("d:1", "core.subWorkflow", { workflowId: "other" }),
        ],
        edges: [edge("s>d"), edge("d>s")],
      },
      { definitions: [child, worker("other")] },
    );
    const children = it.scene.payloads(it.runId, "node.dispatched").map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(3);
  });
});
