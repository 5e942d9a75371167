/** Owns: the values that variables, inputs of nodes and paths stand for in a run, and which values are the same. */
import { describe, expect, it } from "vitest";
import type { PortValue } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createRunEvent } from "../../src/agents/coordination/workflow/advance-run.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import {
  createInitialVariables,
  readNodeInputs,
  isSameValue,
  readPath,
  readVariable,
  readVariables,
  type Values,
} from "../../src/agents/coordination/workflow/state/values.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { createGraph, createRun, NOW } from "./workflow-view-scene.ts";

/** Returns a graph with these variables, whose node `read` has these inputs. */
function createGraphOf(variables: Values, inputs: Readonly<Record<string, PortValue>> = {}): NodeGraph {
  const nodes = [createNode("read", "core.identity", {}, { inputs }), createNode("before")];
  return createGraph({ nodes, variables });
}

/** Returns a run whose log is its start with the inputs, and the drafts. */
function playRun(inputs: Values, ...drafts: readonly WorkflowDraft[]): WorkflowRun {
  const first = createRun({}, { inputs });
  return drafts.reduce((run, draft) => evolveWorkflow(run, createRunEvent(run, draft, NOW)), first);
}

function draftChange(name: string, next: unknown): WorkflowDraft {
  return { type: "variable.changed", payload: { name, next } };
}

describe("the variables of a run", () => {
  const graph = createGraphOf({ color: "red", size: "small", shape: "round", none: undefined });

  it("are the defaults, then the inputs of the run, then what changed since", () => {
    const run = playRun({ size: "large", shape: "square", more: 1 }, draftChange("shape", "flat"));
    const expected = { color: "red", size: "large", shape: "flat", more: 1 };
    expect(readVariables(run, graph)).toStrictEqual(expected);
    for (const [name, value] of Object.entries(expected)) expect(readVariable(run, graph, name)).toBe(value);
  });

  it("are at first those that have a default or an input", () => {
    expect(createInitialVariables(graph, { size: "large" })).toStrictEqual({
      color: "red",
      size: "large",
      shape: "round",
    });
  });

  it("are without a value where nothing gives them one, also under a name that every object has", () => {
    const run = playRun({});
    for (const name of ["none", "other", "constructor"])
      expect(readVariable(run, graph, name)).toBeUndefined();
  });

  it("are without a value where that is what they changed to", () => {
    expect(readVariable(playRun({ color: "blue" }, draftChange("color", undefined)), graph, "color")).toBe(
      undefined,
    );
  });
});

describe("the inputs of a node", () => {
  const variables = { color: "red", price$: "high", "variables.size": "odd", size: "small" };
  const run = playRun(
    { user: { name: "alice" }, my: { variables: { deep: 1 } } },
    { type: "node.started", payload: { nodeId: "before", typeId: "core.noop", attempt: 0 } },
    { type: "node.completed", payload: { nodeId: "before", outputs: { found: { count: 3 } } } },
  );

  const readInput = (input: PortValue): Values => {
    const graph = createGraphOf(variables, { input });
    const node = graph.nodes.get("read");
    if (!node) throw new Error("the node is not there");
    return readNodeInputs(run, graph, node);
  };
  const readFrom = (nodeId: string, outputKey: string) =>
    readInput({ type: "connection", nodeId, outputKey });

  it("are constants", () => {
    expect(readInput({ type: "static", value: { a: 1 } })).toStrictEqual({ input: { a: 1 } });
  });

  it("are the values of variables", () => {
    expect(readInput({ type: "variable", variableName: "color" })).toStrictEqual({ input: "red" });
    expect(readInput({ type: "variable", variableName: "missing" })).toStrictEqual({});
  });

  it("are what another node put out, once it has", () => {
    expect(readFrom("before", "found.count")).toStrictEqual({ input: 3 });
    expect(readFrom("before", "missing")).toStrictEqual({});
    expect(readFrom("read", "found")).toStrictEqual({});
  });

  it("are what another node had put out when this one began, whatever that one did since", () => {
    const draftStart = (nodeId: string): WorkflowDraft => ({
      type: "node.started",
      payload: { nodeId, typeId: "core.noop", attempt: 0 },
    });
    const draftEnd = (count: number): WorkflowDraft => ({
      type: "node.completed",
      payload: { nodeId: "before", outputs: { count } },
    });
    const graph = createGraphOf({}, { input: { type: "connection", nodeId: "before", outputKey: "count" } });
    const node = graph.nodes.get("read");
    if (!node) throw new Error("the node is not there");
    const first = [draftStart("before"), draftEnd(1), draftStart("before"), draftEnd(2), draftStart("read")];
    const second = [draftStart("before"), draftEnd(3), draftStart("before")];
    for (const count of [0, 1, 2, 3])
      expect(readNodeInputs(playRun({}, ...first, ...second.slice(0, count)), graph, node)).toEqual({
        input: 2,
      });
    // Where it first ended after this one began, its newest outputs count.
    for (const [count, input] of [undefined, 1, undefined, 2].entries())
      expect(
        readNodeInputs(playRun({}, draftStart("read"), ...first.slice(0, count + 1)), graph, node),
      ).toEqual(input === undefined ? {} : { input });
  });

  it.each([
    ["user.name", "alice"],
    ["$user.name", "alice"],
    ["$.user.name", "alice"],
    ["variables.user.name", "alice"],
    ["variables.size", "small"],
    ["my.variables.deep", 1],
    ["price$", "high"],
    ["color", "red"],
  ])("are paths into the variables: %s", (expression, value) => {
    expect(readInput({ type: "expression", expression })).toStrictEqual({ input: value });
  });

  it("are not there where a path leads nowhere", () => {
    expect(readInput({ type: "expression", expression: "user.age" })).toStrictEqual({});
  });
});

describe("a path", () => {
  const value = { word: "approved", none: null, list: ["a", { b: 2 }], nested: { deep: { yes: true } } };

  it.each([
    ["word", "approved"],
    ["nested.deep", { yes: true }],
    ["nested.deep.yes", true],
    ["list.1.b", 2],
    ["none", null],
    ["missing", undefined],
    ["missing.deep", undefined],
    ["none.deep", undefined],
    ["word.length", undefined],
    ["constructor", undefined],
    ["", undefined],
  ])("%s leads to %j", (path, expected) => {
    expect(readPath(value, path)).toEqual(expected);
  });

  it("leads nowhere from what is no object", () => {
    expect(readPath(undefined, "word")).toBeUndefined();
    expect(readPath("word", "length")).toBeUndefined();
  });
});

describe("two values", () => {
  it.each<[unknown, unknown]>([
    [1, 1],
    ["a", "a"],
    [null, null],
    [[], []],
    [{}, {}],
    [
      [1, { a: [2] }],
      [1, { a: [2] }],
    ],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
  ])("%j and %j are the same", (one, other) => {
    expect(isSameValue(one, other)).toBe(true);
    expect(isSameValue(other, one)).toBe(true);
  });

  it.each<[unknown, unknown]>([
    [1, "1"],
    [1, 2],
    [1, {}],
    [null, {}],
    [undefined, null],
    [[], {}],
    [["a"], { 0: "a" }],
    [{ a: 1 }, { a: 1, b: 2 }],
    [
      { a: 1, b: 2 },
      { a: 1, b: 3 },
    ],
    [{ a: undefined }, { b: undefined }],
    [
      [1, 2],
      [2, 1],
    ],
  ])("%j and %j are not the same", (one, other) => {
    expect(isSameValue(one, other)).toBe(false);
    expect(isSameValue(other, one)).toBe(false);
  });
});
