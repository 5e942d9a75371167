/** Owns: which conditions of edges hold for the outputs of a node, and which patterns may stand in them. */
import { RE2JS } from "re2js";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { EdgeCondition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import {
  findConditionProblem,
  isConditionHolding,
} from "../../src/agents/coordination/workflow/state/values.ts";

const OUTPUTS = {
  word: "approved",
  text: "a3",
  count: 3,
  big: 33,
  list: [1, { a: 2 }],
  bytes: [51],
  yes: true,
  no: false,
  empty: "",
  "my-path": { $ok: true },
  nested: { deep: true, output: { word: "inner" } },
  nothing: null,
  quote: 'say "hi"',
  apostrophe: "it's",
  path: "a\\b",
  lines: "one\ntwo",
  "": true,
};

describe("a condition", () => {
  it.each<[boolean, EdgeCondition]>([
    [true, { type: "equals", left: "word", right: "approved" }],
    [true, { type: "equals", left: "output.word", right: "approved" }],
    [true, { type: "equals", left: "output", right: OUTPUTS }],
    [true, { type: "equals", left: "nested.output.word", right: "inner" }],
    [true, { type: "equals", left: "list", right: [1, { a: 2 }] }],
    [false, { type: "equals", left: "count", right: "3" }],
    [false, { type: "equals", left: "missing", right: 1 }],
    [true, { type: "equals", left: "nothing", right: null }],
    [true, { type: "equals", left: "output.nothing", right: null }],
    [false, { type: "notEquals", left: "nothing", right: null }],
    [false, { type: "equals", left: "missing", right: null }],
    [false, { type: "equals", left: "nested.word", right: "approved" }],
    [true, { type: "equals", left: "output.", right: true }],
    [true, { type: "notEquals", left: "count", right: 4 }],
    [false, { type: "notEquals", left: "count", right: 3 }],
    [true, { type: "contains", left: "list", right: { a: 2 } }],
    [false, { type: "contains", left: "list", right: 2 }],
    [true, { type: "contains", left: "word", right: "prov" }],
    [false, { type: "contains", left: "word", right: "deny" }],
    [false, { type: "contains", left: "count", right: "3" }],
    [false, { type: "contains", left: "text", right: 3 }],
    [true, { type: "regex", left: "word", right: "^app.*d$" }],
    [false, { type: "regex", left: "word", right: "^prov" }],
    [false, { type: "regex", left: "count", right: "3" }],
    [false, { type: "regex", left: "bytes", right: "3" }],
    [false, { type: "regex", left: "text", right: 3 }],
    [true, { type: "expression", expression: "yes" }],
    [true, { expression: "yes" }],
    [false, { type: "expression" }],
  ])("is %s: %j", (expected, condition) => {
    expect(isConditionHolding(condition, OUTPUTS)).toBe(expected);
  });

  it.each<[boolean, EdgeCondition]>([
    [true, { type: "equals", left: "output.word", right: "outer" }],
    [true, { type: "equals", left: "output.deep", right: 1 }],
    [true, { type: "equals", left: "output.output.word", right: "inner" }],
    [true, { type: "equals", left: "output", right: { word: "inner", deep: 1 } }],
    [true, { expression: "output.word == 'outer'" }],
    [true, { expression: "output.deep == 1" }],
  ])("names all outputs by `output`, and then the one that has this name: %s: %j", (expected, condition) => {
    expect(isConditionHolding(condition, { output: { word: "inner", deep: 1 }, word: "outer" })).toBe(
      expected,
    );
  });

  it("is not confused with another condition on the same outputs, or the same one on others", () => {
    const condition: EdgeCondition = { type: "equals", left: "count", right: 3 };
    const outputs = { count: 3 };
    expect(isConditionHolding(condition, outputs)).toBe(true);
    expect(isConditionHolding({ ...condition, right: 4 }, outputs)).toBe(false);
    expect(isConditionHolding(condition, { count: 4 })).toBe(false);
    expect(isConditionHolding(condition, outputs)).toBe(true);
  });

  it.each([[true], [false]])("is evaluated once for each outputs when it is %s", (expected) => {
    let reads = 0;
    const outputs = {
      get count() {
        reads += 1;
        return 3;
      },
    };
    const condition: EdgeCondition = { type: "equals", left: "count", right: expected ? 3 : 4 };
    expect([1, 2, 3].map(() => isConditionHolding(condition, outputs))).toEqual([
      expected,
      expected,
      expected,
    ]);
    expect(reads).toBe(1);
  });
});

describe("an expression", () => {
  it.each([
    [true, "yes"],
    [true, "output.yes"],
    [true, "  yes  "],
    [true, "count"],
    [true, "nested.deep"],
    [true, "my-path.$ok"],
    [false, "no"],
    [false, "empty"],
    [false, "missing"],
    [false, "!yes"],
    [true, "!no"],
    [true, "!missing"],
    [true, "count == 3"],
    [true, "count === 3"],
    [false, "count === 4"],
    [true, "count==3"],
    [true, "big==33"],
    [true, " big  ==  33 "],
    [false, "count != 3"],
    [false, "count !== 3"],
    [true, "count != 4"],
    [true, "count !== 4"],
    [true, "missing != 4"],
    [true, "word == 'approved'"],
    [true, 'word == "approved"'],
    [true, "word == approved"],
    [true, "word == approved "],
    [true, "empty == ''"],
    [false, "word == 'denied'"],
    [false, "word != 'approved'"],
    [true, 'list == [1, {"a": 2}]'],
    [true, "yes == true"],
    [false, "!yes == true"],
    [true, "!yes == false"],
    [true, "!no == true"],
    [false, "!no != true"],
    [true, "!missing == true"],
    [true, "nothing == null"],
    [true, "output.nothing == null"],
    [false, "missing == null"],
    [true, `quote == 'say "hi"'`],
    [true, `quote == 'say \\"hi\\"'`],
    [true, `quote == "say \\"hi\\""`],
    [true, "apostrophe == 'it\\'s'"],
    [true, `apostrophe == "it's"`],
    [true, "path == 'a\\\\b'"],
    [true, "lines == 'one\\ntwo'"],
    [true, "lines == one\ntwo"],
    [false, "empty == 'not closed"],
    [false, "word == a'approved'"],
    [false, "word == 'approved'a"],
    [false, "lines == 'one\ntwo'"],
    [false, "count == '3'"],
    [false, "(yes"],
    [false, "yes)"],
    [false, "yes = true"],
    [false, "yes =="],
    [false, ""],
    [false, "word == "],
    [true, "word != "],
  ])("is %s: %s", (expected, expression) => {
    expect(isConditionHolding({ type: "expression", expression }, OUTPUTS)).toBe(expected);
  });

  it.each<[problem: string | undefined, condition: EdgeCondition]>([
    [undefined, { expression: "a".repeat(2_000) }],
    ["its expression is longer than 2000 characters", { expression: "a".repeat(2_001) }],
    ["its expression is longer than 2000 characters", { type: "expression", expression: "a".repeat(2_001) }],
    [undefined, { type: "expression" }],
    [undefined, { type: "equals", left: "word", right: "a", expression: "a".repeat(2_001) }],
  ])("has the problem %s where it is too long", (problem, condition) => {
    expect(findConditionProblem(condition)).toBe(problem);
  });

  it("is read in time that grows as it does, also where a definition from before has a long one", () => {
    const expression = `word == a${" ".repeat(60_000)}b`;
    const beganAt = performance.now();
    expect(isConditionHolding({ type: "expression", expression }, OUTPUTS)).toBe(false);
    expect(performance.now() - beganAt).toBeLessThan(2_000);
  });
});

describe("a pattern", () => {
  const isMatched = (right: string, word: string): boolean =>
    isConditionHolding({ type: "regex", left: "word", right }, { word });

  it.each<[string | undefined, string, unknown]>([
    [undefined, "two hundred characters", "a".repeat(200)],
    ["no short text", "more than two hundred characters", "a".repeat(201)],
    [undefined, "as many repetitions as an automaton may have", "a{498}"],
    ["none that is matched in short time", "one repetition more", "a{499}"],
    ["none that is matched in short time", "a reference back", "(a)\\1"],
    ["none that is matched in short time", "a bracket that is not closed", "(a"],
    ["no short text", "a number", 3],
    ["no short text", "nothing", undefined],
  ])("has the problem %s where it is %s", (problem, _title, right) => {
    const expected = problem && `its pattern is ${problem}`;
    expect(findConditionProblem({ type: "regex", left: "word", right })).toBe(expected);
    const condition: EdgeCondition = { type: "regex", left: "word", right };
    expect(isConditionHolding(condition, { word: "a".repeat(500) })).toBe(problem === undefined);
  });

  it("is not looked for in a condition that has none", () => {
    expect(findConditionProblem({ type: "equals", left: "word", right: "(a" })).toBeUndefined();
    expect(findConditionProblem({ expression: "word" })).toBeUndefined();
  });

  it("matches a text of two thousand characters and none that is longer", () => {
    expect(isMatched("^a+$", "a".repeat(2_000))).toBe(true);
    expect(isMatched("^a+$", "a".repeat(2_001))).toBe(false);
  });
});

describe("the patterns that are kept compiled", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("are compiled once, also those that cannot be", () => {
    const compile = vi.spyOn(RE2JS, "compile");
    for (const right of ["kept (once)?", "kept (never"])
      for (const word of ["kept", "kept once", "kept "])
        expect(isConditionHolding({ type: "regex", left: "word", right }, { word })).toBe(
          right === "kept (once)?" && word !== "kept",
        );
    expect(compile.mock.calls).toEqual([["kept (once)?"], ["kept (never"]]);
  });

  it("are two hundred at most", () => {
    const compile = vi.spyOn(RE2JS, "compile");
    const use = (name: number): boolean => {
      const before = compile.mock.calls.length;
      isConditionHolding({ type: "regex", left: "word", right: `kept ${name}` }, { word: "" });
      return compile.mock.calls.length > before;
    };
    use(0);
    // Other tests used some, so that nobody knows how many it takes until all are dropped.
    let newest = 1;
    while (use(newest) && !use(0) && newest <= 200) newest += 1;
    expect(newest).toBeLessThanOrEqual(200);
    // Now there are two: the newest one and the first.
    for (let name = 1_000; name < 1_198; name += 1) expect(use(name)).toBe(true);
    expect(use(newest)).toBe(false);
    expect(use(2_000)).toBe(true);
    expect(use(newest)).toBe(true);
  });
});
