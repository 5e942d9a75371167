/** Owns: live manifest dispatch (RFC 0077), steps 6 to 8, the bracket and the order. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { createAgent, openAgents, type Agents } from "./levels-agents-world.ts";
import { createNode, createWorkflow } from "./levels-workflows.ts";
import { childOf, filterByType, findOnly, type EndedRun, type Event } from "./levels-world.ts";

const CANARIES = ["CANARY-PROMPT", "CANARY-TASK", "CANARY-RESULT", "CANARY-REASON", "CANARY-TOOL"];

const TASK_SCHEMA = { type: "object", properties: { depth: { type: "integer" } }, required: ["depth"] };
const RETURN_SCHEMA = {
  type: "object",
  properties: { verdict: { type: "string" } },
  required: ["verdict"],
  additionalProperties: false,
};

const AGENTS = [
  createAgent("vendor.test.plain", { systemPrompt: "CANARY-PROMPT" }),
  createAgent("vendor.test.tooled", {
    systemPrompt: "CANARY-PROMPT",
    manifest: { toolAllowlist: ["mcp:echo", "mcp:slow"] },
  }),
  createAgent("vendor.test.digger", {
    manifest: { handoff: { taskSchemaRef: "t.json" } },
    taskSchema: TASK_SCHEMA,
  }),
  createAgent("vendor.test.judge", {
    manifest: { handoff: { returnSchemaRef: "r.json" } },
    returnSchema: RETURN_SCHEMA,
  }),
  createAgent("vendor.test.doubter", { manifest: { confidence: { defaultThreshold: 0.9 } } }),
  createAgent("vendor.test.router", { manifest: { toolAllowlist: ["openwop:agent.handoff"] } }),
];

const DEFINITIONS = [
  createWorkflow("with-a-task", {
    nodes: [
      {
        ...createNode("work", "core.noop", {
          inputs: { depth: { type: "variable", variableName: "metres" } },
        }),
        agent: { agentId: "vendor.test.digger" },
      },
    ],
    variables: { metres: 3 },
  }),
];

let world: Agents;
beforeAll(async () => {
  world = await openAgents(AGENTS, { definitions: DEFINITIONS });
});
afterAll(() => world.close());

const outcomeOf = (events: readonly Event[]) =>
  findOnly(events, "agent.invocation.completed").payload["outcome"];
const listAgentTypes = (events: readonly Event[]): string[] =>
  events.map(({ type }) => type).filter((type) => type.startsWith("agent."));
const sayJson = (value: unknown): Turn => ({ say: JSON.stringify(value) });

describe("the task of an agent", () => {
  it("LM-50 is held against its task schema before its model is asked", async () => {
    const before = world.model.requests.length;
    const { snapshot, events } = await world.run("vendor.test.digger", { depth: "deep" }, [{ say: "no" }]);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "handoff_task_schema_violation" } });
    expect(world.model.requests.length).toBe(before);
    expect(listAgentTypes(events)).toEqual([
      "agent.invocation.started",
      "agent.promptResolved",
      "agent.invocation.completed",
    ]);
    expect(outcomeOf(events)).toBe("failed");
  });

  it("LM-51 that is of its schema is worked on, as the run's own input and under the name of a task", async () => {
    const ownEnded = await world.run("vendor.test.digger", { depth: 3 }, [{ say: "dug" }]);
    expect(ownEnded.snapshot["outputs"]).toMatchObject({ result: "dug" });
    const mapped = await world.client.run("with-a-task");
    expect(mapped.snapshot.status).toBe("completed");
  });
});

describe("the result of an agent", () => {
  it("LM-52 that breaks its return schema fails the run, and is not shipped", async () => {
    const wrong: readonly Turn[] = [
      { say: "guilty" },
      sayJson({ verdict: 7 }),
      sayJson({ verdict: "guilty", because: "so" }),
      sayJson({ result: { verdict: 7 }, confidence: 1 }),
    ];
    for (const turn of wrong) {
      const { snapshot, events } = await world.run("vendor.test.judge", {}, [turn]);
      expect(snapshot).toMatchObject({
        status: "failed",
        error: { code: "handoff_return_schema_violation" },
      });
      expect(snapshot["outputs"]).toBeUndefined();
      const { payload } = findOnly(events, "agent.invocation.completed");
      expect(payload["outcome"]).toBe("failed");
      expect(payload["schemaValidated"]).not.toBe(true);
      expect(filterByType(events, "agent.decided")).toEqual([]);
    }
  });

  it("LM-53 that is of its return schema is the run's, in whatever form it comes", async () => {
    const right: readonly Turn[] = [
      sayJson({ verdict: "guilty" }),
      sayJson({ verdict: "guilty", confidence: 0.95 }),
      sayJson({ result: { verdict: "guilty" }, confidence: 0.95 }),
      { say: '```json\n{"verdict":"guilty"}\n```' },
    ];
    for (const turn of right) {
      const { snapshot, events } = await world.run("vendor.test.judge", {}, [turn]);
      expect(snapshot["outputs"]).toMatchObject({ result: { verdict: "guilty" } });
      expect(findOnly(events, "agent.invocation.completed").payload).toMatchObject({
        outcome: "completed",
        schemaValidated: true,
      });
    }
  });

  it("LM-54 is what the run and its node end with", async () => {
    const { snapshot, events } = await world.run("vendor.test.plain", {}, [{ say: "because" }]);
    expect(snapshot["outputs"]).toEqual({
      result: "because",
      agentId: "vendor.test.plain",
      contentTrust: "untrusted",
    });
    expect(findOnly(events, "node.completed").payload["outputs"]).toEqual(snapshot["outputs"]);
  });
});

describe("an agent's doubt", () => {
  const start = (agentId: string, confidence: number, configurable?: Readonly<Record<string, unknown>>) =>
    world.start(
      agentId,
      {},
      [sayJson({ result: "maybe", confidence })],
      configurable ? { configurable } : {},
    );

  it("LM-60 below the threshold of its manifest waits for people, and counts when they agree", async () => {
    const runId = await start("vendor.test.doubter", 0.85);
    const { interrupt } = await world.client.until(runId, "waiting-approval");
    expect(interrupt).toMatchObject({ kind: "low-confidence", nodeId: "agent" });
    const waiting = await world.client.events(runId);
    expect(findOnly(waiting, "node.suspended").payload).toMatchObject({
      reason: "low-confidence",
      agentId: "vendor.test.doubter",
      threshold: 0.9,
      observed: 0.85,
    });
    expect(findOnly(waiting, "agent.invocation.completed").payload).toMatchObject({
      outcome: "escalated",
      confidence: 0.85,
    });
    expect(findOnly(waiting, "agent.decided").payload["confidence"]).toBe(0.85);
    await world.client.resolve(runId, "agent", { action: "accept" });
    const { outputs } = (await world.client.until(runId, "completed")) as { outputs?: unknown };
    expect(outputs).toMatchObject({ result: "maybe" });
  });

  it("LM-61 is no result where they do not agree", async () => {
    const runId = await start("vendor.test.doubter", 0.1);
    await world.client.until(runId, "waiting-approval");
    await world.client.resolve(runId, "agent", { action: "reject" });
    const { error } = await world.client.until(runId, "failed");
    expect(error?.code).toBe("low_confidence_rejected");
    const events = await world.client.events(runId);
    expect(listAgentTypes(events).at(-1)).toBe("agent.invocation.completed");
  });

  it("LM-62 is measured by 0.7 where neither run nor manifest says another threshold", async () => {
    await world.client.until(await start("vendor.test.plain", 0.69), "waiting-approval");
    await world.client.until(await start("vendor.test.plain", 0.7), "completed");
  });

  it("LM-63 is measured by the run's own threshold where it has one", async () => {
    await world.client.until(
      await start("vendor.test.doubter", 0.5, { escalationThreshold: 0.4 }),
      "completed",
    );
    await world.client.until(
      await start("vendor.test.plain", 0.9, { escalationThreshold: 0.95 }),
      "waiting-approval",
    );
  });

  it("LM-64 is none where it states no confidence", async () => {
    const { snapshot } = await world.run("vendor.test.doubter", {}, [{ say: "sure" }]);
    expect(snapshot.status).toBe("completed");
  });

  it("LM-65 survives a stop of the host while people are asked", async () => {
    const runId = await start("vendor.test.doubter", 0.2);
    await world.client.until(runId, "waiting-approval");
    const before = world.model.requests.length;
    await world.restart();
    await world.client.resolve(runId, "agent", { action: "accept" });
    await world.client.until(runId, "completed");
    expect(world.model.requests.length).toBe(before);
  });
});

describe("an agent that hands over", () => {
  const handOver = (toAgentId: string, task?: object): Turn => ({
    call: [
      {
        name: "openwop_agent_handoff",
        args: { toAgentId, reason: "a drill is needed", ...(task && { task }) },
      },
    ],
  });

  it("LM-70 says so and to whom, and the other's run is the caller's too", async () => {
    const { snapshot, events, runId } = await world.run("vendor.test.router", {}, [
      handOver("vendor.test.digger", { depth: 9 }),
    ]);
    expect(findOnly(events, "agent.handoff").payload).toEqual({
      fromAgentId: "vendor.test.router",
      toAgentId: "vendor.test.digger",
      reason: "a drill is needed",
    });
    const childRunId = childOf(events);
    expect(findOnly(events, "agent.invocation.completed").payload).toMatchObject({
      outcome: "handed-off",
      enqueuedRunId: childRunId,
    });
    const child = await world.client.snapshot(childRunId);
    expect(child).toMatchObject({ status: "completed", inputs: { depth: 9 }, parentRunId: runId });
    expect(child["owner"]).toEqual(snapshot["owner"]);
    expect(findOnly(events, "node.dispatched").payload["childWorkflowId"]).toBe(child["workflowId"]);
    expect((await world.other.get(`/v1/runs/${childRunId}`)).status).toBe(404);
    expect(snapshot["outputs"]).toMatchObject({ agentId: "vendor.test.digger", childRunId });
    expect(
      findOnly(await world.client.events(childRunId), "agent.invocation.started").payload["source"],
    ).toBe("run-api");
  });

  it("LM-71 of a task that is not the other's fails, and both invocations are closed", async () => {
    const { snapshot, events } = await world.run("vendor.test.router", {}, [
      handOver("vendor.test.digger", { depth: "deep" }),
    ]);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "handoff_task_schema_violation" } });
    expect(outcomeOf(events)).toBe("handed-off");
    expect(outcomeOf(await world.client.events(childOf(events)))).toBe("failed");
  });

  it("LM-72 to nobody, or to itself, is told that this cannot be, and goes on", async () => {
    for (const to of ["vendor.test.nobody", "vendor.test.router"]) {
      const turns = [handOver(to), { say: "then I do it" }];
      const { snapshot, events } = await world.run("vendor.test.router", {}, turns);
      expect(snapshot["outputs"]).toMatchObject({ result: "then I do it" });
      expect(filterByType(events, "agent.handoff", "node.dispatched")).toEqual([]);
      expect(findOnly(events, "agent.toolReturned").payload["status"]).toBe("error");
    }
  });
});

const SCENES: readonly (readonly [what: string, outcome: string, agentId: string, turns: readonly Turn[]])[] =
  [
    ["completes", "completed", "vendor.test.plain", [{ say: "CANARY-RESULT" }]],
    [
      "calls tools",
      "completed",
      "vendor.test.tooled",
      [
        { say: "CANARY-REASON", call: [{ name: "mcp_echo", args: { text: "CANARY-TOOL" } }] },
        { say: "CANARY-RESULT" },
      ],
    ],
    ["doubts", "escalated", "vendor.test.doubter", [sayJson({ result: "CANARY-RESULT", confidence: 0.1 })]],
    [
      "hands over",
      "handed-off",
      "vendor.test.router",
      [
        {
          call: [
            {
              name: "openwop_agent_handoff",
              args: { toAgentId: "vendor.test.plain", task: { of: "CANARY-TASK" } },
            },
          ],
        },
      ],
    ],
    ["is refused", "refused", "vendor.test.plain", [{ say: "", refuse: "CANARY-RESULT" }]],
    ["breaks its return schema", "failed", "vendor.test.judge", [{ say: "CANARY-RESULT" }]],
    ["has a task that is not its own", "failed", "vendor.test.digger", [{ say: "CANARY-RESULT" }]],
    ["cannot reach its model", "failed", "vendor.test.plain", [{ httpError: 400 }]],
  ];

describe.each(SCENES)("an invocation that %s", (_what, outcome, agentId, turns) => {
  let ended: EndedRun;
  beforeAll(async () => {
    const runId = await world.start(agentId, { about: "CANARY-TASK" }, turns);
    const snapshot = await world.client.until(runId, "completed", "failed", "waiting-approval");
    ended = { runId, snapshot, events: await world.client.events(runId) };
  });

  it("LM-80 is told of by one start and one end with one id, the first and the last of the agent's events", () => {
    const types = listAgentTypes(ended.events);
    expect(types[0]).toBe("agent.invocation.started");
    expect(types.at(-1)).toBe("agent.invocation.completed");
    const started = findOnly(ended.events, "agent.invocation.started").payload;
    const completed = findOnly(ended.events, "agent.invocation.completed").payload;
    expect(completed).toMatchObject({ outcome, invocationId: started["invocationId"], agentId });
    expect(started).toMatchObject({ agentId, source: "run-api" });
  });

  it("LM-81 says nothing of prompts, tasks, results and keys in its bracket", () => {
    for (const { payload } of filterByType(
      ended.events,
      "agent.invocation.started",
      "agent.invocation.completed",
    )) {
      const text = JSON.stringify(payload);
      for (const canary of CANARIES) expect(text).not.toContain(canary);
      const keys = [
        "prompt",
        "result",
        "body",
        "input",
        "output",
        "apiKey",
        "secret",
        "credentials",
        "token",
      ];
      expect(Object.keys(payload).filter((key) => keys.includes(key))).toEqual([]);
    }
  });

  it("LM-82 has its events in the order of the protocol", () => {
    const letters: Readonly<Record<string, string>> = {
      "agent.invocation.started": "S",
      "agent.promptResolved": "P",
      "agent.reasoning.delta": "d",
      "agent.reasoned": "R",
      "agent.toolCalled": "c",
      "agent.toolReturned": "r",
      "agent.decided": "D",
      "agent.handoff": "H",
      "agent.invocation.completed": "E",
    };
    const order = listAgentTypes(ended.events)
      .map((type) => letters[type])
      .join("");
    const isWhole = ["completed", "escalated", "handed-off"].includes(outcome);
    expect(order).toMatch(isWhole ? /^SP(d*R)+(cr)*D+H?E$/ : /^SP((d*R)+(cr)*)?E$/);
  });
});

describe("an invocation that is cut short", () => {
  it("LM-83 by a cancellation is closed before its run is", async () => {
    const runId = await world.start("vendor.test.tooled", {}, [{ call: [{ name: "mcp_slow", args: {} }] }]);
    await world.until(
      async () => filterByType(await world.client.events(runId), "agent.toolCalled").length > 0,
    );
    await world.client.post(`/v1/runs/${runId}/cancel`, {});
    await world.client.until(runId, "cancelled");
    const events = await world.client.events(runId);
    expect(outcomeOf(events)).toBe("failed");
    expect(events.map(({ type }) => type).slice(-3)).toEqual([
      "agent.invocation.completed",
      "node.cancelled",
      "run.cancelled",
    ]);
  });

  it("LM-84 by the time of its run is closed as well", async () => {
    const turns = [{ delayMs: 5_000, say: "too late" }];
    const { snapshot, events } = await world.run("vendor.test.plain", {}, turns, {
      configurable: { runTimeoutMs: 200 },
    });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "run_timeout" } });
    expect(outcomeOf(events)).toBe("failed");
  });
});
