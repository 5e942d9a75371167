/** Owns: that an agent's invocation goes on from its log, wherever its process dies (I1 to I3 of `invocation.ts`). */
import { describe, expect, test } from "vitest";
import {
  readInstalledAgent,
  type InstalledAgent,
} from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import type { ChatModel, ChatRequest, ToolCaller } from "../../src/agents/coordination/ports/outbound.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { checkLog, finish, hasEnded } from "../support/workflow-plays.ts";
import {
  ALICE,
  listEvents,
  MALLORY,
  valueOf,
  createWorkflowScene,
  type AppendFaults,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

function installAgent(agentId: string, more: object = {}): InstalledAgent {
  const systemPrompt = "Dig.";
  const manifest = { agentId, persona: "Digger", modelClass: "general", systemPrompt, ...more };
  const parsed = readInstalledAgent({ manifest, systemPrompt, packName: "p", packVersion: "1.0.0" });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

const AGENTS = [
  installAgent("vendor.crash.first", {
    toolAllowlist: ["mcp:measure", "openwop:memory.write", "openwop:agent.handoff"],
    memoryShape: { longTerm: true },
  }),
  installAgent("vendor.crash.second", { confidence: { defaultThreshold: 0.9 } }),
];

interface World {
  readonly ledger: MemoryWorkflowLedger;
  readonly clock: FakeClock;
  /** Ids of the calls that reached the tool, in order. */
  readonly calls: string[];
  /** Turns that the model was asked for, by agent and number, in order. */
  readonly asked: string[];
}

const createWorld = (): World => ({
  ledger: createMemoryWorkflowLedger(),
  clock: createFakeClock(),
  calls: [],
  asked: [],
});

/** The model's answer follows from its request alone. */
function createModel(world: World): ChatModel {
  const turns = [
    {
      text: "let me see",
      toolCalls: [
        { name: "mcp_measure", args: { at: 1 } },
        { name: "mcp_measure", args: { at: 2 } },
      ],
    },
    { text: "", toolCalls: [{ name: "openwop_memory_write", args: { content: "deep" } }] },
    { text: "", toolCalls: [{ name: "openwop_agent_handoff", args: { toAgentId: "vendor.crash.second" } }] },
  ];
  const complete = ({ messages, tools = [] }: ChatRequest) => {
    const count = messages.filter(({ role }) => role === "assistant").length;
    world.asked.push(`${tools.length > 0 ? "first" : "second"} ${count + 1}`);
    const turn = tools.length > 0 ? turns[count] : { text: '{"result":"dug","confidence":0.5}' };
    const always = { kind: "answered", finishReason: "stop", model: "m", provider: "p", usage: {} } as const;
    return Promise.resolve({ ...always, text: "done", ...turn });
  };
  return { complete, target: () => ({ provider: "p", model: "m" }) };
}

function createTools(world: World): Partial<ToolCaller> {
  return {
    listMcp: () =>
      Promise.resolve({ kind: "listed", tools: [{ name: "measure", inputSchema: { type: "object" } }] }),
    callMcp: ({ callId = "" }) => {
      world.calls.push(callId);
      return Promise.resolve({ kind: "answered", ok: true, content: [], text: "three metres" });
    },
  };
}

function startHost(world: World, pid: number, faults?: AppendFaults): WorkflowScene {
  return createWorkflowScene({
    ledger: world.ledger,
    clock: world.clock,
    pid,
    chat: createModel(world),
    tools: createTools(world),
    ...(faults && { faults }),
    agents: { installed: AGENTS, mcpServers: { well: "https://tools.example/mcp" } },
  });
}

async function begin(scene: WorkflowScene): Promise<void> {
  const agent = { agentId: "vendor.crash.first", source: "run-api" } as const;
  const request = { workflowId: "", agent, inputs: { where: "here" }, transport: "rest" } as const;
  await scene.host.create(ALICE, request).catch(() => undefined);
  await scene.settle();
}

/** The types of all events, run by run, without those that tell of a process. */
function storyOf({ ledger }: World): string[][] {
  const stories = [...ledger.runs.keys()].map((runId) =>
    listEvents(ledger, runId)
      .map(({ type }) => type)
      .filter((type) => type !== "run.resuming"),
  );
  return stories.toSorted((one, other) => other.length - one.length);
}

interface CountedFaults extends AppendFaults {
  count: number;
}

function createFaultAt(k: number, when: "before" | "after", fail: () => void): CountedFaults {
  const faults: CountedFaults = {
    count: 0,
    before: () => {
      faults.count += 1;
      if (when === "before" && faults.count === k) fail();
    },
    after: () => {
      if (when === "after" && faults.count === k) fail();
    },
  };
  return faults;
}

async function runUndisturbed(): Promise<{ readonly story: string[][]; readonly appends: number }> {
  const world = createWorld();
  const faults = createFaultAt(0, "before", () => undefined);
  const scene = startHost(world, 1, faults);
  await scene.host.start();
  await begin(scene);
  await finish(scene);
  return { story: storyOf(world), appends: faults.count };
}

const AGENT_EVENTS = [
  "agent.invocation.started",
  "agent.promptResolved",
  "agent.reasoned",
  "agent.decided",
  "agent.handoff",
];

function check({ ledger, calls }: World, story: readonly (readonly string[])[]): void {
  expect(storyOf({ ledger } as World)).toEqual(story);
  for (const runId of ledger.runs.keys()) {
    const events = listEvents(ledger, runId);
    checkLog(events);
    expect(hasEnded(ledger, runId), `${runId} reached its end`).toBe(true);
    for (const type of AGENT_EVENTS)
      expect(events.filter((event) => event.type === type).length, type).toBeLessThanOrEqual(1);
    expect(events.filter(({ type }) => type === "agent.invocation.completed")).toHaveLength(1);
  }
  // One that was made and not recorded is made again with its own id, and no other is.
  expect(new Set(calls).size).toBe(2);
  expect(calls.length).toBeLessThanOrEqual(3);
}

describe("an invocation with calls, memory, a handoff and a doubt", () => {
  test("does each of them once", async () => {
    const { story } = await runUndisturbed();
    const [first = [], second = []] = story;
    expect(story).toHaveLength(2);
    const count = (type: string, types: readonly string[]): number =>
      types.filter((each) => each === type).length;
    expect(count("agent.toolReturned", first)).toBe(4);
    expect(count("memory.written", first)).toBe(1);
    expect(count("agent.handoff", first)).toBe(1);
    expect(count("node.suspended", second)).toBe(1);
  });

  test.each(["before", "after"] as const)(
    "whose process dies %s any append goes on with the next process, as if nothing had been",
    async (when) => {
      const { story, appends } = await runUndisturbed();
      expect(appends).toBeGreaterThan(10);
      for (let k = 1; k <= appends; k += 1) {
        const world = createWorld();
        const first: WorkflowScene = startHost(
          world,
          1,
          createFaultAt(k, when, () => first.die()),
        );
        await first.host.start();
        await begin(first);
        await finish(first);
        const second = startHost(world, 2);
        await second.host.start();
        await finish(second);
        if (world.ledger.runs.size > 0) check(world, story);
      }
    },
  );

  test("never asks the model again for a turn whose answer was recorded", async () => {
    const { appends } = await runUndisturbed();
    let previousCount = 0;
    for (let k = 2; k <= appends; k += 1) {
      const world = createWorld();
      const first: WorkflowScene = startHost(
        world,
        1,
        createFaultAt(k, "after", () => first.die()),
      );
      await begin(first);
      await finish(first);
      const recorded = [...world.ledger.runs.keys()].flatMap((runId) =>
        first
          .payloads(runId, "coordination.agent_turned")
          .map(
            ({ turn }) =>
              `${first.payloads(runId, "agent.invocation.started")[0]?.agentId.split(".")[2]} ${turn}`,
          ),
      );
      world.asked.length = 0;
      const second = startHost(world, 2);
      await second.host.start();
      await finish(second);
      previousCount += recorded.length;
      expect(
        world.asked.filter((turn) => recorded.includes(turn)),
        `after append ${k}`,
      ).toEqual([]);
    }
    expect(previousCount).toBeGreaterThan(appends);
  });

  test("keeps what it kept in memory once, wherever its process died", async () => {
    const { appends } = await runUndisturbed();
    for (let k = 2; k <= appends; k += 1) {
      const world = createWorld();
      const first: WorkflowScene = startHost(
        world,
        1,
        createFaultAt(k, "after", () => first.die()),
      );
      await begin(first);
      await finish(first);
      const second = startHost(world, 2);
      await second.host.start();
      await finish(second);
      const kept = await second.host.memory(ALICE, "agent:vendor.crash.first", { limit: 10 });
      expect(kept.map(({ content }) => content)).toEqual(["deep"]);
    }
  });
});

test("a run keeps the agent that it began with, whatever is installed when its next process comes", async () => {
  const world = createWorld();
  const first: WorkflowScene = startHost(
    world,
    1,
    createFaultAt(1, "after", () => first.die()),
  );
  await begin(first);
  const second = createWorkflowScene({
    ledger: world.ledger,
    clock: world.clock,
    pid: 2,
    chat: createModel(world),
    tools: createTools(world),
    agents: {
      installed: [installAgent("vendor.crash.second")],
      mcpServers: { well: "https://tools.example/mcp" },
    },
  });
  await second.host.start();
  await finish(second);
  const [runId = ""] = world.ledger.runs.keys();
  expect(second.types(runId)).toContain("agent.handoff");
  expect(second.payloads(runId, "agent.invocation.started")[0]?.agentId).toBe("vendor.crash.first");
});

describe("running an agent from within the process", () => {
  const source = "chat-mention";
  const request = { agentId: "vendor.crash.second", source, inputs: { text: "dig" } } as const;

  test("is the run of every other entry point, told as a mention, and waits where people are asked", async () => {
    const world = createWorld();
    const scene = startHost(world, 1);
    const running = scene.host.runAgent(ALICE, request, new AbortController().signal);
    await scene.settle();
    const { runId, snapshot } = valueOf(await running);
    expect(snapshot.status).toBe("waiting-approval");
    const [started] = scene.payloads(runId, "agent.invocation.started");
    expect(started?.source).toBe(source);
    expect(scene.types(runId).filter((type) => type.startsWith("agent."))).toEqual([
      ...["agent.invocation.started", "agent.promptResolved", "agent.reasoned", "agent.decided"],
      "agent.invocation.completed",
    ]);
    const other = await scene.host.snapshot(MALLORY, runId);
    expect(other.kind).toBe("refused");
  });

  test("refuses an agent that is not installed", async () => {
    const scene = startHost(createWorld(), 1);
    const { signal } = new AbortController();
    const refused = await scene.host.runAgent(ALICE, { ...request, agentId: "vendor.crash.nobody" }, signal);
    expect(refused).toMatchObject({ kind: "refused", code: "workflow_not_found" });
  });

  test("stops waiting when nobody waits any more, and lets the run go on", async () => {
    const world = createWorld();
    const scene = createWorkflowScene({
      ledger: world.ledger,
      clock: world.clock,
      agents: { installed: AGENTS },
      chat: { complete: () => new Promise(() => undefined) },
    });
    const waiting = new AbortController();
    const running = scene.host.runAgent(ALICE, request, waiting.signal);
    await scene.settle();
    waiting.abort();
    expect(valueOf(await running).snapshot.status).toBe("running");
  });
});

test("a node that is tried again is another invocation, and the one that failed is closed before it", async () => {
  const world = createWorld();
  let requestCount = 0;
  const definition = createWorkflow("tries-again", {
    nodes: [{ ...createNode("work"), agent: { agentId: "vendor.crash.second" } }],
    settings: { maxRetries: 1 },
  });
  const scene = createWorkflowScene({
    ledger: world.ledger,
    clock: world.clock,
    definitions: [definition],
    agents: { installed: AGENTS },
    chat: {
      complete: () =>
        Promise.resolve(
          (requestCount += 1) === 1
            ? { kind: "unknown", code: "unavailable", message: "later" }
            : { kind: "answered", text: "done", finishReason: "stop", model: "m", provider: "p", usage: {} },
        ),
    },
  });
  const runId = await scene.run("tries-again");
  expect(
    scene
      .payloads(runId, "agent.invocation.completed")
      .map(({ invocationId, outcome }) => [invocationId, outcome]),
  ).toEqual([
    ["work:1", "failed"],
    ["work:2", "completed"],
  ]);
  const types = scene.types(runId).filter((type) => /^(agent\.invocation|node\.)/u.test(type));
  expect(types).toEqual([
    ...["node.started", "agent.invocation.started", "agent.invocation.completed", "node.retried"],
    ...["node.started", "agent.invocation.started", "agent.invocation.completed", "node.completed"],
  ]);
});
