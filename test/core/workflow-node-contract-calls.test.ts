/** Owns: how a node asks and waits, what the log tells of a call of a model, and the tools that agents have of this host. */
import { describe, expect, it } from "vitest";
import { addMs, createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { BoundTool } from "../../src/agents/coordination/contracts/workflows/agent-events.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  wrapTaskAsInputs,
  chooseCallName,
  findCalledTool,
  NATIVE_TOOLS,
  readMemoryNote,
  readHandoffRequest,
  unwrapTask,
  createAgentWorkflowId,
} from "../../src/agents/coordination/workflow/node-contract/agent-tools.ts";
import { draftModelCall } from "../../src/agents/coordination/workflow/node-contract/model-call.ts";
import type { EffectOutcome } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  draftSuspension,
  createWaitStep,
} from "../../src/agents/coordination/workflow/node-contract/suspension.ts";
import { createView } from "./workflow-node-contract-scene.ts";
import { createOrigin, NOW, RUN } from "./workflow-view-scene.ts";

describe("a node that asks", () => {
  it("is suspended, and tells no more than what is asked where there is no more", () => {
    expect(draftSuspension(createView(), { kind: "approval", data: { title: "t" } })).toStrictEqual([
      {
        type: "node.suspended",
        nodeId: "a",
        payload: { nodeId: "a", interruptId: "a~1", kind: "approval", key: "run-1:a~1" },
      },
      {
        type: "interrupt.requested",
        nodeId: "a",
        payload: { kind: "approval", key: "run-1:a~1", data: { title: "t" } },
      },
    ]);
  });

  it("tells who doubts it, how long it waits and which answers there may be", () => {
    const doubt = { reason: "", agentId: "acme.writer", threshold: 0, observed: 0 };
    const wait = { timeoutMs: 0, resumeSchema: { type: "object" } };
    const [suspended, requested] = draftSuspension(createView(), {
      kind: "low-confidence",
      data: {},
      ...doubt,
      ...wait,
    });
    expect(suspended?.payload).toEqual({
      nodeId: "a",
      interruptId: "a~1",
      kind: "low-confidence",
      key: "run-1:a~1",
      ...doubt,
    });
    expect(requested?.payload).toEqual({ kind: "low-confidence", key: "run-1:a~1", data: {}, ...wait });
  });

  it("gives each question an id of its own, and a key that a replay has too", () => {
    const origin = { ...createOrigin(1), identity: createEventId(RUN, 0).slice(0, 5) as typeof RUN };
    const view = createView({ interrupts: 2 }, { run: { origin } });
    const keys = draftSuspension(view, { kind: "custom", data: {} }).map(({ payload }) => payload);
    const key = `${origin.identity}:a~3`;
    expect(keys).toMatchObject([{ interruptId: "a~3", key }, { key }]);
  });

  it("waits for the answer, where it may until its time is over", () => {
    const eventId = createEventId(RUN, 2);
    const interrupt = {
      interruptId: "a~1",
      kind: "approval",
      key: "k",
      eventId,
      data: {},
      votes: [],
    } as const;
    expect(createWaitStep({ ...interrupt, atMs: NOW })).toStrictEqual({ kind: "wait" });
    expect(createWaitStep({ ...interrupt, atMs: NOW, timeoutMs: 0 })).toStrictEqual({ kind: "wait" });
    expect(createWaitStep({ ...interrupt, atMs: NOW, timeoutMs: 5 })).toStrictEqual({
      kind: "wait",
      atMs: addMs(NOW, 5),
    });
  });
});

describe("what the log tells of a call of a model", () => {
  const request = { provider: "acme", model: "asked-model", digest: "d".repeat(64) };
  const usage = { provider: "acme", inputTokens: 3, outputTokens: 5 };
  const answered = { model: "answering-model", usage };
  const REQUEST: WorkflowDraft = {
    type: "coordination.model_asked",
    nodeId: "a",
    payload: { nodeId: "a", provider: "acme", model: "asked-model", requestDigest: "d".repeat(64) },
  };
  const createUsage = (more: Readonly<Record<string, unknown>> = {}): WorkflowDraft => ({
    type: "provider.usage",
    nodeId: "a",
    payload: {
      provider: "acme",
      model: "answering-model",
      inputTokens: 3,
      outputTokens: 5,
      nodeId: "a",
      ...more,
    },
  });
  const turn = { text: "", calls: [], tokens: 8 };

  it.each<EffectOutcome>([
    { kind: "model_answered", text: "yes", ...answered },
    { kind: "agent_turned", turn, reasoning: "", ...answered },
  ])("is its usage where it answered, behind the request where that is known: $kind", (outcome) => {
    expect(draftModelCall(createView(), outcome)).toEqual([createUsage()]);
    expect(draftModelCall(createView(), { ...outcome, asked: request } as EffectOutcome)).toEqual([
      REQUEST,
      createUsage(),
    ]);
  });

  it("is that it refused, too", () => {
    const outcome: EffectOutcome = { kind: "model_refused", ...answered };
    const refusal = {
      type: "envelope.refusal",
      nodeId: "a",
      payload: { nodeId: "a", provider: "acme", model: "answering-model" },
    };
    expect(draftModelCall(createView(), outcome)).toEqual([createUsage(), refusal]);
    expect(draftModelCall(createView(), { ...outcome, asked: request })).toEqual([
      REQUEST,
      createUsage(),
      refusal,
    ]);
  });

  it("is the usage of each call of a critic", () => {
    const outcome: EffectOutcome = { kind: "child_judged", isSelf: false, judgements: [] };
    expect(draftModelCall(createView(), outcome)).toEqual([]);
    const calls = [answered, { model: "critic", usage: { provider: "acme" } }];
    expect(draftModelCall(createView(), { ...outcome, calls })).toEqual([
      createUsage(),
      createUsage({ model: "critic", inputTokens: 0, outputTokens: 0 }),
    ]);
  });

  it("is the request where it failed", () => {
    const outcome: EffectOutcome = { kind: "failed", error: { code: "broken", message: "it broke" } };
    expect(draftModelCall(createView(), outcome)).toEqual([]);
    expect(draftModelCall(createView(), { ...outcome, asked: request })).toEqual([REQUEST]);
  });

  it("is nothing where no model was called", () => {
    expect(draftModelCall(createView(), { kind: "side_effect_caused", effectId: "e" })).toEqual([]);
  });

  it.each([{}, { provider: "" }, { provider: 7 }])(
    "names a provider where the usage names none: %j",
    (named) => {
      const counted = { ...named, inputTokens: "3", outputTokens: null };
      const outcome: EffectOutcome = { kind: "model_refused", model: "m", usage: counted };
      const provider = "openai-compatible";
      expect(draftModelCall(createView(), outcome).map(({ payload }) => payload)).toEqual([
        { provider, model: "m", inputTokens: 0, outputTokens: 0, nodeId: "a" },
        { provider, model: "m", nodeId: "a" },
      ]);
    },
  );
});

describe("the tools of this host", () => {
  const string = { type: "string" };

  it.each([
    {
      id: "openwop:memory.read",
      description: "Read what you have kept in your memory",
      properties: { tag: string, limit: { type: "integer", minimum: 1 } },
      needsMemory: true,
    },
    {
      id: "openwop:memory.write",
      description: "Keep a text in your memory",
      properties: { content: string, tags: { type: "array", items: string } },
      required: ["content"],
      needsMemory: true,
    },
    {
      id: "openwop:agent.handoff",
      description: "Hand the task over to another agent",
      properties: { toAgentId: string, task: {}, reason: string },
      required: ["toAgentId"],
      needsMemory: false,
    },
  ])("have $id", ({ id, description, properties, required, needsMemory }) => {
    expect(NATIVE_TOOLS).toHaveLength(3);
    expect(NATIVE_TOOLS.find((tool) => tool.id === id)).toEqual({
      id,
      description: expect.stringContaining(description) as string,
      parameters: { type: "object", properties, ...(required && { required }) },
      needsMemory,
    });
  });
});

describe("the name that a model calls a tool by", () => {
  it.each([
    ["mcp:bank.pay", "mcp_bank_pay"],
    ["A-z_09", "A-z_09"],
    ["zahle/ä b", "zahle___b"],
    ["x".repeat(65), "x".repeat(64)],
  ])("has letters, digits, dashes and underscores only, and 64 at most: %s", (id, name) => {
    expect(chooseCallName(id, new Set(["other"]))).toBe(name);
  });

  it("is unlike those of other tools", () => {
    expect(chooseCallName("a.b", new Set(["a_b"]))).toBe("a_b_2");
    expect(chooseCallName("a.b", new Set(["a_b", "a_b_2"]))).toBe("a_b_3");
    const long = "x".repeat(64);
    expect(chooseCallName(`${long}y`, new Set([long]))).toBe(`${"x".repeat(60)}_2`);
  });
});

describe("the tool that a model calls", () => {
  const createTool = (id: string, call: string, more: Partial<BoundTool> = {}): BoundTool => ({
    id,
    call,
    transport: "mcp",
    parameters: {},
    ...more,
  });
  const pay = createTool("mcp:bank/pay", "mcp_bank_pay", { tool: "pay" });
  const look = createTool("mcp:look", "mcp_look");
  const read = createTool("openwop:memory.read", "pay");

  it.each([
    ["mcp_bank_pay", pay],
    ["mcp:bank/pay", pay],
    ["pay", pay],
    ["mcp_look", look],
    ["look", look],
    ["ook", undefined],
    ["bank", undefined],
    ["", undefined],
  ])("is found by %s", (call, tool) => {
    expect(findCalledTool([pay, look], call)).toBe(tool);
  });

  it("is the one with exactly this name before others that end so", () => {
    expect(findCalledTool([pay, read], "pay")).toBe(read);
  });

  it("is none where several may be meant", () => {
    const other = createTool("mcp:other/pay", "mcp_other_pay", { tool: "pay" });
    expect(findCalledTool([pay, look, other], "pay")).toBeUndefined();
    expect(findCalledTool([pay, other], "mcp_other_pay")).toBe(other);
  });
});

describe("a note for the memory", () => {
  it.each([
    ["a text", "a text"],
    ["", ""],
    [{ a: 1 }, '{"a":1}'],
    [7, "7"],
    [false, "false"],
  ])("has as its content %j as a text", (content, text) => {
    expect(readMemoryNote({ content })).toEqual({ content: text, tags: [] });
  });

  it.each([{}, { content: null }, { tags: ["a"] }])("is none without content: %j", (args) => {
    expect(readMemoryNote(args)).toBeUndefined();
  });

  it("has the first twenty tags that are texts", () => {
    const tags = Array.from({ length: 21 }, (_, index) => `tag-${index}`);
    expect(readMemoryNote({ content: "a", tags: [7, "", null, ...tags] })?.tags).toEqual(tags.slice(0, 20));
    expect(readMemoryNote({ content: "a", tags: "tag" })?.tags).toEqual([]);
  });
});

describe("a task that is handed over", () => {
  it("names the agent, and why where that is a text", () => {
    expect(readHandoffRequest({ toAgentId: "b", task: 7 })).toStrictEqual({ toAgentId: "b", task: 7 });
    expect(readHandoffRequest({ toAgentId: "b", reason: 7 })).toStrictEqual({
      toAgentId: "b",
      task: undefined,
    });
    expect(readHandoffRequest({ toAgentId: "b", reason: "x".repeat(1_001) })?.reason).toBe("x".repeat(1_000));
  });

  it.each([{}, { toAgentId: "" }, { toAgentId: 7 }])("goes to nobody where no agent is named: %j", (args) => {
    expect(readHandoffRequest({ ...args, task: "t" })).toBeUndefined();
  });

  it("belongs to a workflow with the short name of its agent", () => {
    expect(createAgentWorkflowId("Acme.Writer")).toBe("agent.acme.writer");
    expect(createAgentWorkflowId("x".repeat(200))).toBe(`agent.${"x".repeat(114)}`);
  });

  it.each([
    [{ goal: "g" }, { goal: "g" }],
    [undefined, {}],
    ["text", { task: "text" }],
    [["a"], { task: ["a"] }],
    [null, { task: null }],
  ])("becomes the inputs of a run: %j", (task, inputs) => {
    expect(wrapTaskAsInputs(task)).toStrictEqual(inputs);
  });

  it.each([
    [{ task: "text" }, "text"],
    [{ task: "text", more: 1 }, undefined],
    [{ other: "text" }, undefined],
    [{}, undefined],
    ["x", undefined],
    [["text"], undefined],
    [undefined, undefined],
  ])("may be meant by what is under its name: %j", (task, inner) => {
    expect(unwrapTask(task)).toBe(inner);
  });
});
