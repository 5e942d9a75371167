/** RFC 0039, MAE-3: what a fork finds in memory is what was there at its place, and what it wrote since. */
import { describe, expect, test } from "vitest";
import { forkIn, lengthIn } from "../support/forks.ts";
import { chain, node, workflow } from "../support/workflow-definitions.ts";
import { ALICE, workflowScene, type SceneOptions, type WorkflowScene } from "../support/workflow-scene.ts";

const HOUR_MS = 3_600_000;
const write = (id: string, content: string, more: object = {}) =>
  node(id, "openclaw.memory.write", { content, ...more });
const read = (id: string) => node(id, "openclaw.memory.read", { into: id });
const gate = (id: string) => node(id, "core.clarificationGate");

const DEFINITIONS = [
  workflow("notes", {
    nodes: [write("w1", "one"), gate("g1"), write("w2", "two"), gate("g2"), read("seen")],
    edges: chain("w1>g1>w2>g2>seen"),
  }),
  workflow("reads", { nodes: [gate("g1"), read("seen")], edges: chain("g1>seen") }),
  workflow("fades", {
    nodes: [write("w1", "for an hour", { ttlMs: HOUR_MS }), read("then"), gate("g1"), read("seen")],
    edges: chain("w1>then>g1>seen"),
  }),
  workflow("child", { nodes: [read("found"), write("w", "of the child")], edges: chain("found>w") }),
  workflow("parent", {
    nodes: [
      write("w1", "of the parent"),
      gate("g1"),
      node("call", "core.subWorkflow", { workflowId: "child", outputMapping: { found: "found" } }),
      read("seen"),
    ],
    edges: chain("w1>g1>call>seen"),
  }),
];

const scene = (options: SceneOptions = {}) => workflowScene({ definitions: DEFINITIONS, ...options });

async function answerAll(it: WorkflowScene, runId: string): Promise<void> {
  for (const id of ["g1", "g2"]) await it.answer(runId, id, { answers: { q1: "x" } });
}

async function seen(it: WorkflowScene, runId: string, name = "seen"): Promise<string[]> {
  const { variables } = (await it.snapshot(runId)) as unknown as {
    variables: Record<string, readonly { readonly content: string }[]>;
  };
  return (variables[name] ?? []).map(({ content }) => content);
}

describe("a branch", () => {
  test("finds what was there at its place, whatever its source and others wrote later", async () => {
    const it = scene();
    const sourceRunId = await it.run("notes", { scopeId: "common" });
    const early = lengthIn(it.ledger, sourceRunId);
    await answerAll(it, sourceRunId);
    expect(await seen(it, sourceRunId)).toEqual(["two", "one"]);
    await it.run("child", { scopeId: "common" });
    const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq: early });
    await answerAll(it, runId);
    expect(await seen(it, runId)).toEqual(["two", "one"]);
    const before = await forkIn(it, { sourceRunId, mode: "branch", fromSeq: 1 });
    await answerAll(it, before);
    expect(await seen(it, before)).toEqual(["two", "one"]);
    expect(it.payloads(before, "memory.written").map(({ memoryRef }) => memoryRef)).toEqual([
      "common",
      "common",
    ]);
  });

  test("writes what neither its source nor another fork finds", async () => {
    const it = scene();
    const sourceRunId = await it.run("notes", { scopeId: "common" });
    const fromSeq = lengthIn(it.ledger, sourceRunId);
    const forks = [1, 2].map(() => forkIn(it, { sourceRunId, mode: "branch", fromSeq }));
    for (const runId of await Promise.all(forks)) {
      await answerAll(it, runId);
      expect(await seen(it, runId)).toEqual(["two", "one"]);
    }
    await answerAll(it, sourceRunId);
    expect(await seen(it, sourceRunId)).toEqual(["two", "one"]);
    const another = await it.run("reads", { scopeId: "common" });
    await answerAll(it, another);
    expect(await seen(it, another)).toEqual(["two", "one"]);
    const listed = await it.host.memory(ALICE, "common", { limit: 10 });
    expect(listed.map(({ content }) => content)).toEqual(["two", "one"]);
  });

  test("finds what its source had found where that has expired since, and not where it reads now", async () => {
    const it = scene();
    const sourceRunId = await it.run("fades");
    await it.clock.advance(2 * HOUR_MS);
    for (const mode of ["branch", "replay"] as const) {
      const fromSeq = lengthIn(it.ledger, sourceRunId);
      const runId = await forkIn(it, { sourceRunId, mode, fromSeq });
      await answerAll(it, runId);
      expect([await seen(it, runId, "then"), await seen(it, runId)]).toEqual([["for an hour"], []]);
    }
  });

  test("has children that find what it finds, and write beside its source", async () => {
    const it = scene();
    const sourceRunId = await it.run("parent", { scopeId: "common" });
    const fromSeq = lengthIn(it.ledger, sourceRunId);
    await answerAll(it, sourceRunId);
    expect(await seen(it, sourceRunId)).toEqual(["of the child", "of the parent"]);
    const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq });
    await answerAll(it, runId);
    expect(await seen(it, runId, "found")).toEqual(["of the parent"]);
    expect(await seen(it, runId)).toEqual(["of the child", "of the parent"]);
    const listed = await it.host.memory(ALICE, "common", { limit: 10 });
    expect(listed.map(({ content }) => content)).toEqual(["of the child", "of the parent"]);
    const child = String(it.payloads(runId, "node.dispatched")[0]?.childRunId);
    const ofChild = await forkIn(it, { sourceRunId: child, mode: "branch", fromSeq: 2 });
    expect(await seen(it, ofChild, "found")).toEqual(["of the parent"]);
  });
});

describe("a fork of a fork", () => {
  test("finds what its source found at its place, and nothing that came later", async () => {
    const it = scene();
    const first = await it.run("notes", { scopeId: "common" });
    const second = await forkIn(it, {
      sourceRunId: first,
      mode: "branch",
      fromSeq: lengthIn(it.ledger, first),
    });
    await it.answer(second, "g1", { answers: { q1: "x" } });
    const place = lengthIn(it.ledger, second);
    const third = await forkIn(it, { sourceRunId: second, mode: "branch", fromSeq: place });
    const inside = await forkIn(it, { sourceRunId: second, mode: "branch", fromSeq: 3 });
    const again = await forkIn(it, { sourceRunId: third, mode: "replay" });
    await answerAll(it, second);
    await answerAll(it, first);
    for (const runId of [third, inside, again]) {
      await answerAll(it, runId);
      expect(await seen(it, runId)).toEqual(["two", "one"]);
    }
    const own = (runId: string) => it.payloads(runId, "memory.written").map(({ memoryId }) => memoryId);
    expect(own(third)).toEqual(own(second));
    expect(own(inside)).toEqual([`${first}:w1:1:0`, `${inside}:w2:1:0`]);
  });
});

test("a replay keeps nothing that its source kept", async () => {
  const it = scene();
  const sourceRunId = await it.run("notes");
  await answerAll(it, sourceRunId);
  const kept = it.ledger.entries.length;
  const runId = await forkIn(it, { sourceRunId, mode: "replay" });
  expect(it.payloads(runId, "memory.written")).toEqual(it.payloads(sourceRunId, "memory.written"));
  expect(it.ledger.entries.length).toBe(kept);
});
