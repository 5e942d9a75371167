import { describe, expect, test } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Caller } from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  codeOf,
  listEvents,
  MALLORY,
  valueOf,
  createWorkflowScene,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const { workspaceFileBytesMax, workspaceFilesMax } = WORKFLOW_BOUNDS;

type JsonFields = Readonly<Record<string, unknown>>;

const createVariable = (variableName: string): JsonFields => ({ type: "variable", variableName });

/** Writes what its run's inputs say. */
const writer = createWorkflow("writer", {
  nodes: [
    createNode(
      "file",
      "openclaw.workspace.write",
      {},
      {
        inputs: {
          path: createVariable("path"),
          content: createVariable("content"),
          contentType: createVariable("contentType"),
          ifVersion: createVariable("ifVersion"),
        },
      },
    ),
  ],
  variables: { path: undefined, content: undefined, contentType: undefined, ifVersion: undefined },
});

async function put(scene: WorkflowScene, path: string, content: string): Promise<void> {
  valueOf(await scene.host.workspace(ALICE).write(path, { content }));
}

async function contentOf(scene: WorkflowScene, path: string): Promise<string> {
  const read = await scene.host.workspace(ALICE).read(path);
  return read.kind === "done" ? read.value.content : read.code;
}

async function runOutcome(scene: WorkflowScene, inputs: JsonFields): Promise<unknown> {
  const runId = await scene.run("writer", { inputs });
  await scene.settle();
  const snapshot = await scene.snapshot(runId);
  const [written] = scene.payloads(runId, "workspace.updated");
  return (snapshot["error"] as { code: string } | undefined)?.code ?? written;
}

test("files of a tenant are stored where those of every release are", async () => {
  const scene = createWorkflowScene();
  await put(scene, "notes.md", "kept");
  const stored = await scene.ledger.open().workspace.list({ tenant: ALICE.tenant, scope: "own" }, {});
  expect(stored).toMatchObject([{ path: "notes.md", version: 1 }]);
});

describe("openclaw.workspace.write", () => {
  test("writes a text as it is, and anything else as JSON, as the file's next version", async () => {
    const scene = createWorkflowScene({ definitions: [writer] });
    expect(await runOutcome(scene, { path: "a", content: "text" })).toEqual({ path: "a", version: 1 });
    expect(await runOutcome(scene, { path: "a", content: { b: [1] } })).toEqual({ path: "a", version: 2 });
    expect(await contentOf(scene, "a")).toBe('{"b":[1]}');
    expect(await runOutcome(scene, { path: "a", content: "" })).toEqual({ path: "a", version: 3 });
    expect(await runOutcome(scene, { path: "a", content: "x", contentType: null })).toMatchObject({
      version: 4,
    });
    const info = valueOf(await scene.host.workspace(ALICE).list({}));
    expect(info).toMatchObject([{ path: "a", version: 4, contentType: "text/markdown" }]);
  });

  test("fails with what is wrong, and writes nothing", async () => {
    const scene = createWorkflowScene({ definitions: [writer] });
    await put(scene, "old", "1");
    const wrong: readonly [JsonFields, string][] = [
      [{ content: "x" }, "workspace_path_invalid"],
      [{ path: 5, content: "x" }, "workspace_path_invalid"],
      [{ path: "../up", content: "x" }, "workspace_path_invalid"],
      [{ path: "a" }, "workspace_content_missing"],
      [{ path: "a", content: "x".repeat(workspaceFileBytesMax + 1) }, "workspace_too_large"],
      [{ path: "old", content: "x", ifVersion: 0 }, "workspace_conflict"],
      [{ path: "old", content: "x", ifVersion: 2 }, "workspace_conflict"],
      [{ path: "new", content: "x", ifVersion: 1 }, "workspace_conflict"],
      [{ path: "old", content: "x", ifVersion: "1" }, "workspace_version_invalid"],
      [{ path: "old", content: "x", ifVersion: -1 }, "workspace_version_invalid"],
      [{ path: "old", content: "x", contentType: "a\r\nb: c" }, "workspace_content_type_invalid"],
    ];
    for (const [inputs, code] of wrong) expect(await runOutcome(scene, inputs)).toBe(code);
    expect(valueOf(await scene.host.workspace(ALICE).list({})).map(({ path }) => path)).toEqual(["old"]);
    expect(await contentOf(scene, "old")).toBe("1");
    expect(await runOutcome(scene, { path: "old", content: "2", ifVersion: 1 })).toMatchObject({
      version: 2,
    });
    expect(await runOutcome(scene, { path: "new", content: "x", ifVersion: 0 })).toMatchObject({
      version: 1,
    });
    valueOf(await scene.host.workspace(ALICE).remove("new", {}));
    expect(await runOutcome(scene, { path: "new", content: "x", ifVersion: 0 })).toMatchObject({
      version: 3,
    });
  });

  test("is refused before a run begins where its configuration cannot be right", async () => {
    const scene = createWorkflowScene();
    for (const [typeId, config] of [
      ["openclaw.workspace.write", { path: "/up" }],
      ["openclaw.workspace.write", { path: "a", contentType: "nonsense" }],
      ["openclaw.workspace.write", { path: "a", ifVersion: -1 }],
      ["openclaw.workspace.read", { paths: [5] }],
      ["openclaw.workspace.read", { path: "a..b" }],
    ] as const) {
      const definition = createWorkflow("wrong", { nodes: [createNode("file", typeId, config)] });
      expect(codeOf(await scene.host.register(ALICE, definition))).toBe("validation_error");
    }
  });

  test("finds no room beyond so many files, in a workspace that is full", async () => {
    const scene = createWorkflowScene({ definitions: [writer] });
    for (let index = 0; index < workspaceFilesMax; index += 1) await put(scene, `f${index}`, "");
    expect(await runOutcome(scene, { path: "more", content: "" })).toBe("workspace_too_large");
    expect(await runOutcome(scene, { path: "f1", content: "x" })).toMatchObject({ version: 2 });
  });

  test("of many runs at once makes a version for each, and each log tells which one is its own", async () => {
    const clock = createFakeClock();
    const scene = createWorkflowScene({ definitions: [writer], clock });
    const many = 24;
    const created = await Promise.all(
      Array.from({ length: many }, (_, index) =>
        scene.host.create(ALICE, {
          workflowId: "writer",
          inputs: { path: "shared", content: `by ${index}` },
          transport: "rest",
        }),
      ),
    );
    // Whoever lost every race looks again a little later.
    await clock.advance(30_000);
    const versions = await Promise.all(
      created.map(async (each, index) => {
        const { runId } = valueOf(each);
        expect(await scene.status(runId)).toBe("completed");
        const [report] = scene.payloads(runId, "workspace.updated");
        const read = await scene.host.workspace(ALICE).read("shared", report?.version);
        expect(valueOf(read).content).toBe(`by ${index}`);
        return report?.version ?? 0;
      }),
    );
    expect(versions.toSorted((one, other) => one - other)).toEqual(versions.map((_, index) => index + 1));
  });

  test("is there once, with its event, at whichever append its process dies", async () => {
    const twice = createWorkflow("twice", {
      nodes: [
        createNode("one", "openclaw.workspace.write", { path: "a", content: "1" }),
        createNode("two", "openclaw.workspace.write", { path: "a", content: "2" }),
      ],
      edges: chain("one>two"),
    });
    const counted = { appends: 0 };
    const undisturbed = createWorkflowScene({
      definitions: [twice],
      faults: { before: () => (counted.appends += 1) },
    });
    await undisturbed.run("twice");
    await undisturbed.settle();
    expect(counted.appends).toBeGreaterThan(2);
    for (let k = 1; k <= counted.appends; k += 1)
      for (const when of ["before", "after"] as const) {
        const shared = {
          ledger: createMemoryWorkflowLedger(),
          clock: createFakeClock(),
          definitions: [twice],
        };
        let count = 0;
        const dieAt = (at: typeof when): void => {
          if (count === k && at === when) first.die();
        };
        const faults = {
          before: () => {
            count += 1;
            dieAt("before");
          },
          after: () => {
            dieAt("after");
          },
        };
        const first: WorkflowScene = createWorkflowScene({ ...shared, pid: 1, faults });
        await first.run("twice").catch(() => undefined);
        await first.settle();
        expect(first.isAlive).toBe(false);
        const second = createWorkflowScene({ ...shared, pid: 2 });
        await second.host.start();
        for (let round = 0; round < 4; round += 1) await second.settle();
        for (const runId of shared.ledger.runs.keys()) {
          const events = listEvents(shared.ledger, runId).filter(({ type }) => type === "workspace.updated");
          expect(events.map(({ payload }) => payload)).toEqual([
            { path: "a", version: 1 },
            { path: "a", version: 2 },
          ]);
          expect(await second.status(runId)).toBe("completed");
          expect(await contentOf(second, "a")).toBe("2");
        }
      }
  });
});

describe("openclaw.workspace.read", () => {
  test("reads one file, those of some paths, or all, as they were when the run began", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("reads", {
          nodes: [
            createNode("gate", "core.approvalGate"),
            createNode("one", "openclaw.workspace.read", { path: "docs/a", into: "one" }),
            createNode("none", "openclaw.workspace.read", { path: "missing", into: "none" }),
            createNode("some", "openclaw.workspace.read", { paths: ["docs/"], into: "some" }),
            createNode("all", "openclaw.workspace.read", { into: "all" }),
          ],
          edges: chain("gate>one>none>some>all"),
        }),
      ],
    });
    for (const path of ["docs/a", "docs/b", "other"]) await put(scene, path, `in ${path}`);
    const runId = await scene.run("reads");
    await put(scene, "docs/a", "later");
    await put(scene, "docs/c", "later");
    await scene.answer(runId, "gate", { action: "accept" });
    await scene.settle();
    await scene.settle();
    const { variables } = (await scene.snapshot(runId)) as unknown as { variables: JsonFields };
    const createFile = (path: string) => ({ path, version: 1, content: `in ${path}` });
    expect(variables).toEqual({
      one: createFile("docs/a"),
      none: null,
      some: [createFile("docs/a"), createFile("docs/b")],
      all: [createFile("docs/a"), createFile("docs/b"), createFile("other")],
    });
  });
});

test("what turns were given is told to nobody of another tenant", async () => {
  const scene = createWorkflowScene({ definitions: [writer] });
  const runId = await scene.run("writer", { inputs: { path: "a.md", content: "mine" } });
  const listSeen = async (caller: Caller) =>
    codeOf((await scene.host.seams?.turnWorkspaces(caller, runId)) ?? GONE);
  expect(await listSeen(ALICE)).toBe("done");
  expect(await listSeen(MALLORY)).toBe("not_found");
});

const GONE = { kind: "refused", code: "unavailable", message: "there are no seams" } as const;
