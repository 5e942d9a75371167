/** Forks of runs whose work is done on other hosts. */
import { describe, expect, test } from "vitest";
import type { PeerHosts } from "../../src/agents/coordination/ports/outbound.ts";
import { expectReplayOf, forkIn, lengthIn } from "../support/forks.ts";
import { chain, node, workflow } from "../support/workflow-definitions.ts";
import { ALICE, workflowScene } from "../support/workflow-scene.ts";

const FAR = workflow("far", {
  nodes: [
    node("call", "core.subWorkflow", { workflowId: "there", peerUrl: "https://peer.test" }),
    node("after"),
  ],
  edges: chain("call>after"),
});

function peerScene() {
  const asked: string[] = [];
  let end: (() => void) | undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const peers: Partial<PeerHosts> = {
    createRun: (_, { idempotencyKey }) => {
      asked.push(`create ${idempotencyKey}`);
      return Promise.resolve({ kind: "created", runId: `theirs-${asked.length}`, status: "running" });
    },
    awaitEnd: async (_, runId, signal) => {
      asked.push(`await ${runId}`);
      const gone = new Promise<"gone">((resolve) => {
        signal.addEventListener("abort", () => {
          resolve("gone");
        });
      });
      const how = await Promise.race([ended, gone]);
      return how === "gone"
        ? { kind: "refused", code: "aborted", message: "aborted" }
        : { kind: "ended", status: "completed", outputs: {}, variables: {} };
    },
    cancel: (_, runId) => {
      asked.push(`cancel ${runId}`);
      return Promise.resolve({ kind: "cancelling", status: "cancelling" });
    },
  };
  return { it: workflowScene({ definitions: [FAR], peers }), asked, end: () => end?.() };
}

describe("a run whose child is on another host", () => {
  test("is replayed without a word to that host", async () => {
    const { it, asked, end } = peerScene();
    const sourceRunId = await it.run("far");
    end();
    await it.settle();
    expect(await it.status(sourceRunId)).toBe("completed");
    const before = [...asked];
    for (let fromSeq = 0; fromSeq <= lengthIn(it.ledger, sourceRunId); fromSeq += 1)
      expectReplayOf(it.ledger, await forkIn(it, { sourceRunId, mode: "replay", fromSeq }), sourceRunId);
    expect(asked).toEqual(before);
  });

  test("branches: who waits for the source's child does not cancel it, who began one of its own does", async () => {
    const { it, asked } = peerScene();
    const sourceRunId = await it.run("far");
    const [created = ""] = asked;
    const waits = await forkIn(it, {
      sourceRunId,
      mode: "branch",
      fromSeq: lengthIn(it.ledger, sourceRunId),
    });
    const begins = await forkIn(it, { sourceRunId, mode: "branch", fromSeq: 2 });
    expect(asked.slice(1)).toEqual([
      "await theirs-1",
      "await theirs-1",
      expect.stringMatching(/^create /),
      "await theirs-4",
    ]);
    expect(asked[3]).not.toBe(created);
    for (const runId of [waits, begins]) await it.host.cancel(ALICE, runId, {});
    await it.settle();
    expect(asked.filter((each) => each.startsWith("cancel"))).toEqual(["cancel theirs-4"]);
    expect(await it.status(sourceRunId)).toBe("running");
  });
});
