import { describe, expect, it } from "vitest";
import { describeMerge, joinLines, merge, OVERLAP } from "./format-merge-scene.ts";

describe("Markdown is merged by section", () => {
  const base = joinLines(
    "---",
    "title: x",
    "---",
    "Preface.",
    "",
    "# A",
    "",
    "Text of A.",
    "",
    "## B",
    "",
    "Text of B.",
  );

  it("adds sections of both sides at one place", () => {
    const left = `${base}\n## C\n\nText of C.\n`;
    const right = `${base}\n## D\n\nText of D.\n`;
    expect(merge("x.md", base, [left, right])).toEqual(
      describeMerge("section", `${left}\n## D\n\nText of D.\n`),
    );
  });

  it("follows a section that one side moved with what the other wrote in it", () => {
    const two = joinLines("# One", "", "a", "", "# Two", "", "b", "", "# Three", "", "c");
    const moved = joinLines("# Two", "", "b", "", "# Three", "", "c", "", "# One", "", "a");
    expect(merge("x.md", two, [moved, two.replace("a\n", "a\nmore\n")])).toEqual(
      describeMerge("section", moved.replace("a\n", "a\nmore\n")),
    );
  });

  it("merges what stands below one heading by line", () => {
    const text = joinLines("# A", "", "one", "two", "three");
    expect(merge("x.md", text, [text.replace("one", "1"), text.replace("two", "2")])).toEqual(OVERLAP);
  });

  it("does not take lines of code for headings", () => {
    const text = joinLines("# A", "", "```", "# x", "# x", "```", "", "# B", "", "b");
    expect(
      merge("x.md", text, [text.replace("# A", "# A\n\nnew"), text.replace("# B\n", "# C\n\nc\n\n# B\n")]),
    ).toMatchObject({
      kind: "clean",
    });
  });

  it.each([
    ["one", "two", "A"],
    ["one", "two", "z"],
    ["two", "three", "A"],
    ["two", "three", "z"],
    ["one", "five", "z"],
  ])("leaves sections where they are when one side renames %s and the other one %s", (one, other, mark) => {
    const text = ["one", "two", "three", "four", "five"].map((title) => `# ${title}\n\nbelow\n`).join("\n");
    const rename = (from: string, title: string): string => from.replace(title, mark + title);
    expect(merge("x.md", text, [rename(text, one), rename(text, other)])).toMatchObject({
      kind: "clean",
      text: rename(rename(text, one), other),
    });
  });

  it("leaves it to people where both rename sections and add to them, because no order is known", () => {
    const text = joinLines("# One", "", "# Two", "", "# End");
    const left = joinLines("# First", "", "# End");
    const right = joinLines("# One", "", "# Second", "", "# End");
    expect(merge("x.md", text, [left, right])).toEqual(OVERLAP);
  });

  it("keeps setext headings, CRLF and the lack of a newline at the end", () => {
    const text = "A\r\n===\r\n\r\na\r\n\r\nB\r\n---\r\nb";
    expect(merge("x.md", text, [`${text}\r\n\r\nC\r\n---\r\nc`, `${text}\r\n\r\nD\r\n---\r\nd`])).toEqual(
      describeMerge("section", `${text}\r\n\r\nC\r\n---\r\nc\r\n\r\nD\r\n---\r\nd`),
    );
  });
});

describe("imports are merged as a set", () => {
  const typescript = joinLines(
    "// Owns: x",
    'import { a } from "a";',
    'import type { T } from "t"; // types',
    "",
    "export const x = a;",
    "export const y = 1;",
    "export const z = 2;",
  );

  it("adds imports of both sides at one place, and names to one import", () => {
    const left = typescript.replace('{ a } from "a";', '{ a, b } from "a";\nimport l from "l";');
    const right = typescript
      .replace('{ a } from "a";', '{ a, c as d } from "a";\nimport * as r from "r";')
      .replace("2", "3");
    const both = typescript
      .replace('{ a } from "a";', '{ a, b, c as d } from "a";\nimport l from "l";\nimport * as r from "r";')
      .replace("2", "3");
    expect(merge("x.ts", typescript, [left, right])).toEqual(describeMerge("imports", both));
  });

  it("adds names in lines of their own, with their comments", () => {
    const wide = joinLines("import {", "  a, // first", "  d,", '} from "x";', "", "a(d);");
    const left = wide.replace("  d,", "  b, // second\n  d,");
    const right = wide.replace("  d,", "  // third\n  c,\n  d,");
    expect(merge("x.mts", wide, [left, right])).toEqual(
      describeMerge("imports", right.replace("  // third", "  b, // second\n  // third")),
    );
  });

  it.each([
    ["both import one name from elsewhere", 'import { n } from "l";', 'import { n } from "r";'],
    ["both add an import for its effect", 'import "l";', 'import "r";'],
  ])("leaves it to people where %s", (_, ours, theirs) => {
    const at = 'import { a } from "a";';
    const left = typescript.replace(at, `${at}\n${ours}`);
    const right = typescript.replace(at, `${at}\n${theirs}`);
    expect(merge("x.ts", typescript, [left, right])).toEqual(OVERLAP);
  });

  it("finds one name imported twice, which lines do not", () => {
    const wide = joinLines(
      'import { a } from "a";',
      'import { b } from "b";',
      'import { c } from "c";',
      "a(b, c);",
    );
    const left = `import { n } from "l";\n${wide}`;
    const right = wide.replace("a(b", 'import { n } from "r";\na(b');
    expect(merge("x.txt", wide, [left, right])).toMatchObject({ kind: "clean" });
    expect(merge("x.ts", wide, [left, right])).toEqual(OVERLAP);
  });

  const python = joinLines(
    '"""Docs."""',
    "from __future__ import annotations",
    "import os",
    "from x import a, b",
    "",
    "a = 1",
    "b = 2",
  );

  it("merges those of Python, with and without brackets", () => {
    const left = python.replace("import os", "import os\nimport sys").replace("a, b", "a, b, c");
    const right = python
      .replace("import os", "import os\nfrom y import (\n    z,  # why\n)")
      .replace("a, b", "a, b, d as e");
    expect(merge("x.py", python, [left, right])).toEqual(
      describeMerge(
        "imports",
        python
          .replace("import os", "import os\nfrom y import (\n    z,  # why\n)\nimport sys")
          .replace("a, b", "a, b, c, d as e"),
      ),
    );
  });

  it.each([
    ["stars", "from l import *", "from r import *"],
    ["one name from two modules", "from l import n", "from r import n"],
  ])("leaves %s of Python to people", (_, ours, theirs) => {
    const left = python.replace("import os", `import os\n${ours}`);
    const right = python.replace("import os", `import os\n${theirs}`);
    expect(merge("x.py", python, [left, right])).toEqual(OVERLAP);
  });
});
