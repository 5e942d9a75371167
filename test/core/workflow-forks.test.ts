import { describe, expect, test } from "vitest";
import { expectReplayOf, forkIn, countEvents, stripRunIds } from "../support/forks.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { checkLog, finish, hasEnded, PLAYS } from "../support/workflow-plays.ts";
import {
  SAID,
  ALICE,
  codeOf,
  listEvents,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const CHAT: NonNullable<SceneOptions["chat"]> = {
  complete: () => Promise.resolve(SAID),
};
const TOOLS: NonNullable<SceneOptions["tools"]> = {
  callMcp: () => Promise.resolve({ kind: "answered", ok: true, content: [], text: "echo" }),
};

/** A host that can do nothing outside, and knows no workflow but by the ledger. */
function createBystander(of: WorkflowScene): WorkflowScene {
  return createWorkflowScene({ ledger: of.ledger, clock: of.clock, pid: 2 });
}

async function playRun(play: string): Promise<WorkflowScene> {
  const scene = createWorkflowScene({ definitions: PLAYS[play] ?? [], chat: CHAT, tools: TOOLS });
  await scene.host.create(ALICE, { workflowId: play, inputs: {}, transport: "rest", scopeId: "scope" });
  await finish(scene);
  return scene;
}

describe.each(Object.keys(PLAYS))("every run of %s", (play) => {
  test("is replayed from every event on as it was, and nothing is done for it", async () => {
    const scene = await playRun(play);
    const { ledger } = scene;
    const other = createBystander(scene);
    await scene.clock.advance(3_600_000);
    const kept = ledger.entries.length;
    for (const sourceRunId of [...ledger.runs.keys()])
      for (let fromSeq = 0; fromSeq <= countEvents(ledger, sourceRunId); fromSeq += 1) {
        const runs = ledger.runs.size;
        const runId = await forkIn(other, { sourceRunId, mode: "replay", fromSeq });
        expectReplayOf(ledger, runId, sourceRunId);
        expect(ledger.runs.size).toBe(runs + 1);
      }
    expect(ledger.entries.length).toBe(kept);
    expect(scene.clock.pending).toBe(0);
  });

  test("branches from every event on, begins as it was, and goes on to an end", async () => {
    const scene = await playRun(play);
    const { ledger } = scene;
    await scene.clock.advance(3_600_000);
    const sources = new Map([...ledger.runs.keys()].map((runId) => [runId, listEvents(ledger, runId)]));
    for (const [sourceRunId, source] of sources)
      for (let fromSeq = 0; fromSeq <= source.length; fromSeq += 1) {
        const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
        await finish(scene);
        const events = listEvents(ledger, runId);
        expect(stripRunIds(events.slice(0, fromSeq))).toEqual(stripRunIds(source.slice(0, fromSeq)));
        expect(hasEnded(ledger, runId), `the branch at ${fromSeq} has ended`).toBe(true);
        expect(events.at(-1)).not.toMatchObject({ payload: { error: { code: "run_timeout" } } });
        if (fromSeq === 0) checkLog(events);
      }
    for (const [runId, source] of sources) expect(listEvents(ledger, runId)).toEqual(source);
  });
});

test("a branch decides what its source decided, once each, also where it is cut off in the middle of a decision", async () => {
  const loop = createSupervised("loop", [
    sendNextWorker("plain"),
    { ...sendNextWorker("plain"), confidence: 0.9 },
    TERMINATE,
  ]);
  const scene = createWorkflowScene({ definitions: [loop, createWorker("plain")] });
  const sourceRunId = await scene.run("loop");
  /** Decisions, and the workers that were begun for them. */
  const listDecided = (runId: string) => [
    ...scene
      .payloads(runId, "runOrchestrator.decided")
      .map(({ decision, iteration }) => [iteration, decision]),
    scene.payloads(runId, "core.workflowChain.event").filter(({ phase }) => phase === "dispatch.began")
      .length,
  ];
  expect(listDecided(sourceRunId).length).toBe(4);
  expect(listDecided(sourceRunId).at(-1)).toBe(2);
  for (let fromSeq = 0; fromSeq <= countEvents(scene.ledger, sourceRunId); fromSeq += 1) {
    const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
    expect([fromSeq, await scene.status(runId), listDecided(runId)]).toEqual([
      ...[fromSeq, "completed", listDecided(sourceRunId)],
    ]);
  }
});

const LONG = createWorkflow("long", {
  nodes: [createNode("a"), createNode("b"), createNode("c")],
  edges: [createEdge("a>b"), createEdge("b>c"), createEdge("c>a")],
  settings: { maxLoopbackIterations: 400 },
});
const MANY: NonNullable<SceneOptions["settings"]> = { nodeExecutionsMax: 5_000 };

async function createLongRun(): Promise<{ readonly scene: WorkflowScene; readonly sourceRunId: string }> {
  const scene = createWorkflowScene({ definitions: [LONG], settings: MANY });
  const sourceRunId = await scene.run("long");
  await scene.clock.advance(1);
  expect(await scene.status(sourceRunId)).toBe("failed");
  return { scene, sourceRunId };
}

describe("a fork that takes its events in several appends", () => {
  test.each(["replay", "branch"] as const)(
    "as a %s goes on after a crash around any of them",
    async (mode) => {
      const { scene, sourceRunId } = await createLongRun();
      const source = listEvents(scene.ledger, sourceRunId);
      const fromSeq = mode === "branch" ? source.length - 1 : 0;
      let pid = 10;
      const createSceneBeside = (faults?: SceneOptions["faults"]): WorkflowScene =>
        createWorkflowScene({
          ledger: scene.ledger,
          clock: scene.clock,
          pid: (pid += 1),
          settings: MANY,
          ...(faults && { faults }),
        });
      let appends = 0;
      const calm = createSceneBeside({ before: () => void (appends += 1) });
      await forkIn(calm, { sourceRunId, mode, fromSeq });
      expect(appends).toBeGreaterThanOrEqual(3);
      for (let k = 1; k <= appends; k += 1)
        for (const when of ["before", "after"] as const) {
          let count = 0;
          const dying: WorkflowScene = createSceneBeside({
            before: () => {
              count += 1;
              if (when === "before" && count === k) dying.die();
            },
            after: () => {
              if (when === "after" && count === k) dying.die();
            },
          });
          const knownIds = new Set(scene.ledger.runs.keys());
          await dying.host.fork(ALICE, { sourceRunId, mode, fromSeq }).catch(() => undefined);
          await dying.settle();
          const next = createSceneBeside();
          await next.host.start();
          await next.settle();
          await next.clock.advance(1);
          for (const [runId] of scene.ledger.runs) {
            if (knownIds.has(runId)) continue;
            const events = listEvents(scene.ledger, runId);
            const takenEvents = mode === "replay" ? source : source.slice(0, fromSeq);
            expect(stripRunIds(events.slice(0, takenEvents.length))).toEqual(stripRunIds(takenEvents));
            expect(hasEnded(scene.ledger, runId)).toBe(true);
            expect(events.filter(({ type }) => type === "run.resuming").length).toBe(
              mode === "branch" ? 1 : 0,
            );
          }
          await next.host.stop();
        }
    },
  );

  test("is taken over by two processes at once, and has one log", async () => {
    const { scene, sourceRunId } = await createLongRun();
    const { ledger, clock } = scene;
    let appends = 0;
    const dying: WorkflowScene = createWorkflowScene({
      ledger,
      clock,
      pid: 11,
      settings: MANY,
      faults: { after: () => ((appends += 1) === 1 ? dying.die() : undefined) },
    });
    await dying.host.fork(ALICE, { sourceRunId, mode: "replay" }).catch(() => undefined);
    await dying.settle();
    const runId = [...ledger.runs.keys()].find((id) => id !== sourceRunId) ?? "";
    expect(countEvents(ledger, runId)).toBeLessThan(countEvents(ledger, sourceRunId));
    const alive = new Set([12, 13]);
    const both = [12, 13].map((pid) => createWorkflowScene({ ledger, clock, pid, alive, settings: MANY }));
    await Promise.all(both.map(({ host }) => host.start()));
    for (const each of both) await each.settle();
    expectReplayOf(ledger, runId, sourceRunId);
  });

  test("lets whoever asks it for something wait until it has taken them", async () => {
    const { scene, sourceRunId } = await createLongRun();
    const length = countEvents(scene.ledger, sourceRunId) - 1;
    const forked = await scene.host.fork(ALICE, { sourceRunId, mode: "branch", fromSeq: length });
    const runId = forked.kind === "done" ? forked.value.runId : "";
    expect(countEvents(scene.ledger, runId)).toBeLessThan(length);
    expect(await scene.status(runId)).toBe("running");
    const cancelled = await scene.host.cancel(ALICE, runId, {});
    expect(countEvents(scene.ledger, runId)).toBeGreaterThanOrEqual(length);
    expect(codeOf(cancelled)).toBe("done");
  });

  test.each([1, 2])(
    "is running meanwhile, whatever it goes through: with %i open questions",
    async (gates) => {
      const asking = createWorkflow("asking", {
        nodes: [
          ...Array.from({ length: gates }, (_, index) => createNode(`gate${index}`, "core.approvalGate")),
          ...[createNode("a"), createNode("b")],
        ],
        edges: [createEdge("a>b"), createEdge("b>a")],
        settings: { maxLoopbackIterations: 600 },
      });
      const statuses: string[] = [];
      const faults: SceneOptions["faults"] = { after: ({ summary }) => void statuses.push(summary.status) };
      const scene = createWorkflowScene({ definitions: [asking], settings: MANY, faults });
      const sourceRunId = await scene.run("asking");
      await scene.clock.advance(1);
      statuses.length = 0;
      await forkIn(scene, { sourceRunId, mode: "replay" });
      expect(statuses.length).toBeGreaterThanOrEqual(3);
      expect(new Set(statuses.slice(0, -1))).toEqual(new Set(["running"]));
    },
  );

  test("takes at once what was one append, though that is longer than a page", async () => {
    const wide = createWorkflow("wide", {
      nodes: Array.from({ length: 1_000 }, (_, index) =>
        createNode(`n${index}`, "core.delay", { delayMs: 60_000 }),
      ),
    });
    const scene = createWorkflowScene({ definitions: [wide] });
    const sourceRunId = await scene.run("wide", { configurable: { runTimeoutMs: 1_000 } });
    await scene.clock.advance(2_000);
    expect(scene.types(sourceRunId).slice(-2)).toEqual(["node.cancelled", "run.failed"]);
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId, mode: "replay" }), sourceRunId);
  });

  test("stops between two of them with its host, and goes on with the next", async () => {
    const { scene, sourceRunId } = await createLongRun();
    const { ledger, clock } = scene;
    const first = createWorkflowScene({ ledger, clock, pid: 11, settings: MANY });
    const forked = await first.host.fork(ALICE, { sourceRunId, mode: "replay" });
    await first.host.stop();
    const runId = forked.kind === "done" ? forked.value.runId : "";
    expect(countEvents(ledger, runId)).toBeGreaterThan(0);
    expect(countEvents(ledger, runId)).toBeLessThan(countEvents(ledger, sourceRunId));
    const second = createWorkflowScene({ ledger, clock, pid: 12, settings: MANY });
    await second.host.start();
    await second.settle();
    expectReplayOf(ledger, runId, sourceRunId);
  });
});
