import { describe, expect, test } from "vitest";
import type { MemoryEntry } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import {
  ALICE,
  codeOf,
  MALLORY,
  createWorkflowScene,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const write = (config: Readonly<Record<string, unknown>>) =>
  createNode("write", "openclaw.memory.write", config);
const AGENT = { agent: { agentId: "agent-a", memoryRef: "shared" } };
const keeper = createWorkflow("keeper", {
  nodes: [write({ content: "kept", tags: ["t"], ttlMs: 3_600_000 })],
});

function listEntries(scene: WorkflowScene, scope: string, caller = ALICE): Promise<readonly MemoryEntry[]> {
  return scene.host.memory(caller, scope, { limit: 100 });
}

describe("what a run keeps in memory", () => {
  test("is told of without its content, and lies in the run's own scope", async () => {
    const scene = createWorkflowScene({ definitions: [keeper] });
    const runId = await scene.run("keeper");
    expect(scene.payloads(runId, "memory.written")).toEqual([
      { memoryRef: runId, memoryId: `${runId}:write:1:0`, nodeId: "write", tags: ["t"] },
    ]);
    expect(await listEntries(scene, runId)).toMatchObject([{ content: "kept", tags: ["t"] }]);
    expect(JSON.stringify(scene.events(runId).filter(({ type }) => type === "memory.written"))).not.toContain(
      '"kept"',
    );
  });

  test("is another tenant's under no name", async () => {
    const scene = createWorkflowScene({ definitions: [keeper] });
    await scene.run("keeper", { scopeId: "shared" });
    await scene.run("keeper", { scopeId: "shared" }, MALLORY);
    expect(await listEntries(scene, "shared")).toHaveLength(1);
    expect(await listEntries(scene, "shared", MALLORY)).toHaveLength(1);
    expect(await listEntries(scene, "nowhere")).toEqual([]);
  });

  test("is read by what comes behind it, into a variable", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [write({ content: { a: 1 } }), createNode("read", "openclaw.memory.read", { into: "seen" })],
          edges: [createEdge("write>read")],
        }),
      ],
    });
    const { variables } = (await scene.snapshot(await scene.run("w"))) as unknown as {
      variables: { seen: MemoryEntry[] };
    };
    expect(variables.seen.map(({ content }) => content)).toEqual(['{"a":1}']);
  });

  test("expires when its time is over, counted from when it was written", async () => {
    const late = createWorkflow("late", {
      nodes: [
        createNode("wait", "core.delay", { delayMs: 10_000 }),
        write({ content: "kept", ttlMs: 3_600_000 }),
      ],
      edges: [createEdge("wait>write")],
    });
    const scene = createWorkflowScene({
      definitions: [late, createSupervised("loop", [sendNextWorker("late"), TERMINATE])],
    });
    const begunAt = scene.clock.now();
    const runId = await scene.run("loop");
    await scene.clock.advance(10_000);
    const [entry] = await listEntries(scene, runId);
    expect(entry?.createdAt).toBe(new Date(begunAt + 10_000).toISOString());
    expect(entry?.expiresAt).toBe(new Date(begunAt + 3_610_000).toISOString());
    await scene.clock.advance(3_600_000 - 1);
    expect(await listEntries(scene, runId)).toHaveLength(1);
    await scene.clock.advance(1);
    expect(await listEntries(scene, runId)).toEqual([]);
  });

  test("by a child is the parent's, unless the child is isolated", async () => {
    const createLoop = (id: string, more: object) =>
      createSupervised(id, [sendNextWorker("keeper"), TERMINATE], { dispatch: { ...more } });
    const scene = createWorkflowScene({
      definitions: [
        keeper,
        createLoop("shares", {}),
        createLoop("keeps-apart", { memoryScopeIsolation: "isolated" }),
      ],
    });
    const shares = await scene.run("shares");
    expect(await listEntries(scene, shares)).toHaveLength(1);
    const apart = await scene.run("keeps-apart");
    expect(await listEntries(scene, apart)).toEqual([]);
    const childRunId = scene.payloads(apart, "node.dispatched")[0]?.childRunId ?? "";
    const { memoryRef = "" } = scene.payloads(childRunId, "memory.written")[0] ?? {};
    expect(memoryRef).not.toBe(apart);
    expect(await listEntries(scene, memoryRef)).toHaveLength(1);
  });

  test("by an isolated child is in the child's own scope, whatever memory its nodes name", async () => {
    const createNamed = (id: string) => [
      createNode(`${id}1`, "openclaw.memory.write", { content: `${id} config`, memoryRef: "shared" }),
      createNode(`${id}2`, "openclaw.memory.write", { content: `${id} agent` }, AGENT),
    ];
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("inner", { nodes: createNamed("inner") }),
        createWorkflow("outer", {
          nodes: [...createNamed("outer"), createNode("call", "core.subWorkflow", { workflowId: "inner" })],
          edges: [createEdge("outer1>outer2"), createEdge("outer2>call")],
        }),
        createSupervised("loop", [sendNextWorker("outer"), TERMINATE], {
          dispatch: { memoryScopeIsolation: "isolated" },
        }),
      ],
    });
    const runId = await scene.run("loop");
    expect(await scene.status(runId)).toBe("completed");
    expect(await listEntries(scene, "shared")).toEqual([]);
    const outer = scene.payloads(runId, "node.dispatched")[0]?.childRunId ?? "";
    const scope = scene.payloads(outer, "run.started")[0]?.memoryScope ?? "";
    expect((await listEntries(scene, scope)).map(({ content }) => content).toSorted()).toEqual([
      "inner agent",
      "inner config",
      "outer agent",
      "outer config",
    ]);
  });

  test("in a scope that is named is not read by an isolated child that names it", async () => {
    const createReader = (memoryScopeIsolation: string) =>
      createNode(memoryScopeIsolation, "core.subWorkflow", {
        workflowId: "reads",
        memoryScopeIsolation,
        outputMapping: { [memoryScopeIsolation]: "seen" },
      });
    const reads = createNode("read", "openclaw.memory.read", { into: "seen" }, AGENT);
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("reads", { nodes: [reads] }),
        createWorkflow("w", {
          nodes: [
            createNode("write", "openclaw.memory.write", { content: "kept" }, AGENT),
            createReader("inherit"),
            createReader("isolated"),
          ],
          edges: [createEdge("write>inherit"), createEdge("inherit>isolated")],
        }),
      ],
    });
    expect((await scene.snapshot(await scene.run("w")))["variables"]).toMatchObject({
      inherit: [{ content: "kept" }],
      isolated: [],
    });
  });

  test("holds no secret, the longer one of two that overlap first", async () => {
    const secrets = new Map([
      ["short", "hunter22"],
      ["long", "hunter22-and-more"],
      ["tiny", "abc"],
    ]);
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [write({ content: "hunter22-and-more, hunter22, {{secret:long}} {{secret:tiny}} abc" })],
        }),
      ],
      secrets,
    });
    const runId = await scene.run("w");
    expect((await listEntries(scene, runId))[0]?.content).toBe(
      "[REDACTED:long], [REDACTED:short], [REDACTED:long] {{secret:tiny}} abc",
    );
    expect(JSON.stringify([...scene.ledger.entries])).not.toContain("hunter22");
  });

  test("is refused where it is larger than an entry may be, or where there is none", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("large", { nodes: [write({ content: "€".repeat(30_000) })] }),
        createWorkflow("none", { nodes: [write({})] }),
      ],
    });
    expect(await scene.snapshot(await scene.run("large"))).toMatchObject({
      error: { code: "memory_entry_too_large" },
    });
    expect(await scene.snapshot(await scene.run("none"))).toMatchObject({
      error: { code: "memory_content_missing" },
    });
  });
});

describe("a probe of the protocol's suite", () => {
  const probe = (memoryAction: string, more = {}) =>
    createWorkflow("probe", {
      nodes: [
        createNode(
          "p",
          "core.identity",
          { memoryAction, ...more },
          { agent: { agentId: "prober", memoryRef: "ref" } },
        ),
      ],
    });

  async function variablesOf(memoryAction: string, more = {}): Promise<Record<string, unknown>> {
    const scene = createWorkflowScene({
      definitions: [probe(memoryAction, more)],
      secrets: new Map([["key", "a-very-secret-text"]]),
    });
    const runId = await scene.run("probe");
    return (await scene.snapshot(runId))["variables"] as Record<string, unknown>;
  }

  test("reads back what it wrote", async () => {
    expect((await variablesOf("write-then-read"))["memoryReadback"]).toMatchObject({ tags: ["probe"] });
  });

  test("does not see what has expired", async () => {
    const { freshId, expiredId, memoryList } = await variablesOf("ttl-probe");
    const ids = (memoryList as MemoryEntry[]).map(({ id }) => id);
    expect(ids).toContain(freshId);
    expect(ids).not.toContain(expiredId);
  });

  test("sees nothing of another tenant's", async () => {
    const found = await variablesOf("cross-tenant-probe", { probeMemoryRef: "theirs" });
    expect(found["crossTenantProbe"]).toEqual([]);
    expect(found["ownerProbe"]).toMatchObject([{ id: found["ownerEntryId"] }]);
  });

  test("reads no secret back", async () => {
    const { memoryReadback } = await variablesOf("redaction-probe", { byokSecretId: "key" });
    expect((memoryReadback as MemoryEntry).content).toContain("[REDACTED:key]");
    expect(JSON.stringify(memoryReadback)).not.toContain("a-very-secret-text");
  });

  test("that nobody knows fails and is not passed through", async () => {
    const scene = createWorkflowScene({ definitions: [probe("forget-everything")] });
    expect(await scene.snapshot(await scene.run("probe"))).toMatchObject({
      error: { code: "memory_action_unknown" },
    });
  });
});

test("a run of a workflow that a tenant registered is that tenant's only", async () => {
  const scene = createWorkflowScene();
  const definition = createWorkflow("own", { nodes: [createNode("a")] });
  expect(codeOf(await scene.host.register(ALICE, definition))).toBe("done");
  expect(await scene.status(await scene.run("own"))).toBe("completed");
  expect(codeOf(await scene.host.workflow(MALLORY, "own"))).toBe("not_found");
  const theirs = await scene.host.create(MALLORY, { workflowId: "own", inputs: {}, transport: "rest" });
  expect(codeOf(theirs)).toBe("workflow_not_found");
});
