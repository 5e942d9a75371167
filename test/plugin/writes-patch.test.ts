import { describe, expect, it } from "vitest";
import { EDITS_MAX } from "../../src/plugins/openclaw/writes/read-file-call.ts";
import { createPatch, readProposed, readCall, showReading, targetsOf } from "./writes-calls.ts";

const createText = (value: string) => ({ kind: "text", text: value });
const FAILS = { kind: "fails" };
const update = (...lines: string[]) => createPatch("*** Update File: a", ...lines);

describe("the files of a patch", () => {
  it("are all that it adds, updates, deletes and moves, each once", async () => {
    const params = createPatch(
      "*** Add File: new.txt",
      "+x",
      "*** Delete File: old.txt",
      "*** Update File: src/a.ts",
      "*** Move to: src/b.ts",
      "@@",
      "-a",
      "+b",
      "*** Update File: ./src/../c.ts",
      "-a",
      "+b",
      "*** Update File: c.ts",
      "-d",
      "+e",
    );
    expect(showReading(await readCall("apply_patch", params))).toEqual({
      targets: [
        ["/repo/space/new.txt", false],
        ["/repo/space/old.txt", true],
        ["/repo/space/src/a.ts", false],
        ["/repo/space/src/b.ts", false],
        ["/repo/space/c.ts", false],
      ],
      reads: [],
    });
  });

  it("are marked where their entries are removed, and where a link is written through before", async () => {
    const params = createPatch(
      "*** Delete File: gone",
      "*** Update File: from",
      "*** Move to: to",
      "@@",
      "-a",
      "+b",
      "*** Delete File: anew",
      "*** Add File: anew",
      "+x",
      "*** Add File: new",
      "+x",
      "*** Update File: changed",
      "@@",
      "-a",
      "+b",
      "*** Delete File: changed",
    );
    const { targets = [] } = (await readCall("apply_patch", params)) ?? {};
    expect(targets.map(({ ends }) => ends)).toEqual([
      ["entry"],
      ["entry"],
      undefined,
      ["entry"],
      undefined,
      ["entry", "target"],
    ]);
  });

  it("are read from a here-document, too, and from lines that end in carriage returns", async () => {
    const { input } = createPatch("*** Delete File: a");
    const indented = input.replace("*** Delete", "  *** Delete");
    for (const spelled of [
      indented,
      `<<'EOF'\n${input}\nEOF`,
      input.replaceAll("\n", "\r\n"),
      `\n${input}  \n\n`,
    ])
      expect(await readProposed("apply_patch", { input: spelled }, "x")).toEqual({ kind: "deleted" });
  });

  it.each([
    ["nothing", ""],
    ["no patch", "hello"],
    ["a patch without files", createPatch().input],
    ["a code fence", `\`\`\`\n${createPatch("*** Delete File: a").input}\n\`\`\``],
    ["a shell command", `apply_patch <<'EOF'\n${createPatch("*** Delete File: a").input}\nEOF`],
    ["an update without changes", update().input],
    ["a chunk without lines", update("@@").input],
    ["a second chunk without its mark", update("@@", "-a", "junk", "+b").input],
    ["a file without a name", createPatch("*** Delete File: ").input],
    ["another word", createPatch("*** Rename File: a").input],
  ])("are unreadable in %s; what the host derived is a hint", async (_name, input) => {
    const derivedPaths = ["/repo/space/a", "/repo/space/b"];
    expect(showReading(await readCall("apply_patch", { input }, { derivedPaths }))).toEqual({
      targets: [
        ["/repo/space/a", true],
        ["/repo/space/b", true],
      ],
      reads: [],
      undetermined: { because: "unreadable" },
    });
  });

  it("are named as they lie below what the patch removes first, where a link may lead elsewhere until then", async () => {
    const params = createPatch(
      "*** Add File: current/before.md",
      "+x",
      "*** Delete File: current",
      "*** Add File: current/deep/x.md",
      "+x",
      "*** Add File: currently.md",
      "+x",
      "*** Add File: current/before.md",
      "+x",
    );
    const targets = await targetsOf("apply_patch", params);
    expect(targets.map(({ at, ends }) => ("path" in at ? [at.path, ends] : []))).toEqual([
      ["/repo/space/current/before.md", undefined],
      ["/repo/space/current", ["entry"]],
      ["/repo/space/current/deep/x.md", [{ namesBelowRemoved: 2 }]],
      ["/repo/space/currently.md", undefined],
      ["/repo/space/current/before.md", [{ namesBelowRemoved: 1 }]],
    ]);
  });

  it("are too many also below what the patch removes first", async () => {
    const added = Array.from({ length: 256 }, (_, index) => `*** Add File: current/${index}`);
    const read = await readCall("apply_patch", createPatch("*** Delete File: current", ...added));
    expect(read?.undetermined).toEqual({ because: "too_many" });
  });

  it("are not what the host derived where the patch can be read", async () => {
    const read = await readCall("apply_patch", createPatch("*** Delete File: a"), {
      derivedPaths: ["/etc/x"],
    });
    expect(showReading(read)).toEqual({ targets: [["/repo/space/a", true]], reads: [] });
  });
});

describe("what a patch makes of a file", () => {
  it("adds one where there is none", async () => {
    expect(await readProposed("apply_patch", createPatch("*** Add File: a", "+x", "+", "+y"))).toEqual(
      createText("x\n\ny\n"),
    );
    expect(await readProposed("apply_patch", createPatch("*** Add File: a"))).toEqual(createText(""));
    expect(await readProposed("apply_patch", createPatch("*** Add File: a", "+x"), "")).toEqual(FAILS);
  });

  it("deletes one that is there, and may add it again", async () => {
    const both = createPatch("*** Delete File: a", "*** Add File: a", "+x");
    expect(await readProposed("apply_patch", createPatch("*** Delete File: a"), "x")).toEqual({
      kind: "deleted",
    });
    expect(await readProposed("apply_patch", createPatch("*** Delete File: a"))).toEqual(FAILS);
    expect(await readProposed("apply_patch", both, "old")).toEqual(createText("x\n"));
  });

  it("moves one away; what it makes of the other place depends on the first", async () => {
    const params = createPatch("*** Update File: a", "*** Move to: b", "@@", "-x", "+y");
    const [from, to] = await targetsOf("apply_patch", params);
    expect(from?.propose?.("x\n")).toEqual({ kind: "deleted" });
    expect(from?.propose?.("z\n")).toEqual(FAILS);
    expect(to?.propose).toBeUndefined();
    const onto = createPatch("*** Update File: a", "*** Move to: ./a", "@@", "-x", "+y");
    expect(await readProposed("apply_patch", onto, "x\n")).toEqual(createText("y\n"));
  });

  it.each([
    ["replaces lines", "a\nb\nc\n", ["@@", " a", "-b", "+B"], "a\nB\nc\n"],
    ["needs no mark for the first chunk", "a\nb\n", ["-b", "+B"], "a\nB\n"],
    ["looks behind a context line", "x\n1\ny\n1\n", ["@@ y", "-1", "+2"], "x\n1\ny\n2\n"],
    ["takes several chunks in their order", "a\nb\nc\n", ["@@", "-a", "+1", "@@", "-c", "+3"], "1\nb\n3\n"],
    ["adds behind a context line", "a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"],
    ["adds at the end without one", "a\nb\n", ["@@", "+x"], "a\nb\nx\n"],
    ["adds at the end of an open last line", "a", ["@@", "+x"], "a\nx"],
    ["takes a text at the end", "a\nb\na\n", ["@@", "-a", "+z", "*** End of File"], "a\nb\nz\n"],
    ["drops an empty last line that is not there", "a\nb\n", ["@@", "-a", "+A", " b", ""], "A\nb\n"],
    ["takes an empty line for a kept one", "a\n\nb\n", ["@@", " a", "", "-b", "+B"], "a\n\nB\n"],
    ["overlooks blanks around lines", "  a  \nb\n", ["@@", " a", "-b", "+B"], "  a  \nB\n"],
    ["overlooks typography", "“a” – b\nc\n", ["@@", ' "a" - b', "-c", "+C"], "“a” – b\nC\n"],
    ["keeps carriage returns", "a\r\nb\r\n", ["@@", "-a", "+1", "+2"], "1\r\n2\r\nb\r\n"],
    ["keeps each line's ending", "a\rb\nc\r\n", ["@@", "-a", "-b", "+1", "+2"], "1\r2\nc\r\n"],
    ["keeps an open last line", "a\nb", ["@@", "-b", "+B"], "a\nB"],
    ["keeps a byte order mark", "\uFEFFa\n", ["@@", "-a", "+b"], "\uFEFFb\n"],
    ["leaves a text that would differ in its endings only", "a", ["@@", "-a", "+a", "+"], "a"],
    ["prefers an exact line to a loose one", "a \na\n", ["@@", "-a", "+x"], "a \nx\n"],
  ] as const)("%s", async (_name, before, lines, after) => {
    expect(await readProposed("apply_patch", update(...lines), before)).toEqual(createText(after));
  });

  it.each([
    ["lines that are not there", "a\n", ["@@", "-b", "+c"]],
    ["lines that are there twice", "a\nb\na\n", ["@@", "-a", "+c"]],
    ["lines that overlap themselves", "a\na\na\n", ["@@", "-a", "-a", "+c"]],
    ["lines that are loosely there twice", "a \na\t\n", ["@@", "-a", "+c"]],
    ["a context that is not there", "a\n", ["@@ z", "+c"]],
    ["a context that is there twice", "a\na\n", ["@@ a", "+c"]],
    ["chunks in the wrong order", "a\nb\n", ["@@", "-b", "+1", "@@", "-a", "+2"]],
    ["an end that is elsewhere", "a\nb\n", ["@@", "-a", "+c", "*** End of File"]],
    ["a hunk header of git", "a\n", ["@@ -1,1 +1,1 @@", "-a", "+b"]],
  ] as const)("fails for %s", async (_name, before, lines) => {
    expect(await readProposed("apply_patch", update(...lines), before)).toEqual(FAILS);
  });

  it("is every update of it, one after the other", async () => {
    const params = createPatch("*** Update File: a", "-x", "+y", "*** Update File: ./a", "-y", "+z");
    expect(await readProposed("apply_patch", params, "x\n")).toEqual(createText("z\n"));
    expect(await readProposed("apply_patch", params)).toEqual(FAILS);
  });

  it("is not told for more chunks than a file is searched for", async () => {
    const chunks = Array.from({ length: EDITS_MAX + 1 }, () => ["@@", "+x"]).flat();
    const [target] = await targetsOf("apply_patch", update(...chunks));
    expect(target).toMatchObject({ replaces: false });
    expect(target?.propose).toBeUndefined();
  });

  it("is told in time for lines that almost repeat", async () => {
    const before = "x\n".repeat(200_000);
    const lines = Array.from({ length: 5_000 }, () => " x");
    const startedMs = performance.now();
    expect(await readProposed("apply_patch", update("@@", ...lines, "-y"), before)).toEqual(FAILS);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });

  it.each([
    ["very many lines", "\u2010a\n".repeat(900_000), 8, "-b"],
    ["long lines that are looked at for many chunks", `${"a".repeat(1_000)}\n`.repeat(4_000), 200, "-a"],
  ])("is not told, and not said to fail, for %s", async (_name, before, count, line) => {
    const [target] = await targetsOf(
      "apply_patch",
      update(...Array.from({ length: count }, (_, index) => ["@@", `-${line}${index}`, `+x${index}`]).flat()),
    );
    const startedMs = performance.now();
    expect(target?.propose?.(before).kind).not.toBe("text");
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("is not told for a large file that many updates of one patch take apart again", async () => {
    const hunks = Array.from({ length: 100 }, () => ["*** Update File: a", "@@", "+x"]).flat();
    const startedMs = performance.now();
    const proposed = await readProposed("apply_patch", createPatch(...hunks), "a\n".repeat(100_000));
    expect(proposed).toEqual({ kind: "untold" });
    expect(performance.now() - startedMs).toBeLessThan(4_000);
  });
});
