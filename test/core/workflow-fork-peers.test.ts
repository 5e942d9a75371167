/** Forks of runs whose work is done on other hosts. */
import { describe, expect, test } from "vitest";
import type { PeerHosts } from "../../src/agents/coordination/ports/outbound.ts";
import { expectReplayOf, forkIn, countEvents } from "../support/forks.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, createWorkflowScene } from "../support/workflow-scene.ts";

const FAR = createWorkflow("far", {
  nodes: [
    createNode("call", "core.subWorkflow", { workflowId: "there", peerUrl: "https://peer.test" }),
    createNode("after"),
  ],
  edges: chain("call>after"),
});

function createPeerScene() {
  const requests: string[] = [];
  let end: (() => void) | undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const peers: Partial<PeerHosts> = {
    createRun: (_, { idempotencyKey }) => {
      requests.push(`create ${idempotencyKey}`);
      return Promise.resolve({ kind: "created", runId: `theirs-${requests.length}`, status: "running" });
    },
    awaitEnd: async (_, runId, signal) => {
      requests.push(`await ${runId}`);
      const vanished = new Promise<"gone">((resolve) => {
        signal.addEventListener("abort", () => {
          resolve("gone");
        });
      });
      const how = await Promise.race([ended, vanished]);
      return how === "gone"
        ? { kind: "refused", code: "aborted", message: "aborted" }
        : { kind: "ended", status: "completed", outputs: {}, variables: {} };
    },
    cancel: (_, runId) => {
      requests.push(`cancel ${runId}`);
      return Promise.resolve({ kind: "cancelling", status: "cancelling" });
    },
  };
  return {
    scene: createWorkflowScene({ definitions: [FAR], peers }),
    requests: requests,
    end: () => end?.(),
  };
}

describe("a run whose child is on another host", () => {
  test("is replayed without a word to that host", async () => {
    const { scene, requests, end } = createPeerScene();
    const sourceRunId = await scene.run("far");
    end();
    await scene.settle();
    expect(await scene.status(sourceRunId)).toBe("completed");
    const before = [...requests];
    for (let fromSeq = 0; fromSeq <= countEvents(scene.ledger, sourceRunId); fromSeq += 1)
      expectReplayOf(
        scene.ledger,
        await forkIn(scene, { sourceRunId, mode: "replay", fromSeq }),
        sourceRunId,
      );
    expect(requests).toEqual(before);
  });

  test("branches: who waits for the source's child does not cancel it, who began one of its own does", async () => {
    const { scene, requests } = createPeerScene();
    const sourceRunId = await scene.run("far");
    const [created = ""] = requests;
    const waits = await forkIn(scene, {
      sourceRunId,
      mode: "branch",
      fromSeq: countEvents(scene.ledger, sourceRunId),
    });
    const begins = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: 2 });
    expect(requests.slice(1)).toEqual([
      "await theirs-1",
      "await theirs-1",
      expect.stringMatching(/^create /),
      "await theirs-4",
    ]);
    expect(requests[3]).not.toBe(created);
    for (const runId of [waits, begins]) await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(requests.filter((each) => each.startsWith("cancel"))).toEqual(["cancel theirs-4"]);
    expect(await scene.status(sourceRunId)).toBe("running");
  });
});
