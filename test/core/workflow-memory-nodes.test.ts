/** Owns: what the nodes that keep something in memory record, ask for and tell. */
import { describe, expect, it } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  MemoryNote,
  NodeEffect,
  NodeStep,
  NodeType,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { clampEntryCount } from "../../src/agents/coordination/runtime/workflow-host/effects/perform-effects.ts";
import {
  identity,
  memoryRead,
  chooseMemoryScope,
  memoryWrite,
} from "../../src/agents/coordination/workflow/nodes/memory-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createVariable, createView, type Scene } from "./workflow-node-view-scene.ts";

const READ: NodeEffect = { kind: "read_memory", id: "a:1:read", nodeId: "a", scopes: ["w"] };
const HOUR_MS = 3_600_000;
const TEN_YEARS_MS = 10 * 366 * 24 * HOUR_MS;

function settle(
  type: NodeType,
  outcome: EffectOutcome,
  scene: Scene = {},
): readonly WorkflowDraft[] | undefined {
  return type.settle?.(createView(scene), READ, outcome);
}

function fail(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

function createChange(name: string, next: unknown): WorkflowDraft {
  return { type: "variable.changed", nodeId: "a", payload: { name, next, nodeId: "a" } };
}

function createEnd(outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs: { ...outputs } } };
}

/** The step that keeps one note, with `more` in its event. */
function createWriting(note: Partial<MemoryNote>, more: object = {}): NodeStep {
  const { scope = "w", tags = [] } = note;
  const payload = { memoryRef: scope, memoryId: "run-1:a:1:0", nodeId: "a", ...more };
  return {
    kind: "record",
    drafts: [{ nodeId: "a", type: "memory.written", payload }],
    memory: [{ content: "", ...note, scope, tags, id: "run-1:a:1:0" }],
  };
}

describe("the limit of a node that reads memory", () => {
  it.each([[undefined], [null], [1], [5_000]])("may be %s", (limit) => {
    const { node, graph, settings } = createView({ config: { limit } });
    expect(memoryRead.check?.(node, graph, settings)).toEqual([]);
  });

  it.each([[0], [-1], [1.5], [Infinity], ["5"]])("may not be %s", (limit) => {
    const { node, graph, settings } = createView({ config: { limit } });
    const problems = ["limit of node a is no whole number from 1 on"];
    expect(memoryRead.check?.(node, graph, settings)).toEqual(problems);
  });

  it.each([
    [undefined, 1_000],
    [5, 5],
    [1.5, 1],
    [0.5, 0],
    [-1, 0],
    [NaN, 0],
    [Infinity, 1_000],
    [1_001, 1_000],
  ])("of %s in a run that began before it was checked reads %d entries", (limit, count) => {
    expect(clampEntryCount(limit)).toBe(count);
  });
});

describe("a node that writes to memory", () => {
  it.each<[title: string, scene: Scene, note: Partial<MemoryNote>, more: object]>([
    ["the content of its configuration", { config: { content: "note" } }, { content: "note" }, {}],
    [
      "that of its port before that",
      { config: { content: "note" }, members: { inputs: { content: { type: "static", value: "port" } } } },
      { content: "port" },
      {},
    ],
    ["anything else as JSON", { config: { content: { a: [1] } } }, { content: '{"a":[1]}' }, {}],
    [
      "with its tags as texts",
      { config: { content: "n", tags: ["x", 2] } },
      { content: "n", tags: ["x", "2"] },
      { tags: ["x", "2"] },
    ],
    ["without tags that are no list", { config: { content: "n", tags: "x" } }, { content: "n" }, {}],
    [
      "for as long as it says",
      { config: { content: "n", ttlMs: TEN_YEARS_MS } },
      { content: "n", ttlMs: TEN_YEARS_MS },
      {},
    ],
    [
      "for a time that is over",
      { config: { content: "n", ttlMs: -TEN_YEARS_MS } },
      { content: "n", ttlMs: -TEN_YEARS_MS },
      {},
    ],
    ["for ever where its time is no number", { config: { content: "n", ttlMs: "5" } }, { content: "n" }, {}],
    [
      "for its agent",
      { config: { content: "n" }, members: { agent: { agentId: "acme.writer" } } },
      { content: "n" },
      { agentId: "acme.writer" },
    ],
    [
      "in the scope that it names",
      { config: { content: "n", memoryRef: "team" } },
      { content: "n", scope: "team" },
      {},
    ],
  ])("keeps %s", (_title, scene, note, more) => {
    expect(memoryWrite.step(createView(scene))).toStrictEqual(createWriting(note, more));
  });

  it("completes once it is kept, and does not keep it again", () => {
    const nodeRun = { memoryIds: ["run-1:a:1:0"] };
    expect(memoryWrite.step(createView({ nodeRun, config: { content: "n" } }))).toStrictEqual({
      kind: "complete",
      outputs: { memoryId: "run-1:a:1:0" },
    });
  });

  it.each<[config: Values, step: NodeStep]>([
    [{}, fail("memory_content_missing", "there is no content to keep")],
    [{ content: "n", ttlMs: TEN_YEARS_MS + 1 }, fail("memory_ttl_invalid", "ttlMs is beyond ten years")],
    [{ content: "n", ttlMs: -TEN_YEARS_MS - 1 }, fail("memory_ttl_invalid", "ttlMs is beyond ten years")],
    [{ content: "n", ttlMs: Number.NaN }, fail("memory_ttl_invalid", "ttlMs is beyond ten years")],
  ])("fails where nothing can be kept: %j", (config, step) => {
    expect(memoryWrite.step(createView({ config }))).toStrictEqual(step);
  });

  it("fails where the content has more bytes than an entry may have", () => {
    const most = WORKFLOW_BOUNDS.memoryEntryBytesMax;
    const write = (content: string): NodeStep => memoryWrite.step(createView({ config: { content } }));
    expect(write("é".repeat(most / 2)).kind).toBe("record");
    expect(write(`${"é".repeat(most / 2)}x`)).toStrictEqual(
      fail("memory_entry_too_large", "the content is larger than an entry may be"),
    );
  });
});

describe("a node that reads memory", () => {
  it.each<[config: Values, more: object]>([
    [{}, {}],
    [
      { tag: "x", limit: 3 },
      { tag: "x", limit: 3 },
    ],
    [{ tag: 3, limit: "x" }, {}],
    [{ memoryRef: "team" }, { scopes: ["team"] }],
  ])("asks for what its configuration says: %j", (config, more) => {
    expect(memoryRead.step(createView({ config }))).toStrictEqual({
      kind: "act",
      effect: { ...READ, ...more },
    });
  });

  it("completes with the entries, and puts them into a variable where one is named", () => {
    const entries = [{ id: "m1" }];
    const outcome: EffectOutcome = { kind: "memory_read", entries: [entries, [{ id: "of another scope" }]] };
    expect(settle(memoryRead, outcome)).toStrictEqual([createEnd({ entries })]);
    expect(settle(memoryRead, outcome, { config: { into: 3 } })).toStrictEqual([createEnd({ entries })]);
    expect(settle(memoryRead, outcome, { config: { into: "" } })).toStrictEqual([createEnd({ entries })]);
    expect(settle(memoryRead, outcome, { config: { into: "notes" } })).toStrictEqual([
      createChange("notes", entries),
      createEnd({ entries }),
    ]);
    expect(settle(memoryRead, { kind: "memory_read", entries: [] })).toStrictEqual([
      createEnd({ entries: [] }),
    ]);
  });

  it("fails where it could not read, and ignores what answers something else", () => {
    const error = { code: "memory_failed", message: "it broke" };
    for (const type of [memoryRead, identity]) {
      expect(settle(type, { kind: "failed", error })).toStrictEqual([
        { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error } },
      ]);
      expect(settle(type, { kind: "side_effect_caused", effectId: "e" })).toStrictEqual([]);
    }
  });
});

describe("the memory of a node", () => {
  it.each<[scope: string, scene: Scene]>([
    ["w", {}],
    ["w", { config: { memoryRef: "" } }],
    ["w", { config: { memoryRef: 3 } }],
    ["team", { config: { memoryRef: "team" } }],
    [
      "agent",
      { config: { memoryRef: "team" }, members: { agent: { agentId: "acme.writer", memoryRef: "agent" } } },
    ],
    ["w", { config: { memoryRef: "team" }, started: { hasIsolatedMemory: true } }],
  ])("is %s", (scope, scene) => {
    expect(chooseMemoryScope(createView(scene))).toBe(scope);
  });
});

describe("a node that passes its inputs on", () => {
  it("does that where it names no action on memory", () => {
    const members = { inputs: { x: { type: "static", value: 1 } } };
    expect(identity.step(createView({ members }))).toStrictEqual({ kind: "complete", outputs: { x: 1 } });
  });

  it.each<[action: string, config: Values]>([
    ["forget", { memoryAction: "forget" }],
    ["toString", { memoryAction: "toString" }],
    ["3", { memoryAction: 3 }],
    ["ttl-probe", { memoryAction: ["ttl-probe"] }],
  ])("fails where there is no such action: %s of %j", (action, config) => {
    expect(identity.step(createView({ config }))).toStrictEqual(
      fail("memory_action_unknown", `there is no memoryAction ${action}`),
    );
  });

  it.each<[config: Values, notes: readonly object[]]>([
    [{ memoryAction: "write-then-read" }, [{ content: "kept by run-1", tags: ["probe"] }]],
    [
      { memoryAction: "ttl-probe" },
      [
        { content: "fresh", tags: ["fresh"], ttlMs: HOUR_MS },
        { content: "expired", tags: ["expired"], ttlMs: -HOUR_MS },
      ],
    ],
    [{ memoryAction: "cross-tenant-probe" }, [{ content: "the owner's", tags: ["owner"] }]],
    [
      { memoryAction: "redaction-probe", byokSecretId: "s1" },
      [{ content: "the key is {{secret:s1}}", tags: ["redaction"] }],
    ],
  ])("keeps what its action is about: %j", (config, notes) => {
    const step = identity.step(createView({ config }));
    const memory = notes.map((note, index) => ({ ...note, scope: "w", id: `run-1:a:1:${index}` }));
    expect(step).toMatchObject({ kind: "record", memory });
    expect(step.kind === "record" && step.drafts.map(({ payload }) => payload)).toMatchObject(
      memory.map(({ id }) => ({ memoryRef: "w", memoryId: id })),
    );
  });

  it.each<[config: Values, scopes: readonly string[]]>([
    [{ memoryAction: "ttl-probe" }, ["w"]],
    [{ memoryAction: "cross-tenant-probe", probeMemoryRef: "theirs" }, ["w", "theirs"]],
    [{ memoryAction: "cross-tenant-probe", probeMemoryRef: 3 }, ["w"]],
  ])("reads it back: %j", (config, scopes) => {
    expect(identity.step(createView({ config, nodeRun: { memoryIds: ["m1"] } }))).toStrictEqual({
      kind: "act",
      effect: { ...READ, scopes },
    });
  });

  it.each<[memoryAction: string, found: Values]>([
    ["write-then-read", { memoryReadback: { id: "m1" } }],
    ["redaction-probe", { memoryReadback: { id: "m1" } }],
    ["ttl-probe", { freshId: "m1", expiredId: "m2", memoryList: [{ id: "m0" }, { id: "m1" }] }],
    [
      "cross-tenant-probe",
      { ownerEntryId: "m1", ownerProbe: [{ id: "m0" }, { id: "m1" }], crossTenantProbe: [{ id: "m3" }] },
    ],
  ])("tells what came back of %s", (memoryAction, found) => {
    const entries = [[{ id: "m0" }, { id: "m1" }], [{ id: "m3" }]];
    const scene = { config: { memoryAction }, nodeRun: { memoryIds: ["m1", "m2"] } };
    expect(settle(identity, { kind: "memory_read", entries }, scene)).toStrictEqual([
      ...Object.entries(found).map(([name, next]) => createChange(name, next)),
      createEnd(found),
    ]);
  });

  it("tells that nothing came back", () => {
    const nodeRun = { memoryIds: ["m1"] };
    const outcome: EffectOutcome = { kind: "memory_read", entries: [] };
    expect(settle(identity, outcome, { config: { memoryAction: "write-then-read" }, nodeRun })).toStrictEqual(
      [createChange("memoryReadback", null), createEnd({ memoryReadback: null })],
    );
    const drafts = settle(identity, outcome, { config: { memoryAction: "cross-tenant-probe" }, nodeRun });
    expect(drafts?.at(-1)).toStrictEqual(
      createEnd({ ownerEntryId: "m1", ownerProbe: [], crossTenantProbe: [] }),
    );
  });

  it("tells what a variable was before", () => {
    const scene = {
      config: { into: "notes" },
      variables: [createVariable("notes", { defaultValue: "none" })],
    };
    expect(settle(memoryRead, { kind: "memory_read", entries: [[]] }, scene)?.[0]).toMatchObject({
      payload: { name: "notes", previous: "none", next: [] },
    });
  });
});
