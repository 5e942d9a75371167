import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import { createDiscoveryDocument, DEFAULTS } from "../../src/plugins/openwop/http/advertised.ts";
import { startHeldModel, type HeldModel } from "../support/held-model.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import { filterByType, findOnly, openWorld, type Event, type World } from "./levels-world.ts";

const LOW = 0.1;
const ACCEPT = { action: "accept" };
const { loopIterationsMax, transcriptWindow } = WORKFLOW_BOUNDS;

const createTimes = (count: number): readonly unknown[] =>
  Array.from({ length: count }, () => work(["worker-good"]));

/** A supervisor that a live model plays; what it lets work leads back to it. */
const createLive = (id: string, workers: readonly ReturnType<typeof createNoop>[], config: object = {}) =>
  createWorkflow(id, {
    nodes: [
      createNode("boss", "core.orchestrator.supervisor", { config: { prompt: "Lead.", ...config } }),
      ...workers,
    ],
    edges: workers.flatMap(({ id: to }) => [
      ["boss", to, { condition: { type: "equals", left: "decision.nextWorkerIds.0", right: to } }] as const,
      [to, "boss"] as const,
    ]),
  });

const keep = createNode("keep", "openclaw.memory.write", { config: { content: "kept in the turn" } });
const file = createNode("file", "openclaw.workspace.write", {
  config: { path: "turn.md", content: "of the turn" },
});

const DEFINITIONS = [
  ...WORKERS,
  createLoop("scripted", { plan: [...createTimes(3), end()] }),
  createLoop("every-way", {
    plan: [
      { kind: "ask-user", prompt: "Which vein?" },
      work(["worker-good"], LOW),
      work(["worker-good"], LOW),
      work(["worker-good"]),
      end(LOW),
    ],
  }),
  createLoop("endless", { plan: createTimes(loopIterationsMax + 5) }),
  createLoop("inner", { plan: [...createTimes(2), end()] }),
  createLoop("outer", { plan: [work(["inner"]), work(["inner"]), work(["inner"]), end()] }),
  createLive("led", [keep, file, createNoop("idle")]),
  createLive("asks", [createNoop("idle")]),
  createWorkflow("elsewhere", {
    nodes: [
      createNode("keep", "openclaw.memory.write", { config: { content: "of another run" } }),
      createNode("file", "openclaw.workspace.write", {
        config: { path: "other.md", content: "of another run" },
      }),
    ],
  }),
  createLoop("asks-people", {
    plan: [work(["worker-good"]), { kind: "ask-user", prompt: "Go on?" }, work(["worker-good"]), end()],
  }),
];

let model: HeldModel;
let world: World;

beforeAll(async () => {
  model = await startHeldModel();
  world = await openWorld(DEFINITIONS, {
    model: { baseUrl: model.baseUrl, model: "held" },
    privateOrigins: [model.origin],
  });
});
afterAll(async () => {
  await world.close();
  await model[Symbol.asyncDispose]();
});

function iterationsOf(events: readonly Event[]): unknown[] {
  return filterByType(events, "runOrchestrator.decided").map(({ payload }) => payload["iteration"]);
}

const listUpTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

describe("the iteration counter of a loop", () => {
  it("L5-01 is on every decision, from 1 on, and one more with each turn", async () => {
    const { snapshot, events } = await world.client.run("scripted");
    expect(snapshot.status).toBe("completed");
    expect(iterationsOf(events)).toEqual(listUpTo(4));
  });

  it("L5-02 has no gap and no repetition where decisions were asked about, held, agreed to or edited", async () => {
    const { client } = world;
    const runId = await client.start("every-way");
    await client.until(runId, "waiting-input");
    expect(iterationsOf(await client.events(runId))).toEqual([1]);
    await client.resolve(runId, "handing", { answers: { q1: "the silver one" } });
    await client.until(runId, "waiting-approval");
    expect(iterationsOf(await client.events(runId))).toEqual([1]);
    await client.resolve(runId, "boss", ACCEPT);
    await client.until(runId, "waiting-approval");
    expect(iterationsOf(await client.events(runId))).toEqual(listUpTo(2));
    const editedArtifactData = work(["worker-other"]);
    await client.resolve(runId, "boss", { action: "edit-accept", editedArtifactData });
    await client.until(runId, "waiting-approval");
    await client.resolve(runId, "boss", ACCEPT);
    await client.until(runId, "completed");
    expect(iterationsOf(await client.events(runId))).toEqual(listUpTo(5));
  });

  it("L5-03 is what maxLoopIterations bounds: turn N + 1 is refused, and ends the run", async () => {
    const { snapshot, events } = await world.client.run("scripted", {
      configurable: { maxLoopIterations: 2 },
    });
    expect(iterationsOf(events)).toEqual(listUpTo(2));
    const breached = findOnly(events, "cap.breached");
    expect(breached.payload).toMatchObject({ kind: "loop-iterations", limit: 2, observed: 3 });
    expect(findOnly(events, "run.failed").sequence).toBeGreaterThan(breached.sequence);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "loop_limit_exceeded" } });
  });

  it("L5-04 is bounded by the host's own limit, whatever the caller asks for", async () => {
    const configurable = { maxLoopIterations: loopIterationsMax * 10 };
    const { snapshot, events } = await world.client.run("endless", { configurable });
    expect(iterationsOf(events)).toEqual(listUpTo(loopIterationsMax));
    const observed = loopIterationsMax + 1;
    expect(findOnly(events, "cap.breached").payload).toMatchObject({ limit: loopIterationsMax, observed });
    expect(snapshot.error?.code).toBe("loop_limit_exceeded");
  });

  it("L5-05 is each run's own: a supervisor within a supervisor counts for itself", async () => {
    const { snapshot, events } = await world.client.run("outer", { configurable: { maxLoopIterations: 2 } });
    expect(iterationsOf(events)).toEqual(listUpTo(2));
    expect(snapshot.error?.code).toBe("loop_limit_exceeded");
    const children = filterByType(events, "node.dispatched").map(({ payload }) =>
      String(payload["childRunId"]),
    );
    for (const child of children) expect(iterationsOf(await world.client.events(child))).toEqual(listUpTo(3));
  });
});

describe("what a turn is given", () => {
  it("L5-10 is memory as it was at the place of the log where the turn began", async () => {
    const requestCount = model.bodies.length;
    const start = { scopeId: "mine-10" };
    const runId = await world.client.start("led", start);
    await model.asked(requestCount + 1);
    await world.client.run("elsewhere", start);
    expect(model.told(-1)).toMatchObject({ turn: 1, memory: [] });
    await model.say(work(["idle"]));
    await model.asked(requestCount + 2);
    expect(model.told(-1).memory).toMatchObject([{ content: "of another run" }]);
    await model.say(end());
    await world.client.until(runId, "completed");
  });

  it("L5-11 is the workspace as it was when the turn began", async () => {
    const requestCount = model.bodies.length;
    await files.put("before.md", "1");
    const runId = await world.client.start("led");
    await model.asked(requestCount + 1);
    await files.put("before.md", "2");
    await files.put("during.md", "1");
    await files.remove("turn.md");
    const readSeen = (index: number) =>
      Object.fromEntries(model.told(index).workspace?.map(({ path, content }) => [path, content]) ?? []);
    expect(readSeen(-1)).toMatchObject({ "before.md": "1" });
    expect(readSeen(-1)).not.toHaveProperty(["during.md"]);
    await model.say(work(["idle"]));
    await model.asked(requestCount + 2);
    expect(readSeen(-1)).toMatchObject({ "before.md": "2", "during.md": "1" });
    await model.say(end());
    await world.client.until(runId, "completed");
  });

  it("L5-12 is the end of the log, of as many events as are advertised at most", async () => {
    const requestCount = model.bodies.length;
    const runId = await world.client.start("led");
    const turns = Math.ceil(transcriptWindow / 4);
    for (let turn = 1; turn <= turns; turn += 1) {
      await model.asked(requestCount + turn);
      await model.say(work(["idle"]));
    }
    await model.asked(requestCount + turns + 1);
    const log = await world.client.events(runId);
    const [entered] = filterByType(log, "node.started")
      .filter(({ nodeId }) => nodeId === "boss")
      .slice(-1);
    const before = log.slice(0, entered?.sequence).slice(-transcriptWindow);
    expect(log.length).toBeGreaterThan(transcriptWindow + 1);
    expect(model.told(-1).transcript.map(({ sequence, type }) => [sequence, type])).toEqual(
      before.map(({ sequence, type }) => [sequence, type]),
    );
    await model.say(end());
    await world.client.until(runId, "completed");
  });

  it("L5-13 has nothing that the turn itself writes, to memory or to the workspace, before the next one", async () => {
    const requestCount = model.bodies.length;
    await files.remove("turn.md");
    const runId = await world.client.start("led", { scopeId: "mine-13" });
    const has = () => {
      const { memory, workspace } = model.told(-1);
      return [memory?.length, workspace?.some(({ path }) => path === "turn.md")];
    };
    await model.asked(requestCount + 1);
    expect(has()).toEqual([0, false]);
    await model.say(work(["keep"]));
    await model.asked(requestCount + 2);
    expect(has()).toEqual([1, false]);
    await model.say(work(["file"]));
    await model.asked(requestCount + 3);
    expect(has()).toEqual([1, true]);
    await model.say(end());
    await world.client.until(runId, "completed");
  });

  it("L5-14 is the same when it has to be asked again, because the host was stopped while it asked", async () => {
    const requestCount = model.bodies.length;
    const runId = await world.client.start("led", { scopeId: "mine-14" });
    await model.asked(requestCount + 1);
    await files.put("late.md", "late");
    await world.client.run("elsewhere", { scopeId: "mine-14" });
    await world.restart();
    await model.asked(requestCount + 2);
    expect(model.bodies.at(-1)).toBe(model.bodies.at(-2));
    await model.say(end());
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(iterationsOf(events)).toEqual([1]);
    expect(filterByType(events, "run.resuming")).toHaveLength(1);
  });
});

describe("a loop that waits for people", () => {
  it("L5-20 goes on at the same iteration with what it had, after it asked somebody something", async () => {
    const { client } = world;
    const runId = await client.start("asks-people");
    await client.until(runId, "waiting-input");
    const before = await client.events(runId);
    expect(iterationsOf(before)).toEqual(listUpTo(2));
    await client.resolve(runId, "handing", { answers: { q1: "yes" } });
    await client.until(runId, "completed");
    const after = await client.events(runId);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(iterationsOf(after)).toEqual(listUpTo(4));
  });

  it("L5-21 carries out a decision that was held in the iteration in which it was made, and asks for none again", async () => {
    const { client } = world;
    const requestCount = model.bodies.length;
    const runId = await client.start("asks");
    await model.asked(requestCount + 1);
    await model.say(work(["idle"]));
    await model.asked(requestCount + 2);
    await model.say(work(["idle"], LOW));
    await client.until(runId, "waiting-approval");
    await world.restart();
    expect(iterationsOf(await client.events(runId))).toEqual([1]);
    await files.put("while-waiting.md", "1");
    await client.resolve(runId, "boss", ACCEPT);
    await model.asked(requestCount + 3);
    expect(iterationsOf(await client.events(runId))).toEqual(listUpTo(2));
    expect(model.told(-1)).toMatchObject({ turn: 3 });
    expect(model.told(-1).workspace?.map(({ path }) => path)).toContain("while-waiting.md");
    await model.say(end());
    await client.until(runId, "completed");
    expect(model.bodies).toHaveLength(requestCount + 3);
  });

  it("L5-30 is advanced by nothing that the host does of itself, however often it looks", async () => {
    const { client } = world;
    const [asks, holds] = await Promise.all([client.start("asks-people"), client.start("every-way")]);
    await client.until(asks, "waiting-input");
    await client.until(holds, "waiting-input");
    const before = [await client.events(asks), await client.events(holds)];
    for (let round = 0; round < 4; round += 1) {
      await world.restart();
      expect([await client.events(asks), await client.events(holds)]).toEqual(before);
    }
    for (const runId of [asks, holds]) await client.post(`/v1/runs/${runId}/cancel`);
  });
});

describe("what is advertised of a stateful loop", () => {
  it("L5-40 is the resumption, the window of the transcript, and the bounds of the workspace", () => {
    const implementation = { name: "x", version: "0" };
    const { text } = createDiscoveryDocument(
      { ...DEFAULTS, transcriptWindow: 7, implementation },
      "host",
      [],
    );
    const document = JSON.parse(text) as Record<string, unknown> & { capabilities: Record<string, unknown> };
    expect(findSchemaProblems("capabilities", document)).toEqual([]);
    for (const families of [document, document.capabilities]) {
      expect(families["multiAgent"]).toMatchObject({
        executionModel: { version: 6, statefulResume: true, transcriptWindow: 7 },
      });
      expect(families["workspace"]).toEqual({
        supported: true,
        versioned: true,
        maxFileBytes: WORKFLOW_BOUNDS.workspaceFileBytesMax,
        maxFiles: WORKFLOW_BOUNDS.workspaceFilesMax,
        maxVersions: WORKFLOW_BOUNDS.workspaceVersionsMax,
      });
    }
  });
});

describe("the seam of the agent loop", () => {
  const drive = async (body: object) => (await world.client.post("/v1/host/sample/agentloop/run", body)).body;

  it("B-80 counts the iterations of as many turns as it is asked for, in a run that can be read", async () => {
    const { decisions, runId } = await drive({ turns: 3 });
    expect((decisions as readonly { iteration: number }[]).map(({ iteration }) => iteration)).toEqual(
      listUpTo(3),
    );
    expect(iterationsOf(await world.client.events(String(runId)))).toEqual(listUpTo(3));
    expect((await world.client.snapshot(String(runId))).status).toBe("completed");
  });

  it("B-81 lets a turn write to the workspace, which the next one sees and it does not", async () => {
    const { workspaceVisible, runId } = await drive({ turns: 2, workspaceWriteAtTurn: 1 });
    expect(workspaceVisible).toEqual({ atWriteTurn: false, atNextTurn: true });
    findOnly(await world.client.events(String(runId)), "workspace.updated");
  });

  it("B-82 suspends a turn and resumes at the same one, and breaches the limit where there is one", async () => {
    expect(await drive({ turns: 4, suspendAtTurn: 2, resume: true })).toMatchObject({ resumedIteration: 2 });
    const left = await drive({ turns: 4, suspendAtTurn: 2 });
    expect(left).not.toHaveProperty("resumedIteration");
    expect(left["decisions"]).toHaveLength(1);
    const bound = await drive({ turns: 5, maxLoopIterations: 3 });
    expect(bound["decisions"]).toHaveLength(3);
    expect(bound["bound"]).toMatchObject({ kind: "loop-iterations", limit: 3, observed: 4 });
  });
});

const files = {
  put: (path: string, content: string) => ask("PUT", path, { content }),
  remove: (path: string) => ask("DELETE", path),
};

async function ask(method: string, path: string, body?: unknown): Promise<number> {
  const { status } = await fetch(`${world.baseUrl}/v1/host/workspace/files/${encodeURIComponent(path)}`, {
    method,
    headers: { authorization: "Bearer token-of-the-first-tenant", "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return status;
}
