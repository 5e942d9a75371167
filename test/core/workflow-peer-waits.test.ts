/**
 * Owns: a child on another host that its parent waited for in vain, which is ended there and counts as failed here, and one
 * that nobody waits for, which is left alone.
 */
import { describe, expect, test } from "vitest";
import type { PeerRunRequest } from "../../src/agents/coordination/ports/outbound.ts";
import { countEvents, expectReplayOf, forkIn } from "../support/forks.ts";
import { createNode, createWorkflow, type SmallWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, createWorkflowScene, type SceneOptions } from "../support/workflow-scene.ts";

interface Caller {
  readonly settings?: SmallWorkflow["settings"];
  /** Nodes beside the one that calls. */
  readonly beside?: SmallWorkflow["nodes"];
  /** When the peer answers that it has created a run. */
  readonly answered?: Promise<undefined>;
}

/** A peer that takes runs and is away when it is asked for the end of the first of them. */
function createAwayScene(
  config: Readonly<Record<string, unknown>>,
  { settings = {}, beside = [], answered }: Caller = {},
) {
  const requests: string[] = [];
  const away = Promise.withResolvers<undefined>();
  let created = 0;
  const scene = createWorkflowScene({
    definitions: [
      createWorkflow("far", {
        nodes: [
          createNode("call", "core.subWorkflow", {
            workflowId: "there",
            peerUrl: "https://peer.test",
            ...config,
          }),
          ...beside,
        ],
        settings,
      }),
    ],
    peers: {
      createRun: async () => {
        created += 1;
        requests.push(`create theirs-${created}`);
        const runId = `theirs-${created}`;
        await answered;
        return { kind: "created", runId, status: "running" };
      },
      awaitEnd: async (_, runId, signal) => {
        if (signal.aborted) return { kind: "unknown", code: "aborted", message: "the wait was given up" };
        requests.push(`await ${runId}`);
        if (runId !== "theirs-1")
          return { kind: "ended", status: "completed", outputs: {}, variables: { result: "late" } };
        await away.promise;
        return { kind: "unknown", code: "unreachable", message: "the peer is away" };
      },
      cancel: (_, runId, { reason = "" }) => {
        requests.push(`cancel ${runId}: ${reason}`);
        return Promise.resolve({ kind: "cancelling", status: "cancelling" });
      },
    },
  });
  return { scene, requests, leave: away.resolve };
}

describe("a child on a peer that is waited for in vain", () => {
  test("is cancelled there before another one takes its place", async () => {
    const { scene, requests, leave } = createAwayScene({}, { settings: { maxRetries: 1 } });
    const runId = await scene.run("far");
    leave(undefined);
    await scene.settle();
    expect(requests).toEqual([
      "create theirs-1",
      "await theirs-1",
      "cancel theirs-1: parent-gave-up",
      "create theirs-2",
      "await theirs-2",
    ]);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("counts as a child that failed, with what its parent makes of one", async () => {
    const { scene, leave } = createAwayScene({ onChildFailure: "absorb", outputMapping: { got: "result" } });
    const runId = await scene.run("far");
    leave(undefined);
    await scene.settle();
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "node.completed")).toMatchObject([
      { outputs: { childRunId: "theirs-1", childStatus: "failed" } },
    ]);
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });

  test("fails its node where nothing is made of that, and says why", async () => {
    const { scene, leave } = createAwayScene({});
    const runId = await scene.run("far");
    leave(undefined);
    await scene.settle();
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "child_failed", message: "the child run failed: the peer is away" },
    });
  });

  test("is left alone by a fork, whose source began it", async () => {
    const { scene, requests, leave } = createAwayScene({});
    const sourceRunId = await scene.run("far");
    const fromSeq = countEvents(scene.ledger, sourceRunId);
    const fork = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
    leave(undefined);
    await scene.settle();
    expect(await scene.status(fork)).toBe("failed");
    expect(requests.filter((each) => each.startsWith("cancel"))).toHaveLength(1);
  });
});

test("a run that is cancelled while its child is created on a peer tells that it is over, and does not stop that", async () => {
  const requests: PeerRunRequest[] = [];
  const call = { workflowId: "there", peerUrl: "https://peer.test" };
  const scene = createWorkflowScene({
    definitions: [createWorkflow("far", { nodes: [createNode("call", "core.subWorkflow", call)] })],
    peers: {
      createRun: (_, request) => {
        requests.push(request);
        return new Promise(() => undefined);
      },
    },
  });
  const runId = await scene.run("far");
  expect(requests).toMatchObject([{ runSignal: { aborted: false }, signal: { aborted: false } }]);
  await scene.host.cancel(ALICE, runId, {});
  await scene.settle();
  expect(requests).toMatchObject([{ runSignal: { aborted: true }, signal: { aborted: false } }]);
});

test("a run that is taken up while its child is created on a peer says that the peer may have the child", async () => {
  const requests: PeerRunRequest[] = [];
  const call = { workflowId: "there", peerUrl: "https://peer.test" };
  const options: SceneOptions = {
    definitions: [createWorkflow("far", { nodes: [createNode("call", "core.subWorkflow", call)] })],
    peers: {
      createRun: (_, request) => {
        requests.push(request);
        return new Promise(() => undefined);
      },
    },
  };
  const scene = createWorkflowScene(options);
  await scene.run("far");
  scene.die();
  const next = createWorkflowScene({ ...options, ledger: scene.ledger, clock: scene.clock, pid: 2 });
  await next.host.start();
  await next.settle();
  const [first, second] = requests;
  expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
  expect([first?.mayBeStored, second?.mayBeStored]).toEqual([false, true]);
});

describe("a child on a peer that nobody waits for", () => {
  const free = { waitForCompletion: false };

  test("is left alone when its parent ends", async () => {
    const { scene, requests } = createAwayScene(free);
    const runId = await scene.run("far");
    expect(await scene.status(runId)).toBe("completed");
    expect(requests).toEqual(["create theirs-1"]);
  });

  test("is left alone when its parent is cancelled", async () => {
    const { scene, requests } = createAwayScene(free, { beside: [createNode("gate", "core.approvalGate")] });
    const runId = await scene.run("far");
    await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(await scene.status(runId)).toBe("cancelled");
    expect(requests).toEqual(["create theirs-1"]);
  });

  test("is cancelled where its parent was cancelled before it learned of the child", async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<undefined>();
    const { scene, requests } = createAwayScene(free, { answered });
    const runId = await scene.run("far");
    await scene.host.cancel(ALICE, runId, {});
    answer(undefined);
    await scene.settle();
    expect(requests).toContain("cancel theirs-1: parent-cancelled");
  });
});
