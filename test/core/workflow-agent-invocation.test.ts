/** Owns: what a node that an agent of a manifest executes does next, from its preparation to the end of the agent. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AskedCall } from "../../src/agents/coordination/contracts/workflows/agent-events.ts";
import type { NodeStep } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { agentInvocation } from "../../src/agents/coordination/workflow/nodes/agent-invocation.ts";
import type { Invocation } from "../../src/agents/coordination/workflow/state/invocation.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  InterruptAnswer,
  NodeRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  CHILD,
  createBound,
  createCall,
  createCallers,
  createCompleted,
  createInvocation,
  createTool,
  createTurn,
  MANIFEST,
  MEMBERS,
  STARTED,
} from "./workflow-agent-node-scene.ts";
import { createHandoff, createView, REPLAY_ORIGIN, type Scene } from "./workflow-node-view-scene.ts";
import { createAsking, RUN } from "./workflow-view-scene.ts";

const WRITE = "openwop:memory.write";
const HANDOFF = "openwop:agent.handoff";
const TOOLS = [createTool("search"), createTool(WRITE), createTool(HANDOFF)];

function step(invocation: Partial<Invocation>, scene: Scene = {}): NodeStep {
  const nodeRun: Partial<NodeRun> = { invocation: createInvocation(invocation), ...scene.nodeRun };
  return agentInvocation.step(createView({ members: MEMBERS, started: STARTED, ...scene, nodeRun }));
}

function failBroken(message: string): NodeStep {
  return { kind: "fail", error: { code: "node_broken", message } };
}

describe("an agent that has not begun", () => {
  it("is prepared", () => {
    expect(agentInvocation.step(createView({ members: MEMBERS, started: STARTED }))).toMatchObject({
      kind: "act",
      effect: { kind: "prepare_agent", id: "a:1:prepare", agentId: "acme.writer", manifest: MANIFEST },
    });
  });

  it("is broken where it began without its bounds", () => {
    const { bound: _, ...invocation } = createInvocation();
    const view = createView({ nodeRun: { invocation } });
    expect(agentInvocation.step(view)).toStrictEqual(failBroken("the invocation has no bounds"));
  });
});

describe("the turn of an agent", () => {
  it("is asked for with what was said so far, and the calls that are left", () => {
    const { turns, returned } = createCallers([createCall("c1"), createCall("c2")]);
    expect(step({ turns, returned })).toMatchObject({
      kind: "act",
      effect: {
        kind: "ask_agent",
        id: "a:1:turn:2",
        turn: 2,
        callsLeft: 62,
        messages: [
          { role: "user", content: "write" },
          { role: "assistant" },
          { role: "tool" },
          { role: "tool" },
        ],
      },
    });
  });

  it("has no calls left where more were made than may be", () => {
    const calls = Array.from({ length: 65 }, (_, index) => createCall(`c${index}`));
    expect(step(createCallers(calls))).toHaveProperty("effect.callsLeft", 0);
  });

  const TURNS = Array.from({ length: 16 }, () => createTurn());

  it.each<[unit: string, most: number, within: Partial<Invocation>, beyond: Partial<Invocation>]>([
    ["turns", 16, { turns: TURNS.slice(1) }, { turns: TURNS }],
    ["characters", 800_000, { chars: 800_000 }, { chars: 800_001 }],
    ["tokens", 400_000, { tokens: 400_000 }, { tokens: 400_001 }],
  ])("is not asked for beyond the bound of %s", (limit, most, within, beyond) => {
    expect(step(within)).toMatchObject({ kind: "act", effect: { kind: "ask_agent" } });
    expect(step(beyond)).toStrictEqual({
      kind: "fail",
      error: {
        code: "agent_limit_exceeded",
        message: `the agent came to no end within ${most} ${limit}`,
        details: { limit, most },
      },
    });
  });
});

describe("the call of a tool", () => {
  const SEARCH = createTool("search", { transport: "mcp" });
  const TURNS = [createTurn({ calls: [createCall("c1"), createCall("c2")] })];
  const BOUND = createBound({ tools: [SEARCH] });

  it("is on record before it is made", () => {
    expect(step({ bound: BOUND, turns: TURNS })).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "agent.toolCalled",
          nodeId: "a",
          payload: {
            agentId: "acme.writer",
            toolName: "search",
            callId: "c1",
            argsHash: "0".repeat(64),
            principal: "alice",
            transport: "mcp",
          },
        },
      ],
    });
  });

  it("is made, and made again with the same id, until it returns", () => {
    const called = new Map([["c1", createEventId(RUN, 3)]]);
    expect(step({ bound: BOUND, turns: TURNS, called })).toStrictEqual({
      kind: "act",
      effect: {
        kind: "call_agent_tool",
        id: "a:1:call:c1",
        nodeId: "a",
        agentId: "acme.writer",
        manifest: MANIFEST,
        call: createCall("c1"),
        tool: SEARCH,
      },
    });
  });

  it("comes after the ones before it have returned", () => {
    const { returned } = createCallers([createCall("c1")]);
    expect(step({ turns: TURNS, returned })).toHaveProperty("drafts.0.payload.callId", "c2");
  });

  it("is none of a tool that was not bound", () => {
    const broken = failBroken("a call of a tool that was not bound");
    expect(step({ bound: createBound({ tools: [] }), turns: TURNS })).toStrictEqual(broken);
  });
});

describe("a note that an agent may keep", () => {
  const BOUND = createBound({ tools: TOOLS, memoryScope: "notes" });

  function createNote(callId: string, args: Values): AskedCall {
    return createCall(callId, { toolName: WRITE, args });
  }

  const NOTE = createNote("c1", { content: "bees sleep", tags: ["bees"] });

  it("is kept in one step with the event that records it", () => {
    expect(step({ bound: BOUND, ...createCallers([NOTE]) })).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "memory.written",
          nodeId: "a",
          payload: {
            memoryRef: "notes",
            memoryId: "run-1:c1",
            nodeId: "a",
            agentId: "acme.writer",
            tags: ["bees"],
          },
        },
      ],
      memory: [{ scope: "notes", id: "run-1:c1", content: "bees sleep", tags: ["bees"] }],
    });
  });

  it("has no tags on record where it has none", () => {
    const noted = step({ bound: BOUND, ...createCallers([createNote("c1", { content: "x" })]) });
    expect(noted).toHaveProperty("drafts.0.payload.memoryId");
    expect(noted).not.toHaveProperty("drafts.0.payload.tags");
  });

  it("is that of the source's run in a replay", () => {
    const invocation = { bound: BOUND, ...createCallers([NOTE]) };
    expect(step(invocation, { run: { origin: REPLAY_ORIGIN } })).toHaveProperty("memory.0.id", "source-1:c1");
  });

  it("is kept once the tool has allowed it, and not before", () => {
    const { turns } = createCallers([NOTE]);
    expect(step({ bound: BOUND, turns })).toMatchObject({
      kind: "record",
      drafts: [{ type: "agent.toolCalled", payload: { callId: "c1" } }],
    });
  });

  it("is kept once, and the next one after it", () => {
    const callers = createCallers([NOTE, createNote("c2", { content: "y" })]);
    const once = step({ bound: BOUND, ...callers }, { nodeRun: { memoryIds: ["run-1:c1"] } });
    expect(once).toMatchObject({ kind: "record", memory: [{ id: "run-1:c2", content: "y" }] });
    const nodeRun = { memoryIds: ["run-1:c1", "run-1:c2"] };
    expect(step({ bound: BOUND, ...callers }, { nodeRun })).toHaveProperty("effect.kind", "ask_agent");
  });

  it.each<[title: string, invocation: Partial<Invocation>]>([
    [
      "the agent has no memory of its own",
      { bound: createBound({ tools: TOOLS }), ...createCallers([NOTE]) },
    ],
    ["there is nothing in it", { bound: BOUND, ...createCallers([createNote("c1", {})]) }],
    ["the tool refused it", { bound: BOUND, ...createCallers([NOTE], "error") }],
    [
      "another tool was called",
      { bound: BOUND, ...createCallers([createCall("c1", { args: { content: "x" } })]) },
    ],
    [
      "it is one of an earlier turn",
      {
        bound: BOUND,
        returned: createCallers([NOTE]).returned,
        turns: [...createCallers([NOTE]).turns, createTurn({ turn: 2 })],
      },
    ],
  ])("is not kept where %s", (_title, invocation) => {
    expect(step(invocation)).toHaveProperty("effect.kind", "ask_agent");
  });
});

describe("the handing over of a task", () => {
  const BOUND = createBound({ tools: TOOLS, task: { topic: "bees" } });

  function createAsk(args: Values): Pick<Invocation, "turns" | "returned"> {
    return createCallers([createCall("c1", { toolName: HANDOFF, args })]);
  }

  it("is on record before the other agent begins", () => {
    const handing = createAsk({ toAgentId: "acme.Reader", task: "read", reason: "it reads" });
    expect(step({ bound: BOUND, ...handing })).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "agent.decided",
          nodeId: "a",
          payload: { agentId: "acme.writer", decision: { kind: "handoff", toAgentId: "acme.Reader" } },
        },
        {
          type: "agent.handoff",
          nodeId: "a",
          payload: { fromAgentId: "acme.writer", toAgentId: "acme.Reader", reason: "it reads" },
        },
      ],
    });
  });

  it("has no reason where the agent told none", () => {
    const handing = step({ bound: BOUND, ...createAsk({ toAgentId: "acme.Reader" }) });
    expect(handing).toHaveProperty("drafts.1.payload", {
      fromAgentId: "acme.writer",
      toAgentId: "acme.Reader",
    });
    expect(handing).not.toHaveProperty("drafts.1.payload.reason");
  });

  it("is none where no agent is named", () => {
    expect(step({ bound: BOUND, ...createAsk({}) })).toHaveProperty("effect.kind", "ask_agent");
  });

  const HANDED = { fromAgentId: "acme.writer", toAgentId: "acme.Reader" };
  const READER = {
    kind: "run_child",
    id: "a:handoff:1",
    nodeId: "a",
    ordinal: "a:handoff:1",
    cause: "core.dispatch",
    workflowId: "agent.acme.reader",
    inputs: { task: "read" },
    memoryScope: "w",
    agent: { agentId: "acme.Reader", source: "workflow-node" },
  };

  it("starts the run of the other agent on this host, whatever host the task names", () => {
    const invocation = {
      bound: BOUND,
      handoff: HANDED,
      ...createAsk({ toAgentId: "acme.Reader", task: "read" }),
    };
    const started = { ...STARTED, inputs: { peerUrl: "https://peer.example" } };
    expect(step(invocation, { started })).toStrictEqual({ kind: "act", effect: READER });
  });

  it("goes on with the task of the agent where it named none", () => {
    const invocation = { bound: BOUND, handoff: HANDED, ...createAsk({ toAgentId: "acme.Reader" }) };
    expect(step(invocation, { nodeRun: { executions: 2 } })).toMatchObject({
      kind: "act",
      effect: { id: "a:handoff:2", inputs: { topic: "bees" } },
    });
  });

  it("is waited for once the agent has handed over, as the child that was created", () => {
    const invocation = {
      bound: BOUND,
      handoff: HANDED,
      completed: createCompleted("handed-off"),
      ...createAsk({ toAgentId: "acme.Reader", task: "read" }),
    };
    const nodeRun = { handoff: createHandoff({ childRunId: CHILD }) };
    expect(step(invocation, { nodeRun })).toStrictEqual({
      kind: "act",
      effect: { ...READER, childRunId: CHILD },
    });
  });
});

describe("the end of an agent", () => {
  const TURNS = [1, 2, 3].map((turn) => createTurn({ turn, final: { result: { turn } } }));
  const OUTPUTS = { result: { turn: 3 }, agentId: "acme.writer", contentTrust: "untrusted" };

  it("completes its node with the result, which nobody trusts yet", () => {
    expect(step({ turns: TURNS, completed: createCompleted("completed") })).toStrictEqual({
      kind: "complete",
      outputs: OUTPUTS,
    });
  });

  it.each<"failed" | "refused">(["failed", "refused"])(
    "breaks a node that did not end as %s with it",
    (outcome) => {
      expect(step({ turns: TURNS, completed: createCompleted(outcome) })).toStrictEqual(
        failBroken("the invocation ended, and its node did not"),
      );
    },
  );

  it("has no result where the log has none", () => {
    const outputs = { ...OUTPUTS, result: undefined };
    expect(step({ completed: createCompleted("completed") })).toStrictEqual({ kind: "complete", outputs });
    const completed = createCompleted("completed");
    expect(step({ turns: [createTurn()], completed })).toStrictEqual({ kind: "complete", outputs });
  });

  const DOUBTED = { turns: TURNS, completed: createCompleted("escalated", { confidence: 0.4 }) };

  function createAnswer(resumeValue: unknown): InterruptAnswer {
    return {
      interruptId: "a~1",
      kind: "low-confidence",
      resumeValue,
      eventId: createEventId(RUN, 4),
      asked: { data: {} },
    };
  }

  it("asks people about a result that the agent doubts", () => {
    const measured = { agentId: "acme.writer", threshold: 0.7, observed: 0.4 };
    expect(step(DOUBTED)).toStrictEqual({
      kind: "suspend",
      interrupt: {
        kind: "low-confidence",
        reason: "low-confidence",
        ...measured,
        data: { ...measured, decision: { kind: "result", result: { turn: 3 } } },
      },
    });
  });

  it("takes a doubt of unknown size for the largest there is", () => {
    const { bound: _, ...invocation } = createInvocation({ completed: createCompleted("escalated") });
    const view = createView({ nodeRun: { invocation } });
    expect(agentInvocation.step(view)).toMatchObject({
      kind: "suspend",
      interrupt: { threshold: 1, observed: 0, data: { threshold: 1, observed: 0 } },
    });
  });

  it("waits for the people who were asked", () => {
    const { interrupt } = createAsking("a", { kind: "low-confidence" });
    if (!interrupt) throw new Error("nobody was asked");
    expect(step(DOUBTED, { nodeRun: { interrupt } })).toStrictEqual({ kind: "wait" });
  });

  it("counts where people agree, by the newest of their answers", () => {
    const answers = [createAnswer({ action: "reject" }), createAnswer({ action: "accept" })];
    expect(step(DOUBTED, { nodeRun: { answers } })).toStrictEqual({ kind: "complete", outputs: OUTPUTS });
  });

  it("fails the node where people do not agree", () => {
    const answers = [createAnswer({ action: "reject" })];
    expect(step(DOUBTED, { nodeRun: { answers } })).toStrictEqual({
      kind: "fail",
      error: { code: "low_confidence_rejected", message: "the decision was not accepted" },
    });
  });
});
