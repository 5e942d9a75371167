/** Owns: what the protocol's suite asserts of agents, sub-workflows and its own seams, on workflows of this project. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import {
  childOf,
  clientOf,
  filterByType,
  findOnly,
  openWorld,
  type Reply,
  type World,
} from "./levels-world.ts";

const createAgent = (config: object) =>
  createNode("thinker", "core.conformance.mock-agent", { config: { agentId: "agent-one", ...config } });

const DEFINITIONS = [
  ...WORKERS,
  createWorkflow("thinks", {
    nodes: [
      createAgent({
        mockReasoning: { summary: "short", streamChunks: ["first ", "second ", "third"] },
        mockToolCalls: [
          { toolId: "measure", arguments: { depth: 3 }, result: { depth: 3 } },
          { toolId: "dig", arguments: {}, error: { error: "rock", message: "too hard" } },
        ],
        mockHandoff: { toAgentId: "agent-two", reason: "a drill is needed" },
        mockDecision: { decision: "drill", confidence: 0.9 },
      }),
    ],
  }),
  createWorkflow("pins-an-agent", {
    nodes: [{ ...createNoop("only"), agent: { agentId: "agent-pinned", modelClass: "reasoning" } }],
  }),
  createWorkflow("calls", {
    nodes: [
      createNoop("before"),
      createNode("call", "core.subWorkflow", {
        config: {
          workflowId: "worker-good",
          inputMapping: { own: "word", unset: "nothing" },
          outputMapping: { got: "found", kept: "not-there" },
        },
      }),
    ],
    variables: { word: "hello", nothing: undefined, kept: "as it was" },
  }),
  createWorkflow("calls-bad", {
    nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "worker-bad" } })],
  }),
  createWorkflow("absorbs-bad", {
    nodes: [
      createNode("call", "core.subWorkflow", {
        config: { workflowId: "worker-bad", onChildFailure: "absorb" },
      }),
    ],
  }),
  createWorkflow("calls-gated", {
    nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "worker-gated" } })],
  }),
  createLoop("hands-over", { plan: [work(["worker-good"]), end()] }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

describe("an agent", () => {
  it("B-60 reasons in deltas, which together are what it reasoned", async () => {
    const { events } = await world.client.run("thinks");
    const deltas = filterByType(events, "agent.reasoning.delta");
    expect(deltas.map(({ payload }) => payload["sequence"])).toEqual([0, 1, 2]);
    const reasoned = findOnly(events, "agent.reasoned");
    expect(reasoned.payload["reasoning"]).toBe(deltas.map(({ payload }) => payload["delta"]).join(""));
    for (const { sequence } of deltas) expect(sequence).toBeLessThan(reasoned.sequence);
  });

  it("B-61 calls tools: each return is caused by its own call", async () => {
    const { events } = await world.client.run("thinks");
    const [first, second] = filterByType(events, "agent.toolCalled");
    const returned = filterByType(events, "agent.toolReturned");
    expect(returned.map(({ causationId }) => causationId)).toEqual([first?.eventId, second?.eventId]);
    expect(returned.map(({ payload }) => payload["status"])).toEqual(["ok", "error"]);
    expect(returned.map(({ payload }) => payload["callId"])).toEqual([
      first?.payload["callId"],
      second?.payload["callId"],
    ]);
  });

  it("B-62 hands over by both names, and decides last", async () => {
    const { events } = await world.client.run("thinks");
    expect(findOnly(events, "agent.handoff").payload).toMatchObject({
      fromAgentId: "agent-one",
      toAgentId: "agent-two",
    });
    const types = events.map(({ type }) => type).filter((type) => type.startsWith("agent."));
    expect(types.at(-1)).toBe("agent.decided");
  });

  it("B-63 is named in the snapshot of the run, also when that has ended", async () => {
    const { snapshot } = await world.client.run("pins-an-agent");
    expect(snapshot["agent"]).toEqual({ agentId: "agent-pinned", modelClass: "reasoning" });
    expect((await world.client.run("hands-over")).snapshot["runOrchestrator"]).toMatchObject({
      agentId: expect.stringMatching(/^.{3,}$/u) as string,
    });
  });
});

describe("a sub-workflow", () => {
  it("B-64 brings back what is mapped, and tells its child and how that ended", async () => {
    const { snapshot, events, runId } = await world.client.run("calls");
    expect(snapshot.variables).toMatchObject({ got: "gold", kept: "as it was" });
    const completed = filterByType(events, "node.completed").find(({ nodeId }) => nodeId === "call");
    expect(completed?.payload["outputs"]).toEqual({ childRunId: childOf(events), childStatus: "completed" });
    const child = await world.client.snapshot(childOf(events));
    expect(child).toMatchObject({ parentRunId: runId, parentNodeId: "call" });
    expect(child.variables).toMatchObject({ own: "hello" });
    expect(child.variables).not.toHaveProperty("unset");
  });

  it("B-65 fails with its child, unless it takes failures for what they are", async () => {
    expect((await world.client.run("calls-bad")).snapshot.error?.code).toBe("child_failed");
    const { snapshot, events } = await world.client.run("absorbs-bad");
    expect(snapshot.status).toBe("completed");
    expect(findOnly(events, "node.completed").payload["outputs"]).toMatchObject({ childStatus: "failed" });
  });
});

describe("the seams of the suite", () => {
  const SEAMS = "/v1/host/sample";
  const postSeam = (path: string, body: unknown): Promise<Reply> =>
    world.client.post(`${SEAMS}${path}`, body);

  it("B-70 register a workflow in the short form, for the tenant that asks", async () => {
    const nodes = [
      {
        nodeId: "supervisor",
        typeId: "core.orchestrator.supervisor",
        config: { mockDispatchPlan: [work(["worker-good"]), end()] },
      },
      { nodeId: "dispatch", typeId: "core.dispatch", config: { outputMapping: { got: "found" } } },
    ];
    expect((await postSeam("/workflows", { workflowId: "short-form.one", nodes })).status).toBe(201);
    const { snapshot } = await world.client.run("short-form.one");
    expect(snapshot).toMatchObject({ status: "completed", variables: { got: "gold" } });
    expect((await world.other.post("/v1/runs", { workflowId: "short-form.one" })).status).toBe(400);
  });

  it("B-71 take a capability away, so that what needs it is refused by its name", async () => {
    const overlay = await postSeam("/test/capability-toggle", {
      name: "agents.dispatchMapping",
      value: false,
    });
    expect(overlay.body).toEqual({ overlay: { "agents.dispatchMapping": false } });
    const nodes = [{ nodeId: "dispatch", typeId: "core.dispatch", config: {} }];
    const refused = await postSeam("/workflows", { workflowId: "needs-dispatch", nodes });
    expect(refused).toMatchObject({
      status: 400,
      body: { error: "validation_error", details: { requiredCapability: "agents.dispatchMapping" } },
    });
    expect((await postSeam("/test/capability-toggle", { reset: true })).body).toEqual({ overlay: {} });
  });

  it("B-72 set variables of a run, and read its events by type", async () => {
    const { client } = world;
    const runId = await client.start("calls-gated");
    await client.until(runId, "waiting-approval");
    const childRunId = childOf(await client.events(runId));
    expect(
      (await postSeam(`/test/runs/${childRunId}/variables`, { variables: { found: "seeded" } })).status,
    ).toBe(200);
    await client.resolve(childRunId, "gate", { action: "accept" });
    await client.until(runId, "completed");
    expect((await client.snapshot(childRunId)).variables["found"]).toBe("seeded");
    const { body } = await client.get(`${SEAMS}/test/runs/${runId}/events?type=node.dispatched`);
    expect(body["events"]).toMatchObject([{ type: "node.dispatched" }]);
  });

  it("B-73 let one of several claims of a key be delivered", async () => {
    const { body } = await postSeam("/test/idempotency/concurrent-claim", { executors: 5 });
    expect(body).toMatchObject({ attempted: 5, delivered: 1 });
    expect(new Set(body["mintedIds"] as string[]).size).toBe(1);
  });

  it("B-74 are not there where nobody asked for them", async () => {
    const shut = await openWorld(DEFINITIONS, { testSeams: false });
    const client = clientOf(shut.baseUrl);
    for (const path of ["/workflows", "/test/reset", "/test/capability-toggle"])
      expect((await client.post(`${SEAMS}${path}`)).status).toBe(404);
    const mocked = await client.post("/v1/runs", { workflowId: "thinks" });
    expect([mocked.status, mocked.body["error"]]).toEqual([422, "capability_required"]);
    await shut.close();
  });
});
