import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { proposeTextAfterEdits } from "../../src/plugins/openclaw/writes/apply-edits.ts";
import { EDITS_MAX } from "../../src/plugins/openclaw/writes/read-file-call.ts";
import { readProposed, targetsOf } from "./writes-calls.ts";

const createText = (value: string) => ({ kind: "text", text: value });
const FAILS = { kind: "fails" };
const UNTOLD = { kind: "untold" };

const createEdits = (...pairs: (readonly [string, string])[]) => ({
  path: "a.txt",
  edits: pairs.map(([oldText, newText]) => ({ oldText, newText })),
});

describe("what `write` makes of a file", () => {
  it("is its content, byte for byte, whatever was there", async () => {
    const params = { path: "a.txt", content: "\uFEFFx\r\ny" };
    for (const before of [undefined, "", "other\n"])
      expect(await readProposed("write", params, before)).toEqual(createText("\uFEFFx\r\ny"));
  });

  it("has no half characters, which no file can hold", async () => {
    expect(await readProposed("write", { path: "a.txt", content: "a\ud83d" })).toEqual(createText("a\ufffd"));
  });
});

describe("what `edit` makes of a file", () => {
  it.each([
    ["an exact text", "one two three", [["two", "2"]], "one 2 three"],
    [
      "several texts, each in the text before all of them",
      "a b c",
      [
        ["c", "a"],
        ["a", "c"],
      ],
      "c b a",
    ],
    [
      "texts that touch",
      "abcd",
      [
        ["ab", "1"],
        ["cd", "2"],
      ],
      "12",
    ],
    ["a text away", "keep drop", [[" drop", ""]], "keep"],
    ["a text that overlaps itself, counted without overlap", "aaa", [["aa", "m"]], "ma"],
    ["nothing where both texts are the same", "same", [["same", "same"]], "same"],
    ["nothing where the result is the same", "a\nb", [["a\nb", "a\r\nb"]], "a\nb"],
    ["line feeds in a file of them", "a\nb\n", [["a\r\nb", "1\r\n2\r\n3"]], "1\n2\n3\n"],
    ["carriage returns in a file of them", "a\r\nb\r\n", [["a\nb", "1\n2\n3"]], "1\r\n2\r\n3\r\n"],
    ["each line in its own ending", "a\r\nb\nc\n", [["a\nb\nc\n", "1\n2\n3\n4\n"]], "1\r\n2\n3\n4\n"],
    ["more lines in the ending of the first", "a\rb\nc", [["b", "1\n2"]], "a\r1\n2\nc"],
    ["the last lines in their neighbour's ending", "a\r\nb", [["b", "1\n2"]], "a\r\n1\r\n2"],
    ["the last lines in that before the file's first", "x\na\r\nb", [["b", "1\n2"]], "x\na\r\n1\r\n2"],
    ["fewer lines in the last endings", "a\rb\nc\r\nd", [["a\nb\nc\n", "1\n"]], "1\r\nd"],
    ["a text behind a byte order mark", "\uFEFFa b", [["a", "c"]], "\uFEFFc b"],
    ["typographic quotes", "say “hi” now", [['"hi"', '"ho"']], 'say "ho" now'],
    ["dashes and unusual blanks", "1\u20132\u00a03", [["1-2 3", "x"]], "x"],
    ["blanks at the ends of lines", "a  \nb\t\nc", [["a\nb\n", "x\n"]], "x\nc"],
    ["compatibility forms", "the ﬁle", [["the file", "it"]], "it"],
    ["composed characters", "cafe\u0301!", [["café", "tea"]], "tea!"],
    ["a loose text behind blanks, which stay", "a  \n“b”", [['\n"b"', "X"]], "a  X"],
    ["the text around a loose match as it is", "“q” keep “this”  \n", [['"q"', "z"]], "z keep “this”  \n"],
  ] as const)("changes %s", async (_name, before, pairs, after) => {
    expect(await readProposed("edit", createEdits(...pairs), before)).toEqual(createText(after));
  });

  it.each([
    ["a text that is not there", "one", [["two", "2"]]],
    ["a text that is there twice", "ab ab", [["ab", "x"]]],
    ["a loose text that is there twice", "“a” “a”", [['"a"', "x"]]],
    [
      "texts that overlap",
      "abc",
      [
        ["ab", "1"],
        ["bc", "2"],
      ],
    ],
    [
      "texts that overlap one that stays",
      "abc",
      [
        ["ab", "ab"],
        ["bc", "2"],
      ],
    ],
    ["a blank text", "a b", [[" ", "x"]]],
    ["part of a character", "the ﬁle", [["the f", "x"]]],
    ["a text with the byte order mark", "\uFEFFa", [["\uFEFFa", "b"]]],
    ["endings that would run into each other", "a\rX\n", [["X", ""]]],
    [
      "one text of several that is not there",
      "a b",
      [
        ["a", "1"],
        ["z", "2"],
      ],
    ],
  ] as const)("fails for %s", async (_name, before, pairs) => {
    expect(await readProposed("edit", createEdits(...pairs), before)).toEqual(FAILS);
  });

  it("fails where there is no file", async () => {
    expect(await readProposed("edit", createEdits(["a", "b"]))).toEqual(FAILS);
  });

  it.each([[[]], [[{ oldText: "a" }]], [[null]], [[{ oldText: "a", newText: 5 }]]])(
    "fails for edits that the tool refuses: %j",
    async (list) => {
      expect(await readProposed("edit", { path: "a.txt", edits: list }, "a")).toEqual(FAILS);
    },
  );

  it("is not told where the edits are no list, or too many", async () => {
    const many = Array.from({ length: EDITS_MAX + 1 }, (_, index) => [`${index};`, "x"] as const);
    for (const params of [createEdits(...many), { path: "a.txt", edits: "[]" }])
      expect(await targetsOf("edit", params)).toEqual([
        { at: { path: "/repo/space/a.txt", folder: "/repo/space" }, replaces: false },
      ]);
  });

  it("is what was read, not what the parameters are changed to later", async () => {
    const params = createEdits(["a", "b"]);
    const [target] = await targetsOf("edit", params);
    Object.assign(params.edits[0] ?? {}, { newText: "c" });
    expect(target?.propose?.("a")).toEqual(createText("b"));
  });

  it("replaces a line wherever it is, and leaves all others as they are", async () => {
    const line = fc.stringMatching(/^[a-z“ﬁé]{0,6}[ \t]?$/u);
    const ending = fc.constantFrom("\n", "\r\n", "\r");
    const lines = fc.array(fc.tuple(line, ending), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(lines, lines, ending, async (head, tail, middle) => {
        const [before, after] = [head.flat().join(""), tail.flat().join("")];
        const result = await readProposed("edit", createEdits(["@@", "##"]), `${before}@@${middle}${after}`);
        expect(result).toEqual(createText(`${before}##${middle}${after}`));
      }),
    );
  });
});

describe("a search that would hold the thread for seconds", () => {
  it("is not made, and nothing is said of the edit", async () => {
    const half = "a".repeat(100_000);
    const began = performance.now();
    const before = "a".repeat(4_000_000);
    expect(await readProposed("edit", createEdits([`${half}b${half}`, "x"]), before)).toEqual(UNTOLD);
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it("is not made for several edits that only together take long", () => {
    const tails = Array.from(
      { length: 256 },
      (_, index) => `b${String(index).padStart(3, "0")}${"a".repeat(2_000)}`,
    );
    const before = Buffer.from("ab".repeat(2_193_000) + tails.join("")).toString();
    const edits = tails.slice(-4).map((oldText) => ({ oldText, newText: "x" }));
    const began = performance.now();
    expect(proposeTextAfterEdits(before, edits)).toEqual(UNTOLD);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it.each([
    ["a large text, loosely", "\u2010a\n".repeat(900_000), "-b"],
    [
      "a text that is long only in its compatibility form",
      "\ufdfa".repeat(20_000),
      `${"\ufdfa".repeat(2_000)}b`,
    ],
    ["a text with a million endings of its own", `${"\r\n".repeat(1_000_000)}b`, "b"],
  ])("is not made in %s", (_name, before, oldText) => {
    const began = performance.now();
    expect(proposeTextAfterEdits(before, [{ oldText, newText: "x" }])).toEqual(UNTOLD);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it("is made where the text that is looked for is the whole file", async () => {
    const before = "line\n".repeat(100_000);
    expect(await readProposed("edit", createEdits([before, "x"]), before)).toEqual(createText("x"));
  });
});
