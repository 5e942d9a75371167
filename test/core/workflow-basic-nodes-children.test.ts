/** Owns: what goes into a child run and what comes back, and the drafts with which nodes end. */
import { describe, expect, it } from "vitest";
import { Map as ImmutableMap } from "immutable";
import {
  createChildEffect,
  draftChildGaveUp,
  draftHarvestedChanges,
  mapChildInputs,
  readNameMapping,
  readPeerUrl,
} from "../../src/agents/coordination/workflow/nodes/child-run.ts";
import {
  draftVariableChange,
  draftNodeCompleted,
  draftNodeFailed,
  draftFailedOutcome,
} from "../../src/agents/coordination/workflow/nodes/ends.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createVariable, createView, REPLAY_ORIGIN, type Scene } from "./workflow-node-view-scene.ts";

const VARIABLES: Scene = {
  variables: [createVariable("color", { defaultValue: "red" }), createVariable("size")],
  run: { variables: ImmutableMap<string, unknown>({ shape: "round", none: null }) },
};

describe("a mapping between a run and its child", () => {
  it.each<[value: unknown, mapping: Values]>([
    [
      { a: "b", c: 5, d: null, e: "f" },
      { a: "b", e: "f" },
    ],
    [undefined, {}],
    [null, {}],
    [["b"], {}],
    ["b", {}],
  ])("is of %j: %j", (value, mapping) => {
    expect(readNameMapping(value)).toStrictEqual(mapping);
  });
});

describe("what a child is given", () => {
  it("has the values of the parent's variables by the child's names, and nothing that is not set", () => {
    const mapping = { paint: "color", form: "shape", nothing: "none", width: "size", other: "unknown" };
    expect(mapChildInputs(createView(VARIABLES), mapping)).toStrictEqual({
      paint: "red",
      form: "round",
      nothing: null,
    });
  });
});

describe("what comes back from a child", () => {
  it("changes the parent's variables, with what they were before where they were set", () => {
    const mapping = { color: "paint", size: "width" };
    expect(
      draftHarvestedChanges(createView(VARIABLES), mapping, { paint: "blue", width: 3, more: 1 }),
    ).toStrictEqual([
      {
        type: "variable.changed",
        nodeId: "a",
        payload: { name: "color", previous: "red", next: "blue", nodeId: "a" },
      },
      { type: "variable.changed", nodeId: "a", payload: { name: "size", next: 3, nodeId: "a" } },
    ]);
  });

  it("leaves alone what the child has not set", () => {
    const mapping = { color: "paint", size: "constructor", shape: "width" };
    expect(draftHarvestedChanges(createView(VARIABLES), mapping, { paint: undefined })).toEqual([]);
  });

  it("says which criteria a child did not meet that gave up", () => {
    const unmet = ["style"];
    const ended = { kind: "child_ended", status: "completed", variables: {} } as const;
    expect(draftChildGaveUp(createView(), "child-1", { ...ended, unmet })).toStrictEqual([
      { type: "coordination.child_gave_up", nodeId: "a", payload: { childRunId: "child-1", unmet } },
    ]);
    expect(draftChildGaveUp(createView(), "child-1", ended)).toEqual([]);
    expect(draftChildGaveUp(createView(), undefined, { ...ended, unmet })).toEqual([]);
  });
});

describe("the child run of a node", () => {
  const PLACE = {
    cause: "core.dispatch",
    workflowId: "writer",
    inputs: { topic: "bees" },
    ordinal: "1:0",
  } as const;
  const BARE = {
    kind: "run_child",
    id: "a:1:0",
    nodeId: "a",
    cause: "core.dispatch",
    workflowId: "writer",
    inputs: { topic: "bees" },
    ordinal: "a:1:0",
    memoryScope: "w",
  } as const;

  it("has the memory of its parent", () => {
    expect(createChildEffect(createView(), PLACE)).toStrictEqual(BARE);
  });

  it("has what is known of it before, and the scopes that it may have", () => {
    const more = { childRunId: "child-1", principalScope: ["read"] };
    expect(createChildEffect(createView(), { ...PLACE, ...more })).toStrictEqual({ ...BARE, ...more });
  });

  it("has a memory of its own where the node isolates it", () => {
    const isolated = { memoryScope: "source-1:a:1:0", hasIsolatedMemory: true };
    const config = { memoryScopeIsolation: "isolated" };
    expect(createChildEffect(createView({ config, run: { origin: REPLAY_ORIGIN } }), PLACE)).toStrictEqual({
      ...BARE,
      ...isolated,
    });
  });

  it("shares its parent's memory where the node says anything else, and stays isolated with it", () => {
    const config = { memoryScopeIsolation: "shared" };
    const started = { memoryScope: "parent:a", hasIsolatedMemory: true } as const;
    expect(createChildEffect(createView({ config, started }), PLACE)).toStrictEqual({ ...BARE, ...started });
  });

  it("runs on the other host that is named", () => {
    const peerUrl = "https://peer.example";
    expect(createChildEffect(createView({ config: { peerUrl } }), PLACE)).toStrictEqual({ ...BARE, peerUrl });
  });
});

describe("the other host of a child", () => {
  const PORT: Scene = { members: { inputs: { peerUrl: { type: "static", value: "port" } } } };

  it.each<[title: string, scene: Scene, url: string | undefined]>([
    ["that of its port", { ...PORT, config: { peerUrl: "config" } }, "port"],
    [
      "that of its configuration",
      { config: { peerUrl: "config" }, started: { inputs: { peerUrl: "run" } } },
      "config",
    ],
    ["that of the run's caller", { started: { inputs: { peerUrl: "run" } } }, "run"],
    ["none where the name is empty", { config: { peerUrl: "" } }, undefined],
    ["none where the name is no text", { config: { peerUrl: 5 } }, undefined],
    ["none where nobody names one", {}, undefined],
    [
      "none that only a variable has, which may have come back from somewhere",
      { run: { variables: ImmutableMap({ peerUrl: "variable" }) } },
      undefined,
    ],
  ])("is %s", (_title, scene, url) => {
    expect(readPeerUrl(createView(scene))).toBe(url);
  });
});

describe("the end of a node", () => {
  const ERROR = { code: "broken", message: "it broke" };
  const FAILED = { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: ERROR } };

  it("changes a variable, with what it was before where it was set", () => {
    const view = createView(VARIABLES);
    expect(draftVariableChange(view, "color", "blue")).toStrictEqual({
      type: "variable.changed",
      nodeId: "a",
      payload: { name: "color", previous: "red", next: "blue", nodeId: "a" },
    });
    expect(draftVariableChange(view, "size", 3)).toStrictEqual({
      type: "variable.changed",
      nodeId: "a",
      payload: { name: "size", next: 3, nodeId: "a" },
    });
  });

  it("has outputs where it completed", () => {
    expect(draftNodeCompleted(createView(), { text: "hi" })).toStrictEqual({
      type: "node.completed",
      nodeId: "a",
      payload: { nodeId: "a", outputs: { text: "hi" } },
    });
  });

  it("has an error where it failed, or where what it asked for did", () => {
    expect(draftNodeFailed(createView(), ERROR)).toStrictEqual(FAILED);
    expect(draftFailedOutcome(createView(), { kind: "failed", error: ERROR })).toStrictEqual([FAILED]);
    expect(draftFailedOutcome(createView(), { kind: "child_refused", error: ERROR })).toEqual([]);
  });
});
