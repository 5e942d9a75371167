/** RFC 0039, MAE-3: what a fork finds in memory is what was there at its place, and what it wrote since. */
import { describe, expect, test } from "vitest";
import { forkIn, countEvents } from "../support/forks.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const HOUR_MS = 3_600_000;
const write = (id: string, content: string, more: object = {}) =>
  createNode(id, "openclaw.memory.write", { content, ...more });
const read = (id: string) => createNode(id, "openclaw.memory.read", { into: id });
const createGate = (id: string) => createNode(id, "core.clarificationGate");

const DEFINITIONS = [
  createWorkflow("notes", {
    nodes: [write("w1", "one"), createGate("g1"), write("w2", "two"), createGate("g2"), read("seen")],
    edges: chain("w1>g1>w2>g2>seen"),
  }),
  createWorkflow("reads", { nodes: [createGate("g1"), read("seen")], edges: chain("g1>seen") }),
  createWorkflow("fades", {
    nodes: [write("w1", "for an hour", { ttlMs: HOUR_MS }), read("then"), createGate("g1"), read("seen")],
    edges: chain("w1>then>g1>seen"),
  }),
  createWorkflow("child", { nodes: [read("found"), write("w", "of the child")], edges: chain("found>w") }),
  createWorkflow("parent", {
    nodes: [
      write("w1", "of the parent"),
      createGate("g1"),
      createNode("call", "core.subWorkflow", { workflowId: "child", outputMapping: { found: "found" } }),
      read("seen"),
    ],
    edges: chain("w1>g1>call>seen"),
  }),
];

const createScene = (options: SceneOptions = {}) =>
  createWorkflowScene({ definitions: DEFINITIONS, ...options });

async function answerAll(scene: WorkflowScene, runId: string): Promise<void> {
  for (const id of ["g1", "g2"]) await scene.answer(runId, id, { answers: { q1: "x" } });
}

async function listSeen(scene: WorkflowScene, runId: string, name = "seen"): Promise<string[]> {
  const { variables } = (await scene.snapshot(runId)) as unknown as {
    variables: Record<string, readonly { readonly content: string }[]>;
  };
  return (variables[name] ?? []).map(({ content }) => content);
}

describe("a branch", () => {
  test("finds what was there at its place, whatever its source and others wrote later", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("notes", { scopeId: "common" });
    const early = countEvents(scene.ledger, sourceRunId);
    await answerAll(scene, sourceRunId);
    expect(await listSeen(scene, sourceRunId)).toEqual(["two", "one"]);
    await scene.run("child", { scopeId: "common" });
    const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: early });
    await answerAll(scene, runId);
    expect(await listSeen(scene, runId)).toEqual(["two", "one"]);
    const before = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: 1 });
    await answerAll(scene, before);
    expect(await listSeen(scene, before)).toEqual(["two", "one"]);
    expect(scene.payloads(before, "memory.written").map(({ memoryRef }) => memoryRef)).toEqual([
      "common",
      "common",
    ]);
  });

  test("writes what neither its source nor another fork finds", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("notes", { scopeId: "common" });
    const fromSeq = countEvents(scene.ledger, sourceRunId);
    const forks = [1, 2].map(() => forkIn(scene, { sourceRunId, mode: "branch", fromSeq }));
    for (const runId of await Promise.all(forks)) {
      await answerAll(scene, runId);
      expect(await listSeen(scene, runId)).toEqual(["two", "one"]);
    }
    await answerAll(scene, sourceRunId);
    expect(await listSeen(scene, sourceRunId)).toEqual(["two", "one"]);
    const another = await scene.run("reads", { scopeId: "common" });
    await answerAll(scene, another);
    expect(await listSeen(scene, another)).toEqual(["two", "one"]);
    const listed = await scene.host.memory(ALICE, "common", { limit: 10 });
    expect(listed.map(({ content }) => content)).toEqual(["two", "one"]);
  });

  test("finds what its source had found where that has expired since, and not where it reads now", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("fades");
    await scene.clock.advance(2 * HOUR_MS);
    for (const mode of ["branch", "replay"] as const) {
      const fromSeq = countEvents(scene.ledger, sourceRunId);
      const runId = await forkIn(scene, { sourceRunId, mode, fromSeq });
      await answerAll(scene, runId);
      expect([await listSeen(scene, runId, "then"), await listSeen(scene, runId)]).toEqual([
        ["for an hour"],
        [],
      ]);
    }
  });

  test("has children that find what it finds, and write beside its source", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("parent", { scopeId: "common" });
    const fromSeq = countEvents(scene.ledger, sourceRunId);
    await answerAll(scene, sourceRunId);
    expect(await listSeen(scene, sourceRunId)).toEqual(["of the child", "of the parent"]);
    const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
    await answerAll(scene, runId);
    expect(await listSeen(scene, runId, "found")).toEqual(["of the parent"]);
    expect(await listSeen(scene, runId)).toEqual(["of the child", "of the parent"]);
    const listed = await scene.host.memory(ALICE, "common", { limit: 10 });
    expect(listed.map(({ content }) => content)).toEqual(["of the child", "of the parent"]);
    const child = String(scene.payloads(runId, "node.dispatched")[0]?.childRunId);
    const ofChild = await forkIn(scene, { sourceRunId: child, mode: "branch", fromSeq: 2 });
    expect(await listSeen(scene, ofChild, "found")).toEqual(["of the parent"]);
  });
});

describe("a fork of a fork", () => {
  test("finds what its source found at its place, and nothing that came later", async () => {
    const scene = createScene();
    const first = await scene.run("notes", { scopeId: "common" });
    const second = await forkIn(scene, {
      sourceRunId: first,
      mode: "branch",
      fromSeq: countEvents(scene.ledger, first),
    });
    await scene.answer(second, "g1", { answers: { q1: "x" } });
    const place = countEvents(scene.ledger, second);
    const third = await forkIn(scene, { sourceRunId: second, mode: "branch", fromSeq: place });
    const inside = await forkIn(scene, { sourceRunId: second, mode: "branch", fromSeq: 3 });
    const again = await forkIn(scene, { sourceRunId: third, mode: "replay" });
    await answerAll(scene, second);
    await answerAll(scene, first);
    for (const runId of [third, inside, again]) {
      await answerAll(scene, runId);
      expect(await listSeen(scene, runId)).toEqual(["two", "one"]);
    }
    const listOwnMemories = (runId: string) =>
      scene.payloads(runId, "memory.written").map(({ memoryId }) => memoryId);
    expect(listOwnMemories(third)).toEqual(listOwnMemories(second));
    expect(listOwnMemories(inside)).toEqual([`${first}:w1:1:0`, `${inside}:w2:1:0`]);
  });
});

test("a replay keeps nothing that its source kept", async () => {
  const scene = createScene();
  const sourceRunId = await scene.run("notes");
  await answerAll(scene, sourceRunId);
  const kept = scene.ledger.entries.length;
  const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
  expect(scene.payloads(runId, "memory.written")).toEqual(scene.payloads(sourceRunId, "memory.written"));
  expect(scene.ledger.entries.length).toBe(kept);
});
