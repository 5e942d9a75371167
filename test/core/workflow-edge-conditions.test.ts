/** Owns: which nodes are next at one moment of a run, where edges have several rules, a loop came round, or a source was cancelled. */
import { describe, expect, it } from "vitest";
import { chain, createEdge, type SmallWorkflow } from "../support/workflow-definitions.ts";
import { createNodes, ifGo, listNext, rule } from "./workflow-next-nodes.ts";

describe("an edge that closes a loop", () => {
  it.each([
    ["all_success", "go", ["start a"]],
    ["all_success", "completed", []],
    ["all_success", "failed", []],
    ["all_success", "skipped", []],
    ["any_success", "go", ["start a"]],
    ["any_success", "failed", []],
    ["none_failed", "go", ["start a"]],
    ["none_failed", "skipped", []],
    ["any_failed", "go", []],
    ["any_failed", "completed", []],
    ["any_failed", "failed", ["start a"]],
    ["any_failed", "skipped", []],
    ["any_failed", "cancelled", []],
    ["all_complete", "go", ["start a"]],
    ["all_complete", "completed", []],
    ["all_complete", "failed", ["start a"]],
    ["all_complete", "skipped", []],
    ["all_complete", "cancelled", []],
  ])("by the rule %s, from a node that ended as %s, leads to %j", (triggerRule, fate, expected) => {
    const small = {
      nodes: createNodes("a b"),
      edges: [createEdge("a>b"), createEdge("b>a", { triggerRule, ...ifGo })],
    };
    expect(listNext(small, `a completed, b ${fate}`)).toEqual(expected);
  });
});

describe("edges of several rules to one node", () => {
  const createJoin = (one: string, other: string): SmallWorkflow => ({
    nodes: createNodes("a b join"),
    edges: [createEdge("a>join", rule(one)), createEdge("b>join", rule(other))],
  });

  it.each([
    ["any_success", "all_success", "a completed, b started", ["start join"]],
    ["any_failed", "all_success", "a failed, b started", ["start join"]],
    ["all_success", "any_success", "a failed, b completed", ["start join"]],
    ["all_complete", "any_failed", "a started, b failed", ["start join"]],
    ["any_success", "all_success", "a started, b completed", []],
    ["all_success", "none_failed", "a completed, b started", []],
    ["any_success", "all_success", "a failed, b started", []],
    ["any_success", "all_success", "a failed, b completed", ["skip join"]],
    ["any_failed", "all_complete", "a completed, b failed", ["skip join"]],
    ["all_success", "none_failed", "a completed, b completed", ["start join"]],
  ])("%s and %s, after %s, lead to %j", (one, other, log, expected) => {
    expect(listNext(createJoin(one, other), log)).toEqual(expected);
  });
});

describe("a node that nothing may fail before", () => {
  const small: SmallWorkflow = {
    nodes: createNodes("a b join"),
    edges: [createEdge("a>join", rule("none_failed")), createEdge("b>join", rule("none_failed"))],
  };

  it.each([
    ["a completed, b started"],
    ["a started, b completed"],
    ["a skipped, b started"],
    ["a started, b skipped"],
  ])("waits for the other edge after %s", (log) => {
    expect(listNext(small, log)).toEqual([]);
  });

  it("is skipped at once when one has failed", () => {
    expect(listNext(small, "a started, b failed")).toEqual(["skip join"]);
  });
});

describe("a node that was cancelled", () => {
  it.each([
    ["all_success", "skip b"],
    ["any_success", "skip b"],
    ["any_failed", "skip b"],
    ["none_failed", "skip b"],
    ["all_complete", "start b"],
  ])("counts for the rule %s as one that was skipped: %s", (triggerRule, expected) => {
    const small = { nodes: createNodes("a b"), edges: [createEdge("a>b", { triggerRule })] };
    expect(listNext(small, "a cancelled")).toEqual([expected]);
    expect(listNext(small, "a skipped")).toEqual([expected]);
  });
});

describe("a node behind a loop", () => {
  const edges = [
    createEdge("fast>join", rule("any_success")),
    createEdge("slow>middle"),
    createEdge("middle>join", rule("any_success")),
  ];
  const nodes = createNodes("fast slow middle join");
  const looped: SmallWorkflow = { nodes, edges: [...edges, createEdge("middle>slow", ifGo)] };

  it.each([
    ["waits while work two nodes before it goes on", "fast completed, slow started", []],
    ["waits while the node before it is at work", "fast completed, slow completed, middle started", []],
    ["waits for a node before it that is to be started", "fast completed, slow completed", ["start middle"]],
    [
      "waits for a node before it that the loop starts again",
      "fast completed, slow completed, middle go",
      ["start slow"],
    ],
    ["is started when the loop is left", "fast completed, slow completed, middle completed", ["start join"]],
  ])("%s", (_title, log, expected) => {
    expect(listNext(looped, log)).toEqual(expected);
  });

  it("does not wait where there is no loop", () => {
    const straight = { nodes, edges };
    expect(listNext(straight, "fast completed, slow started")).toEqual(["start join"]);
    expect(listNext(straight, "fast completed, slow completed")).toEqual(["start middle", "start join"]);
  });
});

describe("a node beside a loop that came round", () => {
  const beside: SmallWorkflow = {
    nodes: createNodes("enter again side"),
    edges: [...chain("enter>again"), createEdge("again>enter", ifGo), createEdge("enter>side")],
  };

  it("is not started a second time while it is at work, but when it has ended", () => {
    const log = "enter completed, side started, again go, enter completed";
    expect(listNext(beside, log)).toEqual(["start again"]);
    expect(listNext(beside, `${log}, again started, side completed`)).toEqual(["start side"]);
  });

  const conditional: SmallWorkflow = {
    nodes: createNodes("enter again side"),
    edges: [...chain("enter>again"), createEdge("again>enter", ifGo), createEdge("enter>side", ifGo)],
  };

  it.each([
    ["is not skipped twice in a row", "enter completed, side skipped, again go, enter completed", []],
    ["is skipped after it has run", "enter go, side completed, again go, enter completed", ["skip side"]],
    ["is started after it was skipped", "enter completed, side skipped, again go, enter go", ["start side"]],
    ["is started after it has run", "enter go, side completed, again go, enter go", ["start side"]],
  ])("%s", (_title, log, expected) => {
    expect(listNext(conditional, log)).toEqual(["start again", ...expected]);
  });
});

describe("a node on the way of a loop that is skipped each time", () => {
  const skipping: SmallWorkflow = {
    nodes: createNodes("first second enter side middle after again"),
    edges: [
      ...chain("first>enter"),
      ...chain("second>side"),
      createEdge("enter>side", ifGo),
      ...chain("side>middle"),
      createEdge("middle>after", rule("all_complete")),
      ...chain("after>again"),
      createEdge("again>enter", ifGo),
    ],
  };
  const before = "first completed, second completed";
  const round = `${before}, enter completed, side skipped, middle skipped, after completed, again go, enter completed`;

  it.each([
    ["is skipped again, so that what is behind it goes on", round, ["skip side"]],
    ["lets the node behind it be skipped again, too", `${round}, side skipped`, ["skip middle"]],
    [
      "starts a node again that comes to it by any end",
      `${round}, side skipped, middle skipped`,
      ["start after"],
    ],
    [
      "is not skipped again behind nodes that went on without it",
      `${round}, middle skipped, after completed, again completed`,
      [],
    ],
  ])("%s", (_title, log, expected) => {
    expect(listNext(skipping, log)).toEqual(expected);
  });

  it("is not skipped again where it only leads back", () => {
    const back: SmallWorkflow = {
      nodes: createNodes("enter side again"),
      edges: [
        ...chain("enter>again"),
        createEdge("enter>side", ifGo),
        createEdge("side>enter"),
        createEdge("again>enter", ifGo),
      ],
    };
    const log = "enter completed, side skipped, again go, enter completed";
    expect(listNext(back, log)).toEqual(["start again"]);
  });
});

describe("a node for which one edge is enough, beside a loop that came round", () => {
  const createSmall = (triggerRule: string): SmallWorkflow => ({
    nodes: createNodes("once enter again join"),
    edges: [
      ...chain("enter>again"),
      createEdge("again>enter", ifGo),
      createEdge("once>join", { triggerRule }),
      createEdge("enter>join", { triggerRule, ...ifGo }),
    ],
  });

  const round = "enter completed, again started, join completed, again go";

  it.each([
    [
      "is not started again by a success from before",
      "any_success",
      `once completed, ${round}, enter completed`,
      ["start again", "skip join"],
    ],
    [
      "is started again by a new success",
      "any_success",
      `once completed, ${round}, enter go`,
      ["start again", "start join"],
    ],
    [
      "is not started again by a failure from before",
      "any_failed",
      `once failed, ${round}, enter go`,
      ["start again", "skip join"],
    ],
    [
      "is started again by a new failure",
      "any_failed",
      `once failed, ${round}, enter failed`,
      ["skip again", "start join"],
    ],
  ])("%s", (_title, triggerRule, log, expected) => {
    expect(listNext(createSmall(triggerRule), log)).toEqual(expected);
  });
});
