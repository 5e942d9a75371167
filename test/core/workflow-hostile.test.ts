/** Attempts of callers, definitions and peers, and what they must not do. */
import { describe, expect, test } from "vitest";
import {
  decodeWorkflowEvent,
  type ParentRun,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findConditionProblem,
  isConditionHolding,
} from "../../src/agents/coordination/workflow/state/values.ts";
import { readParentHeader } from "../../src/agents/coordination/workflow/parent-header.ts";
import { chain, createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, MALLORY, createWorkflowScene } from "../support/workflow-scene.ts";

function nestLevels(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

const NOOP = createWorkflow("noop", { nodes: [createNode("a")] });
const GATE = createWorkflow("gate", { nodes: [createNode("gate", "core.approvalGate")] });

describe("values at the bounds", () => {
  test("are either refused or readable, at every depth around the bound", async () => {
    const scene = createWorkflowScene({ definitions: [NOOP] });
    for (let levels = 30; levels < 45; levels += 1) {
      const answer = await scene.host.create(ALICE, {
        workflowId: "noop",
        inputs: { a: nestLevels(levels) },
        transport: "rest",
      });
      if (answer.kind === "refused") continue;
      for (const event of scene.events(answer.value.runId))
        expect(() => decodeWorkflowEvent(JSON.parse(JSON.stringify(event)))).not.toThrow();
    }
  });

  test("fail a run whose values take too much in all", async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `n${index}`);
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: ids.map((id) =>
            createNode(
              id,
              "core.identity",
              {},
              { inputs: { port: { type: "variable", variableName: "big" } } },
            ),
          ),
          edges: chain(ids.join(">")),
          variables: { big: undefined },
        }),
      ],
    });
    const runId = await scene.run("w", { inputs: { big: "x".repeat(1_000_000) } });
    expect(await scene.snapshot(runId)).toMatchObject({ status: "failed", error: { code: "run_too_large" } });
  });

  test("of inputs that are sensitive are shown nowhere", async () => {
    const definition = {
      ...NOOP,
      variables: [{ name: "pw", type: "string" as const, sensitive: true }],
    };
    const scene = createWorkflowScene({ definitions: [definition] });
    const runId = await scene.run("noop", { inputs: { pw: "hunter2-secret" } });
    expect(JSON.stringify(await scene.snapshot(runId))).not.toContain("hunter2");
  });

  test("that an object has by nature are not given", async () => {
    const definition = {
      ...NOOP,
      variables: [{ name: "constructor", type: "string" as const, required: true }],
    };
    const scene = createWorkflowScene({
      definitions: [
        definition,
        createWorkflow("asks", {
          nodes: [
            createNode("ask", "core.clarificationGate", {
              questions: [{ id: "constructor", question: "?" }],
            }),
          ],
        }),
      ],
    });
    const answer = await scene.host.create(ALICE, { workflowId: "noop", inputs: {}, transport: "rest" });
    expect(codeOf(answer)).toBe("validation_error");
    const runId = await scene.run("asks");
    expect(codeOf(await scene.answer(runId, "ask", { answers: {} }))).toBe("validation_error");
  });
});

describe("a pattern", () => {
  test("whose automaton is large is a problem of its workflow, and a long text is no match", () => {
    expect(findConditionProblem({ type: "regex", right: "(a{0,30}){0,30}[bc]$" })).toContain("in short time");
    expect(findConditionProblem({ type: "regex", right: "^ok-\\d+$" })).toBeUndefined();
    const condition = { type: "regex", left: "text", right: "z$" } as const;
    expect(isConditionHolding(condition, { text: `${"a".repeat(1_000)}z` })).toBe(true);
    expect(isConditionHolding(condition, { text: `${"a".repeat(5_000)}z` })).toBe(false);
  });
});

describe("a caller that names a parent", () => {
  const create = (parent: ParentRun) =>
    createWorkflowScene({ definitions: [NOOP], settings: { hostId: "host-a" } }).host.create(ALICE, {
      workflowId: "noop",
      inputs: {},
      transport: "rest",
      parent,
    });

  test("on this very host causes nothing over there", async () => {
    const scene = createWorkflowScene({ definitions: [NOOP] });
    const parent = {
      runId: "run-x",
      hostId: "host-a",
      cause: "core.dispatch",
      eventId: "run-x:3",
      wellKnownUrl: "http://127.0.0.1:1/.well-known/openwop",
    } as ParentRun;
    const unknown = await scene.run("noop", { parent });
    expect(await scene.host.ancestry(ALICE, unknown)).toMatchObject({ value: { parent: null } });
    await scene.run("noop", { runId: "run-x" as CoordinationId });
    const runId = await scene.run("noop", { parent });
    const [first] = scene.events(runId);
    expect(first).not.toHaveProperty("causationId");
    expect(first?.payload).not.toHaveProperty("causationHostId");
    expect(await scene.host.ancestry(ALICE, runId)).toEqual({
      kind: "done",
      value: {
        runId,
        hostId: "host-a",
        parent: { runId: "run-x", hostId: "host-a", cause: "core.dispatch" },
      },
    });
  });

  test("too deep in others is refused, so that hosts that call one another come to an end", async () => {
    const createParent = (depth: number): ParentRun => ({
      runId: "run-x",
      hostId: "host-b",
      cause: "core.dispatch",
      depth,
      wellKnownUrl: "http://127.0.0.1:2/.well-known/openwop",
    });
    expect(codeOf(await create(createParent(15)))).toBe("done");
    expect(codeOf(await create(createParent(16)))).toBe("validation_error");
  });

  test("by an event id that no log could hold is not believed", () => {
    const createHeader = (eventId: string): string =>
      JSON.stringify({ runId: "x", hostId: "h", cause: "core.dispatch", wellKnownUrl: "http://x/", eventId });
    expect(readParentHeader(createHeader("e".repeat(100)))).toBeDefined();
    expect(readParentHeader(createHeader("e".repeat(200)))).toBeUndefined();
  });
});

describe("a peer", () => {
  const createEndingPeer = (runId: string) => ({
    createRun: () => Promise.resolve({ kind: "created" as const, runId, status: "running" as const }),
    awaitEnd: (_url: string, _runId: string, signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
      }),
    cancel: () => Promise.resolve({ kind: "cancelling" as const, status: "cancelled" as const }),
  });

  test("that calls its run by the name of one here gets no hold of that one", async () => {
    const peers = { ...createEndingPeer("run-victim") };
    const scene = createWorkflowScene({
      definitions: [
        GATE,
        createWorkflow("calls", {
          nodes: [
            createNode("sub", "core.subWorkflow", { workflowId: "any", peerUrl: "https://peer.example" }),
          ],
        }),
      ],
      peers,
    });
    await scene.run("gate", { runId: "run-victim" as CoordinationId });
    const runId = await scene.run("calls");
    expect(await scene.snapshot(runId)).not.toHaveProperty("childRuns");
    expect(await scene.status(runId)).toBe("running");
    await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(await scene.status("run-victim")).toBe("waiting-approval");
  });

  test("that is this host itself is refused", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("loop", {
          nodes: [
            createNode("sub", "core.subWorkflow", { workflowId: "loop", peerUrl: "http://127.0.0.1:1/" }),
          ],
        }),
      ],
      peers: {
        ...createEndingPeer("run-other"),
        discover: (url) => Promise.resolve({ kind: "host", hostId: "host-a", wellKnownUrl: url }),
      },
    });
    const runId = await scene.run("loop");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "peer_is_this_host" },
    });
  });

  test("is not named by what came back from a child", async () => {
    const requests: string[] = [];
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("child", { nodes: [createNode("a")], variables: { out: "https://evil.example" } }),
        createWorkflow("w", {
          nodes: [
            createNode("first", "core.subWorkflow", {
              workflowId: "child",
              outputMapping: { peerUrl: "out" },
            }),
            createNode("second", "core.subWorkflow", { workflowId: "child" }),
          ],
          edges: [createEdge("first>second")],
        }),
      ],
      peers: {
        createRun: (url) => {
          requests.push(url);
          return Promise.resolve({ kind: "refused", code: "rejected", message: "no" });
        },
      },
    });
    const runId = await scene.run("w");
    expect(requests).toEqual([]);
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("a workflow that a tenant registers under the operator's name", () => {
  test("is the own tenant's, and nobody else's", async () => {
    const scene = createWorkflowScene({ definitions: [NOOP] });
    const ownWorkflow = { workflowId: "noop", nodes: [{ nodeId: "mine", typeId: "core.noop" }] };
    expect(codeOf(await scene.host.register(ALICE, ownWorkflow))).toBe("done");
    const runAndListTypes = async (caller: typeof ALICE): Promise<unknown> => {
      const runId = await scene.run("noop", {}, caller);
      return scene.payloads(runId, "node.started").map(({ nodeId }) => nodeId);
    };
    expect(await runAndListTypes(ALICE)).toEqual(["mine"]);
    expect(await runAndListTypes(MALLORY)).toEqual(["a"]);
  });
});

describe("a node that cannot cope with what it was given", () => {
  test.each([
    ["openclaw.memory.write", { content: "x", ttlMs: 1e16 }],
    ["openclaw.memory.write", { content: "x", tags: [{ toString: 1, valueOf: 1 }] }],
    ["core.identity", { memoryAction: { toString: 1, valueOf: 1 } }],
  ])("%s %j fails, and its run with it", async (typeId, config) => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("n", typeId, config)] })],
    });
    const runId = await scene.run("w");
    expect(await scene.status(runId)).toBe("failed");
  });

  test("does not take a clarification's ids for texts", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("asks", {
          nodes: [createNode("ask", "core.clarificationGate", { questions: [{ id: "q", question: "?" }] })],
        }),
      ],
    });
    const runId = await scene.run("asks");
    const answers = [{ id: { toString: 1, valueOf: 1 }, answer: 1 }];
    expect(codeOf(await scene.answer(runId, "ask", { answers }))).toBe("validation_error");
  });
});

describe("a signed token", () => {
  test("is there for a gate beside a node that works", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createNode("gate", "core.approvalGate"), createNode("wait", "core.delay", { ms: 9_000 })],
        }),
      ],
    });
    const runId = await scene.run("w");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "running",
      interrupt: { nodeId: "gate", interruptToken: expect.any(String) as string },
    });
  });
});
