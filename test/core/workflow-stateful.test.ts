import { describe, expect, test } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import { TURN_FILES } from "../../src/agents/coordination/workflow/node-contract/turn-inputs.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { goOn, liveLoopOf, createLiveModel, over, type LiveModel } from "../support/stateful-scene.ts";
import {
  chain,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import {
  ALICE,
  MALLORY,
  valueOf,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const writer = createWorkflow("writer", {
  nodes: [
    createNode("keep", "openclaw.memory.write", { content: "kept by another run", tags: ["facts"] }),
    createNode("file", "openclaw.workspace.write", { path: "notes.md", content: "written by another run" }),
  ],
  edges: chain("keep>file"),
});

function playLive(model: LiveModel, options: SceneOptions = {}): WorkflowScene {
  return createWorkflowScene({ chat: model, ...options });
}

async function put(scene: WorkflowScene, path: string, content: string): Promise<void> {
  valueOf(await scene.host.workspace(ALICE).write(path, { content }));
}

const SHARED = { scopeId: "shared" } as const;

describe("what a supervisor is told in a turn", () => {
  test("is memory, workspace and log as they were when the turn began, and the next turn has the rest", async () => {
    const model = createLiveModel();
    const scene = playLive(model, {
      definitions: [liveLoopOf("loop", { extra: [createNode("idle")] }), writer],
    });
    await put(scene, "a.md", "before");
    const runId = await scene.run("loop", SHARED);
    await put(scene, "a.md", "after");
    await scene.run("writer", SHARED);
    expect(model.told(0)).toMatchObject({ turn: 1, memory: [] });
    expect(model.told(0).workspace).toEqual([{ path: "a.md", version: 1, content: "before" }]);
    expect(model.told(0).transcript.map(({ type }) => type)).toEqual(["run.started"]);
    await model.say(goOn("idle"));
    expect(model.told(1).turn).toBe(2);
    expect(model.told(1).memory?.map(({ content }) => content)).toEqual(["kept by another run"]);
    expect(model.told(1).workspace).toEqual([
      { path: "a.md", version: 2, content: "after" },
      { path: "notes.md", version: 1, content: "written by another run" },
    ]);
    const [ownEvent] = scene
      .events(runId)
      .filter(({ type, nodeId }) => type === "node.started" && nodeId === "boss");
    expect(model.told(1).transcript.map(({ sequence }) => sequence)).toContain(ownEvent?.sequence);
    await model.say(over);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("does not have what the turn itself writes, before the next one", async () => {
    const model = createLiveModel();
    const keep = createNode("keep", "openclaw.memory.write", { content: "own words" });
    const file = createNode("file", "openclaw.workspace.write", { path: "own.md", content: "own file" });
    const look = createNode("look", "openclaw.workspace.read", { path: "own.md", into: "seen" });
    const scene = playLive(model, {
      definitions: [liveLoopOf("loop", { extra: [keep, file, look] })],
    });
    const runId = await scene.run("loop");
    for (const worker of ["keep", "file", "look"]) await model.say(goOn(worker));
    const tellings = [0, 1, 2, 3].map((index) => model.told(index));
    expect(tellings.map(({ memory }) => memory?.length)).toEqual([0, 1, 1, 1]);
    expect(tellings.map(({ workspace }) => workspace?.length)).toEqual([0, 0, 1, 1]);
    expect(tellings[3]?.variables).toEqual({ seen: { path: "own.md", version: 1, content: "own file" } });
    expect(scene.payloads(runId, "workspace.updated")).toEqual([{ path: "own.md", version: 1 }]);
  });

  test("is the same when it is asked again, whatever happened since and whoever asks", async () => {
    const [ledger, clock, model] = [createMemoryWorkflowLedger(), createFakeClock(), createLiveModel()];
    const definitions = [liveLoopOf("loop", { extra: [createNode("idle")] }), writer];
    const first = playLive(model, { ledger, clock, definitions, pid: 1 });
    await first.host.start();
    await put(first, "a.md", "1");
    const runId = await first.run("loop", SHARED);
    await model.say(goOn("idle"));
    await put(first, "a.md", "2");
    await first.run("writer", SHARED);
    await first.host.seams?.setVariables(ALICE, runId, { late: "news" });
    first.die();
    await clock.advance(300_000);
    const second = playLive(model, { ledger, clock, definitions, pid: 2 });
    await second.host.start();
    await second.settle();
    await second.settle();
    expect(model.texts).toHaveLength(3);
    expect(model.texts[2]).toBe(model.texts[1]);
    expect(JSON.parse(model.texts[1] ?? "")).toMatchObject({
      turn: 2,
      workspace: [{ content: "1" }],
      memory: [],
    });
    await model.say(over);
    await model.say(over);
    expect(second.payloads(runId, "runOrchestrator.decided").map(({ iteration }) => iteration)).toEqual([
      1, 2,
    ]);
    expect(await second.status(runId)).toBe("completed");
  });

  test("has entries that had not expired when the turn began, however late it is asked for", async () => {
    const [ledger, clock, model] = [createMemoryWorkflowLedger(), createFakeClock(), createLiveModel()];
    const brief = createNode("brief", "openclaw.memory.write", { content: "brief", ttlMs: 60_000 });
    const definitions = [liveLoopOf("loop", { extra: [brief] })];
    const first = playLive(model, { ledger, clock, definitions, pid: 1 });
    await first.run("loop");
    await model.say(goOn("brief"));
    expect(model.told(1).memory).toHaveLength(1);
    first.die();
    await clock.advance(300_000);
    const second = playLive(model, { ledger, clock, definitions, pid: 2 });
    await second.host.start();
    await second.settle();
    await second.settle();
    expect(model.texts[2]).toBe(model.texts[1]);
  });

  test("is the same for a retry of the turn", async () => {
    const model = createLiveModel();
    const loop = liveLoopOf("loop", { extra: [createNode("idle")], settings: { maxRetries: 1 } });
    const scene = playLive(model, { definitions: [loop] });
    const runId = await scene.run("loop");
    await put(scene, "late.md", "late");
    await model.say("no decision at all");
    expect(model.texts).toHaveLength(2);
    expect(model.texts[1]).toBe(model.texts[0]);
    await model.say(goOn("idle"));
    expect(model.told(2).workspace).toHaveLength(1);
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ iteration }) => iteration)).toEqual([1]);
  });

  test("is of the own tenant only", async () => {
    const model = createLiveModel();
    const scene = playLive(model, { definitions: [liveLoopOf("loop"), writer] });
    await scene.run("writer", SHARED, MALLORY);
    valueOf(await scene.host.workspace(MALLORY).write("secret.md", { content: "theirs" }));
    await scene.run("loop", SHARED);
    expect(model.told(0)).toMatchObject({ memory: [], workspace: [] });
  });

  test("is what the node's configuration asks for", async () => {
    const model = createLiveModel();
    const scene = playLive(model, {
      definitions: [
        liveLoopOf("some", {
          supervisor: {
            memory: { tags: ["facts", "rules"], limit: 2 },
            transcriptWindow: 1,
            workspace: { paths: ["docs/", "A.md"] },
          },
        }),
        liveLoopOf("none", { supervisor: { memory: false, workspace: false, transcriptWindow: 0 } }),
        createWorkflow("keep", {
          nodes: [
            createNode("1", "openclaw.memory.write", { content: "fact", tags: ["facts"] }),
            createNode("2", "openclaw.memory.write", { content: "gossip", tags: ["gossip"] }),
            createNode("3", "openclaw.memory.write", { content: "rule", tags: ["rules", "facts"] }),
          ],
          edges: chain("1>2>3"),
        }),
      ],
    });
    for (const path of ["A.md", "B.md", "docs/a", "docs2/a"]) await put(scene, path, path);
    await scene.run("keep", SHARED);
    await scene.run("some", SHARED);
    expect(new Set(model.told(0).memory?.map(({ content }) => content))).toEqual(new Set(["fact", "rule"]));
    expect(model.told(0).workspace?.map(({ path }) => path)).toEqual(["A.md", "docs/a"]);
    expect(model.told(0).transcript).toHaveLength(1);
    await scene.run("none", SHARED);
    expect(Object.keys(model.told(1))).toEqual(["turn", "variables", "workers", "transcript"]);
    expect(model.told(1).transcript).toEqual([]);
  });

  test("holds no secret, and nothing of a sensitive variable, wherever it stands", async () => {
    const model = createLiveModel();
    const secret = "the-operators-own-secret";
    const echo = createNode(
      "echo",
      "core.identity",
      {},
      { inputs: { said: { type: "variable", variableName: "pin" } } },
    );
    const keep = createNode("keep", "openclaw.memory.write", { content: "{{secret:key}} is the key" });
    const loop = liveLoopOf("loop", {
      extra: [echo, keep],
      variables: { pin: undefined, open: undefined },
    });
    const definition = {
      ...loop,
      variables: loop.variables.map((each) => ({ ...each, ...(each.name === "pin" && { sensitive: true }) })),
    };
    const scene = playLive(model, { definitions: [definition], secrets: new Map([["key", secret]]) });
    await put(scene, "a.md", `here: ${secret}`);
    await scene.run("loop", { inputs: { pin: "hush-hush-4711", open: `so "${secret}" it is` } });
    for (const worker of ["echo", "keep"]) await model.say(goOn(worker));
    expect(model.texts).toHaveLength(3);
    for (const text of model.texts) expect(text).not.toMatch(/hush-hush|operators-own/);
    expect(model.told(0).variables).toEqual({ pin: "[masked]", open: 'so "[REDACTED:key]" it is' });
    expect(model.texts[2]).toContain("[REDACTED:key] is the key");
  });

  test("is bounded, and tells of as many events as the window says", async () => {
    const model = createLiveModel();
    const long = "x".repeat(60_000);
    const quick = createNode("quick");
    const loop = liveLoopOf("loop", { extra: [quick], variables: { a: long, b: long, c: "short" } });
    const scene = playLive(model, { definitions: [loop] });
    for (const path of ["a", "b", "c"]) await put(scene, path, long);
    await scene.run("loop", { inputs: { d: long } });
    const { transcriptWindow } = WORKFLOW_BOUNDS;
    for (let turn = 1; turn <= 60; turn += 1) await model.say(goOn("quick"));
    const last = model.told(-1);
    expect(last.turn).toBe(61);
    expect(last.transcript).toHaveLength(transcriptWindow);
    const sequences = last.transcript.map(({ sequence }) => sequence);
    expect(sequences).toEqual(sequences.map((_, index) => (sequences[0] ?? 0) + index));
    expect(last.variables["c"]).toBe("short");
    expect(last.workspace?.map(({ content }) => String(content).length < 10_000)).toEqual([true, true, true]);
    for (const text of model.texts) expect(text.length).toBeLessThan(120_000);
  });

  test("names the files of a large workspace, and has the contents of some", async () => {
    const model = createLiveModel();
    const scene = playLive(model, { definitions: [liveLoopOf("loop")] });
    const names = Array.from({ length: TURN_FILES + 10 }, (_, index) => `f${100 + index}`);
    for (const name of names) await put(scene, name, `in ${name}`);
    await scene.run("loop");
    const report = model.told(0).workspace ?? [];
    expect(report.map(({ path }) => path)).toEqual(names);
    expect(report.filter(({ content }) => content !== undefined).map(({ path }) => path)).toEqual(
      names.slice(0, TURN_FILES),
    );
  });

  test("that is not kept any more fails the turn, and says so, instead of telling something else", async () => {
    const [ledger, clock, model] = [createMemoryWorkflowLedger(), createFakeClock(), createLiveModel()];
    const definitions = [liveLoopOf("loop")];
    const first = playLive(model, { ledger, clock, definitions, pid: 1 });
    await put(first, "a.md", "1");
    const runId = await first.run("loop");
    for (let version = 0; version <= WORKFLOW_BOUNDS.workspaceVersionsMax; version += 1)
      await put(first, "a.md", String(version));
    first.die();
    const second = playLive(model, { ledger, clock, definitions, pid: 2 });
    await second.host.start();
    await second.settle();
    await second.settle();
    expect(await second.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "workspace_snapshot_unavailable" },
    });
    expect(model.texts).toHaveLength(1);
  });
});

describe("the iteration of a decision", () => {
  const LOW = 0.1;

  async function readIterations(scene: WorkflowScene, runId: string): Promise<unknown> {
    await scene.settle();
    return scene.payloads(runId, "runOrchestrator.decided").map(({ iteration }) => iteration);
  }

  test("counts from 1 by one, for scripted, held, agreed, edited and asking decisions", async () => {
    const plan = [
      { kind: "ask-user", prompt: "Which?" },
      { ...goOn("worker"), confidence: LOW },
      goOn("worker"),
      { ...goOn("worker"), confidence: LOW },
      { ...TERMINATE, confidence: LOW },
    ];
    const worker = createWorkflow("worker", { nodes: [createNode("only")] });
    const scene = createWorkflowScene({ definitions: [createSupervised("loop", plan), worker] });
    const runId = await scene.run("loop");
    expect(await readIterations(scene, runId)).toEqual([1]);
    await scene.answer(runId, "dispatch", { answers: { q1: "this" } });
    expect(await readIterations(scene, runId)).toEqual([1]);
    await scene.answer(runId, "supervisor", { action: "accept" });
    expect(await readIterations(scene, runId)).toEqual([1, 2, 3]);
    const editedArtifactData = goOn("worker", 0.9);
    await scene.answer(runId, "supervisor", { action: "edit-accept", editedArtifactData });
    expect(await readIterations(scene, runId)).toEqual([1, 2, 3, 4]);
    await scene.answer(runId, "supervisor", { action: "accept" });
    expect(await readIterations(scene, runId)).toEqual([1, 2, 3, 4, 5]);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("counts from 1 by one for a live model, below its floor too", async () => {
    const model = createLiveModel();
    const scene = playLive(model, {
      definitions: [liveLoopOf("loop", { extra: [createNode("idle")] })],
    });
    const runId = await scene.run("loop");
    await model.say(goOn("idle", LOW));
    expect(await readIterations(scene, runId)).toEqual([]);
    await put(scene, "late.md", "while people think");
    await scene.answer(runId, "boss", { action: "accept" });
    expect(await readIterations(scene, runId)).toEqual([1]);
    expect(model.told(-1)).toMatchObject({ turn: 2, workspace: [{ path: "late.md" }] });
    await model.say(over);
    expect(await readIterations(scene, runId)).toEqual([1, 2]);
    expect(model.texts).toHaveLength(2);
  });

  test("has a limit of its own in each run, nested ones too", async () => {
    const inner = createSupervised("inner", [goOn("noop"), goOn("noop"), TERMINATE]);
    const outer = createSupervised("outer", [goOn("inner"), goOn("inner"), goOn("inner"), TERMINATE]);
    const noop = createWorkflow("noop", { nodes: [createNode("only")] });
    const scene = createWorkflowScene({ definitions: [inner, outer, noop] });
    const runId = await scene.run("outer", { configurable: { maxLoopIterations: 2 } });
    expect(scene.payloads(runId, "cap.breached")).toEqual([
      { kind: "loop-iterations", limit: 2, observed: 3, nodeId: "supervisor" },
    ]);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "loop_limit_exceeded" } });
    const children = scene.payloads(runId, "node.dispatched").map(({ childRunId }) => childRunId);
    expect(children).toHaveLength(2);
    for (const child of children) expect(await readIterations(scene, child)).toEqual([1, 2, 3]);
  });
});

describe("a branch of a stateful loop", () => {
  test("asks in the turn that it took what its source asked, and then sees what it writes itself, and no other", async () => {
    const model = createLiveModel();
    const file = createNode("file", "openclaw.workspace.write", { path: "own.md", content: "of the branch" });
    const keep = createNode("keep", "openclaw.memory.write", { content: "of the branch" });
    const scene = playLive(model, {
      definitions: [liveLoopOf("loop", { extra: [file, keep] }), writer],
    });
    await put(scene, "ground.md", "1");
    const source = await scene.run("loop", SHARED);
    await model.say(goOn("keep"));
    await put(scene, "ground.md", "2");
    await scene.run("writer", SHARED);
    const fromSeq = scene.events(source).length;
    const forked = await scene.host.fork(ALICE, { sourceRunId: source, mode: "branch", fromSeq });
    const branch = valueOf(forked).runId;
    await scene.settle();
    expect(model.texts).toHaveLength(3);
    expect(model.texts[2]).toBe(model.texts[1]);
    await model.sayLast(goOn("file"));
    await model.sayLast(goOn("keep"));
    expect(model.told(-1)).toMatchObject({ turn: 4 });
    expect(model.told(-1).workspace).toEqual([
      // As it was where the branch left its source.
      { path: "ground.md", version: 1, content: "1" },
      { path: "own.md", version: 1, content: "of the branch" },
    ]);
    expect(model.told(-1).memory?.map(({ id }) => id)).toEqual([`${branch}:keep:2:0`, `${source}:keep:1:0`]);
    expect(await scene.host.workspace(ALICE).read("own.md")).toMatchObject({ code: "not_found" });
    await model.sayLast(over);
    await model.say(goOn("file"));
    await model.say(over);
    const countIterations = (runId: string) => scene.payloads(runId, "runOrchestrator.decided").length;
    expect([countIterations(source), countIterations(branch)]).toEqual([3, 4]);
    expect(valueOf(await scene.host.workspace(ALICE).read("own.md"))).toMatchObject({ version: 1 });
  });
});

describe("a replay of a stateful loop", () => {
  test("asks nobody, and tells the same", async () => {
    const model = createLiveModel();
    const file = createNode("file", "openclaw.workspace.write", { path: "own.md", content: "of the source" });
    const look = createNode("look", "openclaw.workspace.read", { path: "own.md", into: "seen" });
    const scene = playLive(model, { definitions: [liveLoopOf("loop", { extra: [file, look] })] });
    const source = await scene.run("loop");
    for (const decision of [goOn("file"), goOn("look"), over]) await model.say(decision);
    await put(scene, "own.md", "later");
    const forked = await scene.host.fork(ALICE, { sourceRunId: source, mode: "replay" });
    const replay = valueOf(forked).runId;
    for (let round = 0; round < 5; round += 1) await scene.settle();
    expect(model.texts).toHaveLength(3);
    const listTold = (runId: string) => scene.events(runId).map(({ type, payload }) => [type, payload]);
    expect(listTold(replay)).toEqual(listTold(source));
    expect(await scene.status(replay)).toBe("completed");
    expect(valueOf(await scene.host.workspace(ALICE).read("own.md"))).toMatchObject({ version: 2 });
  });
});
