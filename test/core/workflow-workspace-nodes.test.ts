/** Owns: what the nodes that read and write files of the workspace ask for and tell, and how they must be configured. */
import { describe, expect, it } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  NodeEffect,
  NodeStep,
  NodeType,
  NodeView,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  workspaceRead,
  workspaceWrite,
} from "../../src/agents/coordination/workflow/nodes/workspace-nodes.ts";
import { SUPERVISOR } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { createView, type Scene } from "./workflow-node-view-scene.ts";
import { createGraph, createNodeRun, withNodes } from "./workflow-view-scene.ts";

const PATH_RULE =
  "a path has 1 to 256 letters, digits, dots, underscores, dashes and slashes, and begins with a letter or a digit";

function createReading(paths: readonly string[], sequence = 0): NodeEffect {
  return { kind: "read_workspace", id: "a:1:read", nodeId: "a", sequence, paths };
}

function createWriting(more: object): object {
  const content = { contentType: "text/markdown", text: "text" };
  const effect = {
    kind: "write_workspace",
    id: "a:1:write",
    nodeId: "a",
    path: "notes.md",
    content,
    ...more,
  };
  return { kind: "act", effect };
}

function createPorts(ports: Values): Scene {
  const inputs = Object.entries(ports).map(([port, value]) => [port, { type: "static", value }] as const);
  return { members: { inputs: Object.fromEntries(inputs) } };
}

function createEnd(outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs: { ...outputs } } };
}

function check(type: NodeType, config: Values): readonly string[] | undefined {
  const { node, graph, settings } = createView({ config });
  return type.check?.(node, graph, settings);
}

function fail(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

describe("the configuration of a node that writes a file", () => {
  it.each<Values>([
    {},
    { path: "notes.md", contentType: "text/plain", ifVersion: 0 },
    { path: "a/b.md", contentType: null, ifVersion: null },
    { path: 3 },
  ])("is in order: %j", (config) => {
    expect(check(workspaceWrite, config)).toEqual([]);
  });

  it.each<[config: Values, problems: readonly string[]]>([
    [{ path: "/etc/passwd" }, [`path of node a: ${PATH_RULE}`]],
    [{ path: "a..b" }, ["path of node a: a path has no two dots in a row"]],
    [{ contentType: "text" }, ["contentType of node a is no media type"]],
    [{ contentType: ["text/plain"] }, ["contentType of node a is no media type"]],
    [{ ifVersion: -1 }, ["ifVersion of node a is no version"]],
    [{ ifVersion: 1.5 }, ["ifVersion of node a is no version"]],
    [{ ifVersion: "1" }, ["ifVersion of node a is no version"]],
    [
      { path: "", contentType: "x", ifVersion: -1 },
      [
        `path of node a: ${PATH_RULE}`,
        "contentType of node a is no media type",
        "ifVersion of node a is no version",
      ],
    ],
  ])("is refused: %j", (config, problems) => {
    expect(check(workspaceWrite, config)).toEqual(problems);
  });
});

describe("a node that writes a file", () => {
  it.each<[title: string, scene: Scene, more: object]>([
    ["its configuration says", { config: { path: "notes.md", content: "text" } }, {}],
    ["its ports say", createPorts({ path: "notes.md", content: "text" }), {}],
    [
      "its ports say, where its configuration says something else",
      {
        config: { path: "other.md", content: "other" },
        ...createPorts({ path: "notes.md", content: "text" }),
      },
      {},
    ],
    [
      "another type of content has",
      { config: { path: "notes.md", content: "text", contentType: "text/plain" } },
      { content: { contentType: "text/plain", text: "text" } },
    ],
    [
      "anything else is as JSON",
      { config: { path: "notes.md", content: { a: [1] } } },
      { content: { contentType: "text/markdown", text: '{"a":[1]}' } },
    ],
    [
      "is there in no version yet",
      { config: { path: "notes.md", content: "text", ifVersion: 0 } },
      { ifVersion: 0 },
    ],
    ["is there in any version", { config: { path: "notes.md", content: "text", ifVersion: null } }, {}],
    [
      "has the type of any file, where no type is named",
      { config: { path: "notes.md", content: "text", contentType: null } },
      {},
    ],
    [
      "its configuration says, where its ports say nothing",
      {
        config: { path: "notes.md", content: "text", contentType: "text/plain", ifVersion: 3 },
        ...createPorts({ path: null, content: null, contentType: null, ifVersion: null }),
      },
      { content: { contentType: "text/plain", text: "text" }, ifVersion: 3 },
    ],
    [
      "a port says about its type and version",
      {
        config: { path: "notes.md", content: "text", contentType: "text/plain", ifVersion: 3 },
        ...createPorts({ contentType: "text/html", ifVersion: 0 }),
      },
      { content: { contentType: "text/html", text: "text" }, ifVersion: 0 },
    ],
  ])("writes what %s", (_title, scene, more) => {
    expect(workspaceWrite.step(createView(scene))).toStrictEqual(createWriting(more));
  });

  it.each<[config: Values, step: NodeStep]>([
    [{ content: "text" }, fail("workspace_path_invalid", "there is no path to write to")],
    [{ path: 3, content: "text" }, fail("workspace_path_invalid", "there is no path to write to")],
    [{ path: "../x", content: "text" }, fail("workspace_path_invalid", PATH_RULE)],
    [{ path: "notes.md" }, fail("workspace_content_missing", "there is no content to write")],
  ])("fails where there is nothing to write, or nowhere: %j", (config, step) => {
    expect(workspaceWrite.step(createView({ config }))).toStrictEqual(step);
  });

  it.each<[ports: Values, code: string, message: string]>([
    [
      { contentType: "text" },
      "workspace_content_type_invalid",
      "contentType is no media type, such as text/markdown",
    ],
    [
      { contentType: ["text/plain"] },
      "workspace_content_type_invalid",
      "contentType is no media type, such as text/markdown",
    ],
    ...["3", -1, 1.5].map((ifVersion): [Values, string, string] => [
      { ifVersion },
      "workspace_version_invalid",
      "ifVersion is no version: a whole number, 0 where there must be no file",
    ]),
    [
      { content: "\ud800" },
      "workspace_content_invalid",
      "the content is no Unicode text: it has half of a surrogate pair",
    ],
  ])("fails where a port says what cannot be: %j", (ports, code, message) => {
    const config = { path: "notes.md", content: "text", contentType: "text/plain", ifVersion: 3 };
    expect(workspaceWrite.step(createView({ config, ...createPorts(ports) }))).toStrictEqual(
      fail(code, message),
    );
  });

  it("fails where the content has more bytes than a file may have", () => {
    const most = WORKFLOW_BOUNDS.workspaceFileBytesMax;
    const write = (content: string): NodeStep =>
      workspaceWrite.step(createView({ config: { path: "notes.md", content } }));
    expect(write("é".repeat(most / 2)).kind).toBe("act");
    expect(write(`${"é".repeat(most / 2)}x`)).toStrictEqual(
      fail("workspace_too_large", "the content is larger than a file may be"),
    );
  });

  it("tells which version it wrote", () => {
    const effect = createReading([]);
    const update = {
      at: { tenant: "acme", scope: "w" },
      path: "notes.md",
      content: null,
      updatedAt: "2026-01-01T00:00:00.000Z",
      version: 4,
      previous: 3,
    };
    expect(
      workspaceWrite.settle?.(createView(), effect, { kind: "workspace_written", update }),
    ).toStrictEqual([
      { nodeId: "a", type: "workspace.updated", payload: { path: "notes.md", version: 4 } },
      createEnd({ path: "notes.md", version: 4 }),
    ]);
  });
});

describe("the configuration of a node that reads files", () => {
  it.each<Values>([{}, { path: "notes.md" }, { paths: ["a", "b"] }, { paths: null }, { paths: [] }])(
    "is in order: %j",
    (config) => {
      expect(check(workspaceRead, config)).toEqual([]);
    },
  );

  it.each<[config: Values, problems: readonly string[]]>([
    [{ path: "a..b" }, ["path of node a: a path has no two dots in a row"]],
    [{ paths: "a" }, ["paths of node a is no list of texts"]],
    [{ paths: ["a", ""] }, ["paths of node a is no list of texts"]],
    [{ paths: ["a", 3] }, ["paths of node a is no list of texts"]],
  ])("is refused: %j", (config, problems) => {
    expect(check(workspaceRead, config)).toEqual(problems);
  });
});

describe("a node that reads files", () => {
  it.each<[paths: readonly string[], scene: Scene]>([
    [[], {}],
    [["notes.md"], { config: { path: "notes.md" } }],
    [["port.md"], { config: { path: "notes.md" }, ...createPorts({ path: "port.md" }) }],
    [["a", "b"], { config: { paths: ["a", "", 3, "b"] } }],
    [["notes.md"], { config: { path: "notes.md", paths: ["a"] } }],
    [["a"], { config: { path: "", paths: ["a"] } }],
    [[], { config: { paths: "a" } }],
  ])("asks for %j", (paths, scene) => {
    expect(workspaceRead.step(createView(scene))).toStrictEqual({
      kind: "act",
      effect: createReading(paths),
    });
  });

  describe("looks at them as they were", () => {
    function lookIn(supervisors: Readonly<Record<string, { executions: number; enteredSequence: number }>>) {
      const names = Object.keys(supervisors);
      const graph = createGraph({
        nodes: [
          createNode("a", "openclaw.workspace.read"),
          createNode("b"),
          ...names.map((name) => createNode(name, SUPERVISOR, { prompt: "x" })),
        ],
      });
      const nodeRuns = [
        createNodeRun("b", "completed", { enteredSequence: 90 }),
        createNodeRun("nowhere", "completed", { enteredSequence: 91 }),
        ...names.map((name) => createNodeRun(name, "completed", supervisors[name])),
      ];
      const view: NodeView = { ...createView({ run: withNodes(...nodeRuns) }), graph };
      const step = workspaceRead.step(view);
      return step.kind === "act" && step.effect.kind === "read_workspace" ? step.effect.sequence : undefined;
    }

    it("when the run began, where no supervisor has had a turn", () => {
      expect(lookIn({})).toBe(0);
      expect(lookIn({ boss: { executions: 0, enteredSequence: 7 } })).toBe(0);
    });

    it("when the newest turn of a supervisor began", () => {
      expect(lookIn({ boss: { executions: 1, enteredSequence: 7 } })).toBe(7);
      const two = {
        boss: { executions: 2, enteredSequence: 9 },
        other: { executions: 1, enteredSequence: 4 },
      };
      expect(lookIn(two)).toBe(9);
    });
  });

  const FILE = { path: "notes.md", text: "text" };
  const outcome = { kind: "workspace_read", files: [FILE] } as const;

  function settle(config: Values, paths: readonly string[], files: readonly Values[] = [FILE]) {
    return workspaceRead.settle?.(createView({ config }), createReading(paths), { ...outcome, files });
  }

  it("completes with one file where it asked for one, and with a list otherwise", () => {
    expect(settle({ path: "notes.md" }, ["notes.md"])).toStrictEqual([createEnd({ file: FILE })]);
    expect(settle({ path: "notes.md" }, ["notes.md"], [])).toStrictEqual([createEnd({ file: null })]);
    expect(settle({ paths: ["notes.md"] }, ["notes.md"])).toStrictEqual([createEnd({ files: [FILE] })]);
    expect(settle({}, [])).toStrictEqual([createEnd({ files: [FILE] })]);
    const other: NodeEffect = { kind: "cause_side_effect", id: "a:1", nodeId: "a" };
    expect(workspaceRead.settle?.(createView(), other, outcome)).toStrictEqual([
      createEnd({ files: [FILE] }),
    ]);
  });

  it("puts what it read into a variable where one is named", () => {
    const createChange = (next: unknown): WorkflowDraft => ({
      nodeId: "a",
      type: "variable.changed",
      payload: { name: "notes", next, nodeId: "a" },
    });
    expect(settle({ into: "notes", path: "notes.md" }, ["notes.md"])).toStrictEqual([
      createChange(FILE),
      createEnd({ file: FILE }),
    ]);
    expect(settle({ into: "notes" }, [])).toStrictEqual([createChange([FILE]), createEnd({ files: [FILE] })]);
    expect(settle({ into: "" }, [])).toStrictEqual([createEnd({ files: [FILE] })]);
  });

  it.each([workspaceRead, workspaceWrite])("fails where it could not be done", (type) => {
    const error = { code: "workspace_failed", message: "it broke" };
    expect(type.settle?.(createView(), createReading([]), { kind: "failed", error })).toStrictEqual([
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error } },
    ]);
    const unrelated: EffectOutcome = { kind: "side_effect_caused", effectId: "e" };
    expect(type.settle?.(createView(), createReading([]), unrelated)).toStrictEqual([]);
  });
});
