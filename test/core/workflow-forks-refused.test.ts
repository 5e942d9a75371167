import { describe, expect, test } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import { expectReplayOf, countEvents } from "../support/forks.ts";
import { createEdge, createNode, createWorker, createWorkflow } from "../support/workflow-definitions.ts";
import type { Caller } from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import {
  ALICE,
  BOB,
  codeOf,
  MALLORY,
  valueOf,
  createWorkflowScene,
  type SceneOptions,
} from "../support/workflow-scene.ts";

const createScene = (options: SceneOptions = {}) =>
  createWorkflowScene({ definitions: [createWorker("plain")], ...options });

describe("forking", () => {
  test("is refused in order: the run, the request, the place, the time", async () => {
    const scene = createScene({ retentionMs: 1_000 });
    const sourceRunId = await scene.run("plain");
    const length = countEvents(scene.ledger, sourceRunId);
    const fork = async (request: object, caller = ALICE) =>
      codeOf(await scene.host.fork(caller, { sourceRunId, mode: "branch", fromSeq: length, ...request }));
    await scene.clock.advance(1_001);
    expect(await fork({ sourceRunId: "nobody", fromSeq: -1 })).toBe("not_found");
    expect(await fork({ fromSeq: -1 }, MALLORY)).toBe("not_found");
    for (const fromSeq of [-1, 0.5, Number.NaN]) expect(await fork({ fromSeq })).toBe("validation_error");
    expect(await fork({ fromSeq: undefined })).toBe("validation_error");
    expect(await fork({ mode: "replay", overlay: { tags: [] } })).toBe("validation_error");
    expect(await fork({ fromSeq: 1, overlay: { metadata: {} } })).toBe("validation_error");
    expect(await fork({ fromSeq: length + 1 })).toBe("invalid_from_seq");
    expect(await fork({ mode: "replay", fromSeq: length + 1 })).toBe("invalid_from_seq");
    expect(await fork({})).toBe("replay_memory_snapshot_unavailable");
    expect(scene.ledger.runs.size).toBe(1);
  });

  test("refuses options that the source could not have had either", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("plain");
    const fork = (configurable: object) =>
      scene.host.fork(ALICE, {
        sourceRunId,
        mode: "branch",
        fromSeq: 1,
        overlay: { configurable: { ...configurable } },
      });
    expect(codeOf(await fork({ recursionLimit: 0 }))).toBe("validation_error");
    expect(codeOf(await fork({ recursionLimit: 1, anything: { else: 1 } }))).toBe("done");
  });

  test.each([0, 1])(
    "a branch from %i is refused options that are too many together with its source's",
    async (fromSeq) => {
      const scene = createScene();
      const createOptions = (prefix: string) =>
        Object.fromEntries(Array.from({ length: 600 }, (_, number) => [`${prefix}${number}`, number]));
      const sourceRunId = await scene.run("plain", { configurable: createOptions("source") });
      const fork = (prefix: string) =>
        scene.host.fork(ALICE, {
          sourceRunId,
          mode: "branch",
          fromSeq,
          overlay: { configurable: createOptions(prefix) },
        });
      expect(codeOf(await fork("branch"))).toBe("validation_error");
      expect(codeOf(await fork("source"))).toBe("done");
    },
  );

  test("a branch from 0 is refused options that are too long together with what its source was asked for", async () => {
    const scene = createScene();
    const createText = (share: number): string => "x".repeat(share * WORKFLOW_BOUNDS.eventCharsMax);
    const sourceRunId = await scene.run("plain", { inputs: {}, metadata: { text: createText(0.6) } });
    const fork = (share: number) =>
      scene.host.fork(ALICE, {
        sourceRunId,
        mode: "branch",
        fromSeq: 0,
        overlay: { configurable: { text: createText(share) } },
      });
    expect(codeOf(await fork(0.6))).toBe("validation_error");
    expect(codeOf(await fork(0.2))).toBe("done");
  });

  test("a branch from later on is not refused for what its first events, which are its source's, say beside the options", async () => {
    const scene = createScene();
    const createText = (chars: number): string => "x".repeat(chars);
    const rest = WORKFLOW_BOUNDS.eventCharsMax * 0.8;
    const sourceRunId = await scene.run("plain", { inputs: {}, metadata: { text: createText(rest) } });
    const overlay = { configurable: { text: createText(WORKFLOW_BOUNDS.eventCharsMax * 0.4) } };
    const fork = (fromSeq: number) =>
      scene.host.fork(ALICE, { sourceRunId, mode: "branch", fromSeq, overlay });
    expect(codeOf(await fork(0))).toBe("validation_error");
    expect(codeOf(await fork(1))).toBe("done");
  });

  test("a branch acts with the scopes of its source: whoever lacks one of them may only replay it", async () => {
    const scene = createScene();
    const payer = { ...ALICE, scopes: ["money", "mail"] };
    const sourceRunId = await scene.run("plain", {}, payer);
    const fork = async (caller: Caller, mode: "replay" | "branch", source = sourceRunId) =>
      scene.host.fork(caller, { sourceRunId: source, mode, fromSeq: 0 });
    const poor = { ...BOB, scopes: ["mail"] };
    expect(codeOf(await fork(BOB, "branch"))).toBe("forbidden");
    expect(codeOf(await fork(poor, "branch"))).toBe("forbidden");
    expect(codeOf(await fork({ ...BOB, scopes: ["mail", "money", "more"] }, "branch"))).toBe("done");
    const { runId } = valueOf(await fork(poor, "replay"));
    await scene.settle();
    expect(codeOf(await fork(poor, "branch", runId))).toBe("forbidden");
    expect(codeOf(await fork(payer, "branch", runId))).toBe("done");
  });

  test("goes so deep and no deeper: a replay of a replay is a fork of a fork too", async () => {
    const scene = createScene();
    let sourceRunId = await scene.run("plain");
    const fork = (mode: "replay" | "branch") => scene.host.fork(ALICE, { sourceRunId, mode, fromSeq: 1 });
    for (let depth = 1; depth <= WORKFLOW_BOUNDS.forksMax; depth += 1) {
      sourceRunId = valueOf(await fork(depth % 2 === 0 ? "branch" : "replay")).runId;
      await scene.settle();
    }
    expect(codeOf(await fork("replay"))).toBe("validation_error");
    expect(codeOf(await fork("branch"))).toBe("validation_error");
  });

  test("twice under one id is once", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("plain");
    const request = { sourceRunId, mode: "replay", runId: "run-mine" as never } as const;
    const both = await Promise.all([scene.host.fork(ALICE, request), scene.host.fork(ALICE, request)]);
    expect(both[0]).toEqual(both[1]);
    expect(await scene.host.fork(ALICE, request)).toEqual(both[0]);
    expect(codeOf(await scene.host.fork(ALICE, { ...request, fromSeq: 1 }))).toBe("run_already_active");
    expectReplayOf(scene.ledger, "run-mine", sourceRunId);
  });

  test("is refused where the source's log is damaged before the place, with what and where", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("plain");
    const { events = [] } = scene.ledger.runs.get(sourceRunId as never) ?? {};
    events[2] = (events[2] ?? "").replace('"outputs":{', '"outputs":{"forged":1,').replace(",}", "}");
    const fork = (mode: "replay" | "branch", fromSeq: number) =>
      scene.host.fork(ALICE, { sourceRunId, mode, fromSeq });
    for (const [mode, fromSeq] of [
      ["replay", 0],
      ["branch", 3],
    ] as const)
      expect(await fork(mode, fromSeq)).toMatchObject({
        kind: "refused",
        code: "replay_memory_snapshot_unavailable",
        details: {
          sourceRunId,
          fromSeq,
          reason: "event_log_unavailable",
          sequence: 2,
          newestAvailableIdx: 2,
        },
      });
  });
});

/** More events than a fork takes at once. */
const LONG = createWorkflow("long", {
  nodes: [createNode("a"), createNode("b")],
  edges: [createEdge("a>b"), createEdge("b>a")],
  settings: { maxLoopbackIterations: 600 },
});
const createLongScene = (options: SceneOptions = {}) =>
  createWorkflowScene({ definitions: [LONG], settings: { nodeExecutionsMax: 5_000 }, ...options });

test.each(["replay", "branch"] as const)(
  "a %s that was begun in time takes all its events, though the retention of its source ends meanwhile",
  async (mode) => {
    const scene = createLongScene({ retentionMs: 60_000 });
    const sourceRunId = await scene.run("long");
    await scene.clock.advance(1);
    const fromSeq = mode === "replay" ? 0 : countEvents(scene.ledger, sourceRunId);
    const runId = valueOf(await scene.host.fork(ALICE, { sourceRunId, mode, fromSeq })).runId;
    expect(scene.ledger.runs.get(runId as never)?.events.length ?? 0).toBeLessThan(2_000);
    scene.clock.jump(scene.clock.now() + 3_600_000);
    await scene.settle();
    expectReplayOf(scene.ledger, runId, sourceRunId);
    expect(codeOf(await scene.host.fork(ALICE, { sourceRunId, mode, fromSeq }))).toBe(
      "replay_memory_snapshot_unavailable",
    );
  },
);

test("a fork whose source is damaged while it takes its events ends by that", async () => {
  const scene = createLongScene();
  const sourceRunId = await scene.run("long");
  await scene.clock.advance(1);
  const length = countEvents(scene.ledger, sourceRunId);
  for (const mode of ["replay", "branch"] as const) {
    const forked = await scene.host.fork(ALICE, { sourceRunId, mode, fromSeq: length });
    const source = scene.ledger.runs.get(sourceRunId as never);
    const removed = source?.events.splice(1_500) ?? [];
    await scene.settle();
    source?.events.push(...removed);
    const runId = forked.kind === "done" ? forked.value.runId : "";
    expect((await scene.snapshot(runId))["error"]).toMatchObject({
      code: "replay_source_missing",
      message: expect.stringMatching(/event \d+ is missing/) as string,
    });
  }
});
