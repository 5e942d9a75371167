import { describe, expect, test } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { listEvents, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const HOUR_MS = 3_600_000;
const keep = (content: string, more: Readonly<Record<string, unknown>> = {}) =>
  createWorkflow(content, { nodes: [createNode("write", "openclaw.memory.write", { content, ...more })] });
const DEFINITIONS = [keep("kept"), keep("brief", { ttlMs: HOUR_MS })];

/** Entries in the ledger, expired or not. */
function listContents({ ledger }: WorkflowScene): string[] {
  return ledger.entries.map(({ entry }) => entry.content);
}

describe("what expired in memory", () => {
  test("is deleted when the retention is over, while the host lives, and not before", async () => {
    const scene = createWorkflowScene({ definitions: DEFINITIONS, retentionMs: 24 * HOUR_MS });
    await scene.host.start();
    const runIds = [await scene.run("kept"), await scene.run("brief")];
    const logs = runIds.map((runId) => scene.events(runId));
    scene.clock.jump(scene.clock.now() + 25 * HOUR_MS - 10_000);
    await scene.clock.advance(9_000);
    expect(listContents(scene)).toEqual(["kept", "brief"]);
    await scene.clock.advance(5_000);
    expect(listContents(scene)).toEqual(["kept"]);
    expect(runIds.map((runId) => listEvents(scene.ledger, runId))).toEqual(logs);
    await scene.host.stop();
  });

  test("is deleted by a host that starts later", async () => {
    const first = createWorkflowScene({ definitions: DEFINITIONS });
    await first.run("brief");
    first.clock.jump(first.clock.now() + 8 * 24 * HOUR_MS);
    const second = createWorkflowScene({ clock: first.clock, ledger: first.ledger });
    expect(listContents(second)).toEqual(["brief"]);
    await second.host.start();
    expect(listContents(second)).toEqual([]);
    await second.host.stop();
  });
});
