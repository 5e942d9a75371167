/** Owns: requests to start a run that are repeated after the ledger committed an earlier try too late for it to know. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import type { SceneOptions, WorkflowScene } from "../support/workflow-scene.ts";
import { createPost } from "./http-fake-host.ts";
import { postKeyed, serveKeyed, type KeyedScene } from "./keyed-scene.ts";

/** A ledger that commits the first append only when the test says so, long after it has failed. */
function createLateCommit() {
  const late: WorkflowAppend[] = [];
  const faults: NonNullable<SceneOptions["faults"]> = {
    before: (request) => {
      if (late.length > 0) return;
      late.push(request);
      throw new CoordinationError("LEDGER_UNAVAILABLE", "the connection was lost");
    },
  };
  const commit = async ({ ledger }: WorkflowScene): Promise<void> => {
    for (const request of late) await ledger.open().append(request);
  };
  return { faults, commit };
}

async function postAgain(served: KeyedScene, path: string, body: unknown): Promise<string> {
  const again = await postKeyed(served, path, body);
  expect(again.status).toBe(201);
  return ((await again.json()) as { readonly runId: string }).runId;
}

describe("a keyed request whose run the ledger shows only long after the failure", () => {
  it("goes on with the run when it is sent again", async () => {
    const { faults, commit } = createLateCommit();
    const served = serveKeyed({ faults });
    const { scene } = served;
    expect((await postKeyed(served, "/v1/runs", { workflowId: "later" })).status).toBe(503);
    await scene.clock.advance(60_000);
    await commit(scene);
    const runId = await postAgain(served, "/v1/runs", { workflowId: "later" });
    await scene.clock.advance(1_000);
    expect([...scene.ledger.runs.keys()]).toEqual([runId]);
    expect(scene.types(runId)).toContain("interrupt.requested");
  });

  it("goes on with the fork when it is sent again", async () => {
    const faults: NonNullable<SceneOptions["faults"]> = {};
    const served = serveKeyed({ faults });
    const { scene } = served;
    const created = await served.face.app.request("/v1/runs", createPost({ workflowId: "later" }));
    const { runId: sourceRunId } = (await created.json()) as { readonly runId: string };
    const { faults: lateFaults, commit } = createLateCommit();
    Object.assign(faults, lateFaults);
    const [path, fork] = [`/v1/runs/${sourceRunId}:fork`, { mode: "branch", fromSeq: 1 }];
    expect((await postKeyed(served, path, fork)).status).toBe(503);
    await scene.clock.advance(60_000);
    await commit(scene);
    const runId = await postAgain(served, path, fork);
    await scene.clock.advance(1_000);
    expect([...scene.ledger.runs.keys()]).toEqual([sourceRunId, runId]);
    expect(scene.types(runId)).toContain("interrupt.requested");
  });

  it("leaves a run alone that is driven and waits for people", async () => {
    const { scene } = serveKeyed();
    const runId = await scene.run("gate", { runId: "run-gate" as CoordinationId });
    const types = scene.types(runId);
    expect(await scene.run("gate", { runId: "run-gate" as CoordinationId })).toBe(runId);
    expect(scene.types(runId)).toEqual(types);
  });
});
