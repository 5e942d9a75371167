import { describe, expect, it } from "vitest";
import { describeMerge, joinLines, merge, OVERLAP, OWNED } from "./format-merge-scene.ts";

describe("JSON is merged by key", () => {
  const base = joinLines("{", '  "a": 1,', '  "b": 2', "}");

  it("takes changes of keys next to each other together", () => {
    const left = base.replace("1", "10");
    const right = base.replace("2", "20");
    expect(merge("x.json", base, [left, right])).toEqual(
      describeMerge("key", joinLines("{", '  "a": 10,', '  "b": 20', "}")),
    );
  });

  it("adds the keys of both sides, each with its comma", () => {
    const left = joinLines("{", '  "a": 1,', '  "b": 2,', '  "c": 3', "}");
    const right = joinLines("{", '  "a": 1,', '  "b": 2,', '  "d": [4]', "}");
    const both = joinLines("{", '  "a": 1,', '  "b": 2,', '  "c": 3,', '  "d": [4]', "}");
    expect(merge("x.json", base, [left, right])).toEqual(describeMerge("key", both));
  });

  it("removes a key that the other side left alone, and adds one", () => {
    const left = joinLines("{", '  "a": 1', "}");
    const right = joinLines("{", '  "a": 1,', '  "b": 2,', '  "c": 3', "}");
    expect(merge("x.json", base, [left, right])).toEqual(
      describeMerge("key", joinLines("{", '  "a": 1,', '  "c": 3', "}")),
    );
  });

  it("goes into maps, in one line too", () => {
    expect(
      merge("x.json", '{ "m": { "a": 1, "b": 2 } }', [
        '{ "m": { "a": 10, "b": 2 } }',
        '{ "m": { "a": 1, "b": 2, "c": 3 } }',
      ]),
    ).toEqual(describeMerge("key", '{ "m": { "a": 10, "b": 2, "c": 3 } }'));
  });

  it("keeps a new layout of one side, with the other side's value", () => {
    const flat = '{"a":1,"b":{"c":[1,2]}}\n';
    const wide = joinLines(
      "{",
      '  "a": 1,',
      '  "b": {',
      '    "c": [',
      "      1,",
      "      2",
      "    ]",
      "  }",
      "}",
    );
    const merged = merge("x.json", flat, [wide, flat.replace("1,", "7,")]);
    expect(merged).toMatchObject({ kind: "clean", way: "key" });
    expect(JSON.parse(merged.kind === "clean" ? merged.text : "")).toEqual({ a: 7, b: { c: [1, 2] } });
  });

  it("keeps comments, each with its key", () => {
    const commented = joinLines("{", "  // first", '  "a": 1, // one', '  "b": 2', "  // end", "}");
    const left = commented.replace('"b": 2', '"b": 2, // two\n  /* third */ "c": 3');
    const right = commented.replace('"a": 1', '"a": 10');
    expect(merge("x.jsonc", commented, [left, right])).toEqual(
      describeMerge("key", left.replace('"a": 1', '"a": 10')),
    );
  });

  it("keeps CRLF, a byte order mark, tabs and the lack of a newline at the end", () => {
    const odd = '\uFEFF{\r\n\t"a": 1,\r\n\t"b": 2\r\n}';
    expect(merge("x.json", odd, [odd.replace("1", "10"), odd.replace("2", "20")])).toEqual(
      describeMerge("key", '\uFEFF{\r\n\t"a": 10,\r\n\t"b": 20\r\n}'),
    );
  });

  it.each([
    ["both changed one key", base.replace("1", "10"), base.replace("1", "11")],
    ["one removed what the other changed", joinLines("{", '  "a": 1', "}"), base.replace("2", "20")],
    ["both gave one key another name", base.replace('"a"', '"x"'), base.replace('"a"', '"y"')],
    [
      "both added one key with other values",
      base.replace("2", '2,\n  "c": 3'),
      base.replace("2", '2,\n  "c": 4'),
    ],
    [
      "the comment of a value was changed beside the value",
      base.replace("1,", "1, // one"),
      base.replace("1,", "10,"),
    ],
  ])("leaves it to people where %s", (_, left, right) => {
    expect(merge("x.json", base, [left, right])).toEqual(OVERLAP);
  });

  it("finds the same key in two places, which lines do not", () => {
    const wide = joinLines("{", '  "a": 1,', '  "b": 2,', '  "c": 3,', '  "d": 4', "}");
    const first = wide.replace('  "a"', '  "x": 1,\n  "a"');
    const last = wide.replace('  "d"', '  "x": 2,\n  "d"');
    expect(merge("x.json", wide, [first, last])).toEqual(OVERLAP);
    expect(merge("x.txt", wide, [first, last])).toMatchObject({ kind: "clean" });
  });

  it("merges by line what it cannot read, and lists", () => {
    const list = joinLines("[", "  1,", "  2,", "  3", "]");
    const both = list.replace("1", "10").replace("3", "30");
    expect(merge("x.json", list, [list.replace("1", "10"), list.replace("3", "30")])).toEqual({
      kind: "clean",
      text: both,
    });
    const broken = joinLines("{", "  a", "  b", "  c");
    expect(merge("x.json", broken, [broken.replace("a", "A"), broken.replace("c", "C")])).toEqual({
      kind: "clean",
      text: joinLines("{", "  A", "  b", "  C"),
    });
  });

  it("takes for a merge by line what lines make as well", () => {
    const wide = joinLines("{", '  "a": 1,', '  "b": 2,', '  "c": 3', "}");
    expect(merge("x.json", wide, [wide.replace("1", "10"), wide.replace("3", "30")])).toEqual({
      kind: "clean",
      text: joinLines("{", '  "a": 10,', '  "b": 2,', '  "c": 30', "}"),
    });
  });
});

describe("what tools own", () => {
  const base = joinLines(
    "{",
    '  "name": "x",',
    '  "version": "1",',
    '  "dependencies": {',
    '    "b": "1"',
    "  }",
    "}",
  );

  it("merges package.json where both changed other keys", () => {
    const left = base.replace('"b": "1"', '"a": "1",\n    "b": "1"');
    const right = base
      .replace('"b": "1"', '"b": "1",\n    "c": "1"')
      .replace('"version": "1"', '"version": "2"');
    expect(merge("/w/package.json", base, [left, right])).toEqual(
      describeMerge("key", right.replace('"b"', '"a": "1",\n    "b"')),
    );
  });

  it("does not merge package.json by line", () => {
    const listed = base.replace("{\n", '{\n  "files": [\n    "a",\n    "b",\n    "c"\n  ],\n');
    const left = listed.replace('"a"', '"A"');
    const right = listed.replace('"c"', '"C"');
    expect(merge("/w/package.json", listed, [left, right])).toEqual(OVERLAP);
    expect(merge("/w/other.json", listed, [left, right])).toMatchObject({ kind: "clean" });
  });

  it.each([
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "go.sum",
  ])("never merges %s", (name) => {
    const text = joinLines("a: 1", "b: 2", "c: 3");
    expect(merge(`/w/${name}`, text, [text.replace("1", "10"), text.replace("3", "30")])).toEqual(OWNED);
    expect(merge(`/w/${name}`, text, [text, text.replace("3", "30")])).toEqual({
      kind: "clean",
      text: text.replace("3", "30"),
    });
  });
});

describe("YAML is merged by key", () => {
  const base = joinLines(
    "# about",
    "",
    "a: 1 # one",
    "# of b",
    "b:",
    "  c: 2",
    "  d: [3]",
    "e: |",
    "  text",
    "",
    "f: 5",
  );

  it("takes changes of keys next to each other together, with their comments", () => {
    const left = base.replace("a: 1 # one", "a: 10 # ten");
    const right = base.replace("c: 2", "c: 20").replace("# of b", "# about b");
    expect(merge("x.yml", base, [left, right])).toEqual(
      describeMerge("key", right.replace("a: 1 # one", "a: 10 # ten")),
    );
  });

  it("adds the keys of both sides at one place", () => {
    const left = base.replace("  d: [3]", "  d: [3]\n  x: 1");
    const right = base.replace("  d: [3]", "  d: [3]\n  # why\n  y: |\n    1\n");
    expect(merge("x.yaml", base, [left, right])).toEqual(
      describeMerge("key", right.replace("  # why", "  x: 1\n  # why")),
    );
  });

  it("adds at the end of a text that ends without a newline", () => {
    expect(merge("x.yaml", "a: 1\nb: 2", ["a: 1\nb: 2\nc: 3", "a: 1\nb: 2\nd: 4"])).toEqual(
      describeMerge("key", "a: 1\nb: 2\nc: 3\nd: 4"),
    );
  });

  it("keeps CRLF and tags", () => {
    const odd = "a: !Ref x\r\nb: !!map\r\n  c: 1\r\nd: 'e'\r\n";
    expect(merge("x.yaml", odd, [odd.replace("c: 1", "c: 2"), odd.replace("'e'", "!Ref f")])).toEqual(
      describeMerge("key", odd.replace("c: 1", "c: 2").replace("'e'", "!Ref f")),
    );
  });

  it.each([
    ["anchors", joinLines("a: &x 1", "b: *x", "c: 3", "d: 4", "e: 5")],
    ["several documents", joinLines("a: 1", "---", "b: 2", "c: 3", "d: 4", "e: 5")],
    ["a list", joinLines("- d: 4", "- 2", "- e: 5")],
    ["keys that are maps", joinLines("? {a: 1}", ": 2", "d: 4", "c: 1", "e: 5")],
  ])("merges %s by line", (_, text) => {
    expect(merge("x.yaml", text, [text.replace("4", "40"), text.replace("5", "50")])).toEqual(
      text.includes("d: 4\ne: 5")
        ? OVERLAP
        : { kind: "clean", text: text.replace("4", "40").replace("5", "50") },
    );
  });
});

describe("TOML is merged by key", () => {
  const base = joinLines(
    "a = 1 # one",
    "b = 2",
    "",
    "# of t",
    "[t]",
    "c = 3",
    "d = 4",
    "",
    "[[l]]",
    "n = 1",
    "[l.m]",
    "o = 1",
  );

  it("takes changes of keys next to each other together, and adds tables", () => {
    const left = base.replace("a = 1 # one", "a = 10 # ten").replace("c = 3", "c = 30");
    const right = base.replace("b = 2\n", "b = 20\nx.y = 1\n").replace("d = 4\n", "d = 4\n\n[u]\ne = 5\n");
    expect(merge("x.toml", base, [left, right])).toEqual(
      describeMerge("key", right.replace("a = 1 # one", "a = 10 # ten").replace("c = 3", "c = 30")),
    );
  });

  it("leaves it to people where both changed tables of one list", () => {
    expect(
      merge("x.toml", base, [base.replace("n = 1", "n = 2"), base.replace("[l.m]", "p = 1\n[l.m]")]),
    ).toEqual(OVERLAP);
  });

  it("leaves it to people where both added one table, which lines do not see", () => {
    const wide = joinLines("[a]", "x = 1", "", "[b]", "x = 1", "", "[c]", "x = 1");
    const left = wide.replace("[b]", "[new]\nx = 1\n\n[b]");
    const right = `${wide}\n[new]\nx = 2\n`;
    expect(merge("x.txt", wide, [left, right])).toMatchObject({ kind: "clean" });
    expect(merge("x.toml", wide, [left, right])).toEqual(OVERLAP);
  });

  it("merges Cargo.toml and pyproject.toml by key or not at all", () => {
    const cargo = joinLines("[dependencies]", 'a = "1"', 'b = "1"');
    const both = joinLines("[dependencies]", 'a = "2"', 'b = "2"');
    expect(
      merge("Cargo.toml", cargo, [cargo.replace('a = "1"', 'a = "2"'), cargo.replace('b = "1"', 'b = "2"')]),
    ).toEqual(describeMerge("key", both));
    expect(
      merge("pyproject.toml", "a = [\n1,\n2,\n3]\n", ["a = [\n0,\n2,\n3]\n", "a = [\n1,\n2,\n4]\n"]),
    ).toEqual(OVERLAP);
  });
});
