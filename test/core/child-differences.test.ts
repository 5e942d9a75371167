import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChildRequest, ChildRun } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  describeRefusedDifference,
  findChildDifferences,
  findWriteDifference,
} from "../../src/agents/coordination/gates/child-differences.ts";

const agentId = "main" as AgentId;
const listDifferences = (requested: ChildRequest, ran: ChildRun): string[] =>
  findChildDifferences({ agentId, ...requested }, ran).map(
    ({ field, ...values }) => `${field}: ${values.asked} > ${values.ran}`,
  );

describe("a child differs from what was asked", () => {
  it.each([
    ["on another model", { model: "a/large" }, { model: "a/small" }, ["model: a/large > a/small"]],
    ["on the same model of another provider", { model: "a/x" }, { model: "b/x" }, ["model: a/x > b/x"]],
    ["on another model where no provider was asked", { model: "x" }, { model: "b/y" }, ["model: x > b/y"]],
    ["without the thinking", { thinking: "high" }, { thinking: "off" }, ["thinking: high > off"]],
    ["in another folder", { folder: "/a" }, { folder: "/a/b" }, ["folder: /a > /a/b"]],
    ["as another agent", {}, { agentId: "other" as AgentId }, ["agent: main > other"]],
  ] as const)("%s", (_, requested, ran, expected) => {
    expect(listDifferences(requested, ran)).toEqual(expected);
  });
});

describe("a level of thinking that the host names", () => {
  it.each(["off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"])(
    "%s is no other one",
    (thinking) => {
      expect(listDifferences({ thinking }, { thinking: "other" })).toEqual([`thinking: ${thinking} > other`]);
    },
  );
});

describe("a refused difference", () => {
  it("is told with what was asked and what would have run", () => {
    expect(describeRefusedDifference({ field: "model", asked: "a/large", ran: "a/small" })).toBe(
      "model a/large was asked, and a/small would have run",
    );
  });
});

describe("it does not differ", () => {
  it.each([
    ["where nothing was asked, whatever runs", {}, { model: "a/x", thinking: "off", folder: "/a" }],
    ["where it is not known what runs", { model: "a/x", thinking: "high", folder: "/a" }, {}],
    [
      "in how a name is written",
      { model: "Mock/Large", thinking: "HIGH" },
      { model: "mock/large", thinking: "high" },
    ],
    ["from a model that was asked without a provider", { model: "large" }, { model: "b/large" }],
    ["by a slash at the end of a folder", { folder: "/a/" }, { folder: "/a" }],
    ["by a word for thinking that only the host can read", { thinking: "think-hard" }, { thinking: "low" }],
    ["as the same agent in another spelling", {}, { agentId: "Main" as AgentId }],
  ] as const)("%s", (_, requested, ran) => {
    expect(listDifferences(requested, ran)).toEqual([]);
  });

  it("from itself, whatever was asked", () => {
    const name = fc.string({ minLength: 1, maxLength: 40 });
    const requested = fc.record({ model: name, thinking: name, folder: name }, { requiredKeys: [] });
    fc.assert(
      fc.property(requested, (same) => {
        expect(listDifferences(same, { ...same, agentId })).toEqual([]);
      }),
    );
  });
});

describe("a write differs from the folder that was asked", () => {
  it.each([
    ["/repo", "/srv/other/x.md", 1],
    ["/repo", "/repo-2/x.md", 1],
    ["/repo", "/repo/deep/x.md", 0],
    ["/repo/", "/repo/x.md", 0],
    ["/", "/srv/x.md", 0],
    ["/", "c:/x.md", 0],
    [undefined, "/srv/x.md", 0],
    ["/repo", undefined, 0],
  ] as const)("%s: %s", (folder, file, count) => {
    expect(findWriteDifference(folder, file)).toHaveLength(count);
  });

  it("and names the folder and the file", () => {
    expect(findWriteDifference("/repo", "/srv/x.md")).toEqual([
      { field: "writes", asked: "/repo", ran: "/srv/x.md" },
    ]);
  });
});
