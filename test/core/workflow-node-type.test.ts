/** Owns: how the drafts of a node are named and numbered, who its agent is, and the JSON in a model's answer. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findJson,
  listJsonCandidates,
} from "../../src/agents/coordination/workflow/node-contract/json-in.ts";
import {
  readNodeAgentId,
  computeDraftEventId,
  withNodeId,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { createView } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

describe("the JSON in a model's answer", () => {
  it.each<[text: string, found: unknown]>([
    ['{"a":1}', { a: 1 }],
    [' {"a":1}', { a: 1 }],
    ['```json\n{"a":1}\n```', { a: 1 }],
    ['Here it is: {"a":{"b":2}}. Good luck!', { a: { b: 2 } }],
    ['{"a":"}"}', { a: "}" }],
    ["{}", {}],
    ["nothing of the kind", undefined],
    ["{ never closed", undefined],
    ["never opened }", undefined],
    ["} the wrong way round {", undefined],
    ["{a: 1}", undefined],
    ['{"a":1} and {"b":2}', undefined],
    ['[{"a":1}]', [{ a: 1 }]],
    ["[1,2]", [1, 2]],
    ["```\n[1]\n```", [1]],
    ["The list is [[1],[2]], I think.", [[1], [2]]],
    ['{"a":[1,2]}', { a: [1, 2] }],
    ['See [1]: {"a":1}', { a: 1 }],
    ['As [said], {"a":[1]}', { a: [1] }],
    ["[1] and [2]", undefined],
    ["7", 7],
    [' "a text" ', "a text"],
    ["null", null],
  ])("of %j is %j", (text, found) => {
    expect(findJson(text)).toStrictEqual(found);
  });
});

describe("the JSON that an answer may stand for", () => {
  it.each([
    ['{"a":[1]}', [{ a: [1] }, [1]]],
    ['See [1, 2, 3]: {"a":1}', [[1, 2, 3], { a: 1 }]],
    ['See [1]: {"a":1}', [{ a: 1 }, [1]]],
    ["7", [7]],
    ["nothing of the kind", []],
  ])("in %j is %j, the whole first, then the longer part", (text, list) => {
    expect(listJsonCandidates(text)).toStrictEqual(list);
  });
});

describe("the draft of a node", () => {
  it("has the id of its place behind what the run has recorded", () => {
    const view = createView({ run: { nextSequence: 7 } });
    expect([0, 2].map((index) => computeDraftEventId(view, index))).toEqual([
      createEventId(RUN, 7),
      createEventId(RUN, 9),
    ]);
  });

  it("names the node, unless it names another one", () => {
    const draft = {
      type: "node.failed",
      payload: { nodeId: "a", error: { code: "c", message: "m" } },
    } as const;
    expect(withNodeId(createView(), draft)).toStrictEqual({ nodeId: "a", ...draft });
    expect(withNodeId(createView(), { ...draft, nodeId: "b" })).toStrictEqual({ ...draft, nodeId: "b" });
  });
});

describe("the agent of a node", () => {
  it.each<[agentId: string, members: object, config: object]>([
    ["acme.writer", { agent: { agentId: "acme.writer" } }, { agentId: "acme.other" }],
    ["acme.other", {}, { agentId: "acme.other" }],
    ["abc", {}, { agentId: "abc" }],
    ["node:a", {}, { agentId: "ab" }],
    ["node:a", {}, { agentId: ["acme.writer"] }],
    ["node:a", {}, {}],
  ])("is %s", (agentId, members, config) => {
    expect(readNodeAgentId(createView({ members: { ...members }, config: { ...config } }))).toBe(agentId);
  });
});
