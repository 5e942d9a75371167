/** Owns: which round of a loop an edge belongs to, where one edge is enough to start a node. */
import { describe, expect, it } from "vitest";
import { listNextNodes } from "../../src/agents/coordination/workflow/state/edges.ts";
import { chain, createEdge, type SmallWorkflow } from "../support/workflow-definitions.ts";
import { createNodes, ifGo, listNext, playLog, rule } from "./workflow-next-nodes.ts";
import { createGraph } from "./workflow-view-scene.ts";

describe("a node behind a loop, for which one edge is enough", () => {
  const one = rule("any_success");
  const createSmall = (last: Parameters<typeof createEdge>[1] = one): SmallWorkflow => ({
    nodes: createNodes("a b fast gate middle join"),
    edges: [
      ...chain("a>b>fast"),
      createEdge("b>a", ifGo),
      ...chain("b>gate>middle"),
      createEdge("fast>join", one),
      createEdge("middle>join", last),
      createEdge("join>a", ifGo),
    ],
  });
  const round = "a completed, b completed, fast completed, gate started";

  it.each([
    ["is started by the first one when the loop is left", round, ["start join"]],
    ["waits while that loop goes round again", "a completed, b go", ["start a"]],
    [
      "is not started by one that comes later",
      `${round}, join completed, gate completed, middle completed`,
      [],
    ],
    [
      "is not started by one that comes later and fails",
      `${round}, join completed, gate completed, middle failed`,
      [],
    ],
    [
      "is started by the first one of the next round",
      `${round}, join go, a completed, b completed, fast completed`,
      ["start join"],
    ],
    [
      "is not started by one of the round before while the next round is under way",
      `${round}, join go, a started, gate completed, middle completed`,
      [],
    ],
    [
      "is not started by one of the round before when the next round has started it",
      `${round}, join go, a completed, b completed, fast completed, join completed, gate completed`,
      ["start gate"],
    ],
    [
      "is started once in the next round, too",
      `${round}, join go, gate completed, a completed, b completed, fast completed, gate started, join completed, gate completed, middle completed`,
      [],
    ],
  ])("%s", (_title, log, expected) => {
    expect(listNext(createSmall(), log)).toEqual(expected);
  });

  it("is neither started nor skipped by a later edge of another rule", () => {
    const small = createSmall(rule("all_success"));
    expect(listNext(small, round)).toEqual(["start join"]);
    expect(listNext(small, `${round}, join completed, gate completed, middle completed`)).toEqual([]);
  });

  it("waits while a loop inside of the round may come round to it", () => {
    const small: SmallWorkflow = {
      nodes: createNodes("a x y join"),
      edges: [
        createEdge("a>join", one),
        ...chain("a>x>y"),
        createEdge("y>x", ifGo),
        createEdge("y>join", one),
        createEdge("join>a", ifGo),
      ],
    };
    expect(listNext(small, "a completed, x started")).toEqual([]);
    expect(listNext(small, "a completed, x completed, y completed")).toEqual(["start join"]);
    const next = "a completed, x completed, y completed, join go, a completed";
    expect(listNext(small, next)).toEqual(["start x"]);
    expect(listNext(small, `${next}, x completed, y completed`)).toEqual(["start join"]);
  });

  it("is started in each round of a loop that it is on the way of", () => {
    const small: SmallWorkflow = {
      nodes: createNodes("gate enter join again"),
      edges: [
        createEdge("gate>enter", one),
        createEdge("enter>join", one),
        createEdge("gate>join", one),
        ...chain("join>again"),
        createEdge("again>enter", ifGo),
      ],
    };
    const log = "gate completed, enter started, join completed, enter completed, again go";
    expect(listNext(small, "gate completed")).toEqual(["start enter"]);
    expect(listNext(small, "gate completed, enter started")).toEqual(["start join"]);
    expect(listNext(small, log)).toEqual(["start enter"]);
    expect(listNext(small, `${log}, enter completed`)).toEqual(["start join"]);
  });

  it("is not started again before the loop that it fired has begun", () => {
    const small: SmallWorkflow = {
      nodes: createNodes("first side join"),
      edges: [
        createEdge("first>side", ifGo),
        createEdge("first>join", one),
        createEdge("side>join"),
        createEdge("join>side", ifGo),
        createEdge("join>first", ifGo),
      ],
    };
    const log = "first completed, side skipped, join go, first completed";
    expect(listNext(small, log)).toEqual(["start side"]);
    expect(listNext(small, `${log}, side completed`)).toEqual(["start join"]);
  });

  it("waits for its own round when an edge of the round before comes late, behind a node that began again", () => {
    const next = "join go, a completed, b completed, fast started";
    const late = `${round}, ${next}, gate completed, middle started, gate started, middle completed`;
    expect(listNext(createSmall(), late)).toEqual([]);
    expect(listNext(createSmall(), `${late}, fast completed`)).toEqual(["start join"]);
    // The gate ends once more before the late edge comes: what led to that edge is two executions ago.
    const later = `${round}, ${next}, gate completed, middle started, gate completed, middle completed`;
    expect(listNext(createSmall(), later)).toEqual(["start middle"]);
    expect(listNext(createSmall(), `${later}, middle completed`)).toEqual(["start join"]);
  });

  it("is started by an edge of a later round, also where the loop has gone round once more since", () => {
    const small: SmallWorkflow = {
      nodes: createNodes("a again gate middle join"),
      edges: [
        ...chain("a>again"),
        createEdge("again>a", ifGo),
        ...chain("a>gate>middle"),
        createEdge("a>join", { ...one, ...ifGo }),
        createEdge("middle>join", one),
      ],
    };
    const goRound = "again go, a completed, again started";
    const rest = "again completed, gate completed, middle completed, join completed";
    const first = "a go, again started, join started";
    expect(listNext(small, `${first}, ${goRound}, gate started, ${goRound}, ${rest}`)).toEqual([
      "start gate",
      "start join",
    ]);
    expect(listNext(small, `${first}, gate started, ${goRound}, ${rest}`)).toEqual(["start gate"]);
  });
});

describe("a node that was tried again while a loop came round", () => {
  it.each(["any_success", "all_success"])("by the rule %s, is started in that round, too", (triggerRule) => {
    const small: SmallWorkflow = {
      nodes: createNodes("a again slow"),
      edges: [...chain("a>again"), createEdge("again>a", ifGo), createEdge("a>slow", rule(triggerRule))],
    };
    const log = "a completed, again started, slow started, again go, a completed, again completed";
    expect(listNext(small, `${log}, slow completed`)).toEqual(["start slow"]);
    expect(listNext(small, `${log}, slow retried, slow completed`)).toEqual(["start slow"]);
  });

  it("is behind what was skipped in that round", () => {
    const small: SmallWorkflow = {
      nodes: createNodes("enter again side slow"),
      edges: [
        ...chain("enter>again"),
        createEdge("again>enter", ifGo),
        createEdge("enter>side", ifGo),
        createEdge("side>slow", rule("all_complete")),
      ],
    };
    const round = "enter completed, side skipped, slow started, again go, enter completed";
    expect(listNext(small, `${round}, slow retried, slow completed`)).toEqual(["start again", "skip side"]);
  });
});

describe("the nodes that are next in a large workflow", () => {
  const one = rule("any_success");
  const createChain = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`);

  /** Counts how often the state of a node is read to tell what is next. */
  function countReads(small: SmallWorkflow, log: string): number {
    const run = playLog(log);
    let reads = 0;
    const nodes = Object.create(run.nodes, {
      get: {
        value: (nodeId: string) => {
          reads += 1;
          return run.nodes.get(nodeId);
        },
      },
    }) as typeof run.nodes;
    listNextNodes({ ...run, nodes }, createGraph(small));
    return reads;
  }

  it.each([
    ["one node that each of many may start", createChain(980), ["join"], createChain(980)],
    [
      "many nodes that the first and the last of many may start",
      createChain(400),
      Array.from({ length: 400 }, (_, index) => `join${index}`),
      ["c0", "c399"],
    ],
  ])("are found in a time that grows with its edges: %s", (_title, ids, joins, sources) => {
    const edges = [
      ...chain(ids.join(">")),
      ...joins.flatMap((join) => [
        ...sources.map((source) => createEdge(`${source}>${join}`, one)),
        createEdge(`${join}>c0`, ifGo),
      ]),
    ];
    const small = { nodes: createNodes([...ids, ...joins].join(" ")), edges };
    const [first = "", ...rest] = ids;
    const log = [first, ...joins, ...rest].map((nodeId) => `${nodeId} completed`).join(", ");
    expect(countReads(small, log)).toBeLessThan(20 * edges.length);
  });
});
