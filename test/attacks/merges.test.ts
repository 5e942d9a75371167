import { describe, expect, it } from "vitest";
import type { TextMerged } from "../../src/agents/coordination/ports/text-merge.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";

const OVERLAP = { kind: "obstacle", obstacle: "overlapping_changes" };
const textMerge = createFormatMerge();

/** Merges texts in which each side changed a line of its own: by line there is always a merge, unless it would be broken. */
function mergeAround(path: string, before: string, hostile: string): TextMerged {
  const write = (first: number, last: number): string =>
    `${before.replace("FIRST", String(first))}${hostile.replace("LAST", String(last))}`;
  return textMerge.merge({ base: write(1, 1), current: write(2, 1), proposed: write(1, 2), path });
}

function measureMs(work: () => void): number {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
}

/** Shared cores: many times what it takes alone, and far below what a text of this kind takes without bounds. */
const MS_MAX = 2_000;

describe("a text that is made to be expensive", () => {
  const deep = 20_000;
  it.each<readonly [string, string, string, string]>([
    [
      "JSON lists within lists",
      "x.json",
      '{"a": FIRST,\n\n"d": ',
      `${"[".repeat(deep)}${"]".repeat(deep)},\n\n"b": LAST}`,
    ],
    [
      "JSON maps within maps",
      "x.json",
      '{"a": FIRST,\n\n"d": ',
      `${'{"k":'.repeat(deep)}1${"}".repeat(deep)},\n\n"b": LAST}`,
    ],
    ["open brackets in JSON", "x.json", '{"a": FIRST,\n\n"d": ', `${"[".repeat(deep)}\n\nLAST`],
    [
      "a long JSON list within lists",
      "x.json",
      '{"a": FIRST,\n\n"d": ',
      `${"[".repeat(38)}${"1,".repeat(60_000)}1${"]".repeat(38)},\n\n"b": LAST}`,
    ],
    [
      "a large JSON map within maps",
      "x.json",
      '{"a": FIRST,\n\n"d": ',
      `${'{"k":'.repeat(38)}{${Array.from({ length: 15_000 }, (_, at) => `"${at}":1,`).join("")}\n\n"b":LAST}${"}".repeat(38)}}`,
    ],
    [
      "YAML lists within lists",
      "x.yaml",
      "a: FIRST\n\nd: ",
      `${"[".repeat(7_000)}${"]".repeat(7_000)}\n\nb: LAST\n`,
    ],
    [
      "YAML maps as keys",
      "x.yaml",
      "a: FIRST\n\n? ",
      `${"{? ".repeat(500)}1${"}".repeat(500)}\n: 1\n\nb: LAST\n`,
    ],
    ["YAML lists in one line", "x.yaml", "a: FIRST\n\nd:\n  ", `${"- ".repeat(5_000)}1\n\nb: LAST\n`],
    [
      "YAML aliases of aliases",
      "x.yaml",
      "a: FIRST\n\nl0: &l0 [x, x, x, x, x, x, x, x]\n",
      `${Array.from({ length: 9 }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at},`.repeat(8)}]\n`).join("")}\nb: LAST\n`,
    ],
    [
      "YAML indented again and again",
      "x.yaml",
      "a: FIRST\n\n",
      `${Array.from({ length: 100 }, (_, at) => `${" ".repeat(at)}k:\n`).join("")}\nb: LAST\n`,
    ],
    [
      "TOML lists within lists",
      "x.toml",
      "a = FIRST\n\nd = ",
      `${"[".repeat(deep)}${"]".repeat(deep)}\n\nb = LAST\n`,
    ],
    [
      "TOML keys of many names",
      "x.toml",
      "a = FIRST\n\n",
      `${Array.from({ length: 3_000 }, () => "k").join(".")} = 1\n\nb = LAST\n`,
    ],
    ["Markdown quotes within quotes", "x.md", "# A\n\nFIRST\n\n", `${">".repeat(deep)} x\n\nLAST\n`],
    ["Markdown lists in one line", "x.md", "# A\n\nFIRST\n\n", `${"- ".repeat(deep)}x\n\nLAST\n`],
    ["Markdown open links", "x.md", "# A\n\nFIRST\n\n", `${"[a](".repeat(deep)}\n\nLAST\n`],
    ["Markdown emphasis", "x.md", "# A\n\nFIRST\n\n", `${"*a _b ".repeat(deep)}\n\nLAST\n`],
    ["Markdown heading of spaces", "x.md", "# A\n\nFIRST\n\n", `# x${" ".repeat(80_000)}x\n\nLAST\n`],
    ["ends of lines", "x.md", "# A\n\nFIRST\n\n", `${"\n".repeat(15_000)}LAST\n`],
    [
      "TypeScript brackets",
      "x.ts",
      'import { a } from "a";\nFIRST;\n\n',
      `${"(".repeat(deep)}1${")".repeat(deep)}\n\nLAST\n`,
    ],
    [
      "TypeScript comments",
      "x.ts",
      'import { a } from "a";\nFIRST;\n\n',
      `import {${"/**/ ".repeat(8_000)}} from "b";\n\nLAST\n`,
    ],
    ["Python brackets", "x.py", "import a\nFIRST\n\n", `${"(".repeat(deep)}1${")".repeat(deep)}\n\nLAST\n`],
    [
      "Python blocks",
      "x.py",
      "import a\nFIRST\n\n",
      `${Array.from({ length: 200 }, (_, at) => `${" ".repeat(at)}if a:\n`).join("")}\nLAST\n`,
    ],
  ])("is merged by line, soon: %s", (_, path, before, hostile) => {
    let merged: TextMerged | undefined;
    const elapsedMs = measureMs(() => {
      merged = mergeAround(path, before, hostile);
    });
    expect(merged).toMatchObject({ kind: "clean" });
    expect(merged).not.toHaveProperty("way");
    expect(elapsedMs).toBeLessThan(MS_MAX);
  });

  it.each(["x.json", "x.yaml", "x.toml", "x.md", "x.ts", "x.py"])(
    "is not looked at beyond a size: %s",
    (path) => {
      const all = "k: 1\n".repeat(200_000);
      const elapsedMs = measureMs(() => {
        expect(textMerge.merge({ base: all, current: `a\n${all}`, proposed: `${all}b\n`, path })).toEqual({
          kind: "clean",
          text: `a\n${all}b\n`,
        });
      });
      expect(elapsedMs).toBeLessThan(MS_MAX);
    },
  );
});

describe("keys that mean something to JavaScript", () => {
  it.each([
    [
      "x.json",
      '{"a": 1, "__proto__": {"x": 1}}',
      ['"a": 1', '"a": 2'],
      ['{"x": 1}', '{"x": 1, "constructor": 1}'],
    ],
    ["x.yaml", "a: 1\n__proto__: 3\n", ["a: 1", "a: 2"], ["_: 3", "_:\n  constructor: 1"]],
    ["x.toml", "b.constructor = 1\nb.__proto__.x = 1\n", ["r = 1", "r = 2"], ["x = 1", "x = 2"]],
  ] as const)("are keys in %s", (path, base, [first, firstMade], [second, secondMade]) => {
    const current = base.replace(first, firstMade);
    const proposed = base.replace(second, secondMade);
    expect(textMerge.merge({ base, current, proposed, path })).toEqual({
      kind: "clean",
      text: current.replace(second, secondMade),
      way: "key",
    });
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });
});

describe("a text that is not what it seems", () => {
  it.each([
    ["JSON with one key twice", "x.json", '{"a": FIRST,\n"k": 1,\n"\\u006b": 2,\n', '"b": LAST}'],
    ["TOML with one table twice", "x.toml", "a = FIRST\n[t]\n[t]\n", "b = LAST\n"],
    ["YAML with one key twice", "x.yaml", "a: FIRST\nk: 1\nk: 2\n", "b: LAST\n"],
    ["YAML with tabs", "x.yaml", "a: FIRST\nk:\n\tx: 1\n", "b: LAST\n"],
    ["YAML with directives", "x.yaml", "%YAML 1.1\n---\na: FIRST\nk: 1\n", "b: LAST\n"],
    ["lone returns", "x.json", '{"a": FIRST,\n\r"k": 1,\n', '"b": LAST}'],
    ["TypeScript that cannot be read", "x.ts", 'import { a } from "a";\nFIRST +;\n1\n', "LAST\n"],
    ["Markdown with one heading twice", "x.md", "# A\nFIRST\n# A\n", "LAST\n"],
  ])("is merged by line: %s", (_, path, before, hostile) => {
    const merged = mergeAround(path, before, hostile);
    expect(merged).toMatchObject({ kind: "clean" });
    expect(merged).not.toHaveProperty("way");
  });

  it.each([
    ["a byte order mark that one side took away", "x.json", '\uFEFF{"a": 1, "b": 1}'],
    ["lines that one side ended otherwise", "x.yaml", "a: 1\r\nb: 1\r\n"],
  ])("is left to people: %s", (_, path, base) => {
    const current = base.replace(/[\uFEFF\r]/gu, "").replace("1", "2");
    const proposed = base.replace(/1(?=\D*$)/u, "2");
    expect(textMerge.merge({ base, current, proposed, path })).toEqual(OVERLAP);
  });

  it.each([
    ["a block scalar that has it", "a: 1\nk: |+\n  x\n\nb: 1\n", "k: |+\n  x\n\n  # no comment\nb: 1\n"],
    ["a quoted text over lines", 'a: 1\nk: "x\n  b: 2"\nb: 1\n', 'k: "x\n  b: 3"\nb: 1\n'],
  ])("does not take for a comment or a key of YAML %s", (_, base, tail) => {
    const current = base.replace("a: 1", "a: 2");
    const proposed = base.slice(0, base.indexOf("k:")) + tail;
    expect(textMerge.merge({ base, current, proposed, path: "x.yaml" })).toMatchObject({
      kind: "clean",
      text: `a: 2\n${tail}`,
    });
  });

  it.each(["__proto__", "constructor", "toString", "", ".", "x.", ".json", "a/b.d/c", "x.__proto__"])(
    "is merged by line where its name is %j",
    (path) => {
      const base = "a\nb\nc\n";
      expect(textMerge.merge({ base, current: "A\nb\nc\n", proposed: "a\nb\nC\n", path })).toEqual({
        kind: "clean",
        text: "A\nb\nC\n",
      });
    },
  );
});
