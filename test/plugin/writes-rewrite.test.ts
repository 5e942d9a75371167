import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MergedFile } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { rewriteToolCall } from "../../src/plugins/openclaw/writes/rewrite-call.ts";
import { createPatch, readCall, targetsOf } from "./writes-calls.ts";

type Params = Readonly<Record<string, unknown>>;

async function rewriteAndRead(
  tool: string,
  params: unknown,
  ...merged: MergedFile[]
): Promise<Params | undefined> {
  return rewriteToolCall(tool, params, await targetsOf(tool, params), merged);
}

const createFile = (current: string | undefined, merged: string, target = 0): MergedFile => ({
  target,
  current,
  merged,
});

/** The text that the host's tool leaves, by the same reading that a call of a model gets. */
async function rewriteAndApply(
  tool: string,
  params: unknown,
  current: string | undefined,
  target = 0,
): Promise<unknown> {
  return (await readCall(tool, params))?.targets[target]?.propose?.(current);
}

const createLines = (ending: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(fc.constantFrom("", "a", "b", "“c”", " d ", "+", "@@", "*** End Patch", "ﬁ"), ending), {
      maxLength: 8,
    })
    .map((all) => all.flat().join(""));
const fed = createLines(fc.constant("\n"));
const returned = createLines(fc.constant("\r\n"));
const mixed = createLines(fc.constantFrom("\n", "\r\n", "\r", ""));
const isMixed = (text = ""): boolean => new Set(text.match(/\r\n|\r|\n/gu)).size > 1;
const marked = fc.constantFrom("", "", "\uFEFF");

describe("a rewritten `write`", () => {
  const params = { path: "a.txt", content: "mine", more: 1 };

  it("writes the merged text and is otherwise what it was", async () => {
    expect(await rewriteAndRead("write", params, createFile("theirs", "both"))).toEqual({
      ...params,
      content: "both",
    });
    expect(await rewriteAndRead("write", params, createFile(undefined, ""))).toEqual({
      ...params,
      content: "",
    });
    expect(params.content).toBe("mine");
  });

  it("leaves any text exactly", async () => {
    await fc.assert(
      fc.asyncProperty(mixed, mixed, marked, async (current, merged, mark) => {
        const call = await rewriteAndRead("write", params, createFile(current, mark + merged));
        expect(await rewriteAndApply("write", call, current)).toEqual({ kind: "text", text: mark + merged });
      }),
    );
  });
});

describe("a rewritten `edit`", () => {
  const params = { path: "a.txt", edits: [{ oldText: "a", newText: "b" }] };

  it("replaces the whole file, which is there once whatever is in it", async () => {
    expect(await rewriteAndRead("edit", params, createFile("\uFEFFa\r\na\r\n", "\uFEFFb\r\na\r\n"))).toEqual({
      path: "a.txt",
      edits: [{ oldText: "a\na\n", newText: "b\na\n" }],
    });
  });

  it("replaces the changed lines only where the file mixes line endings", async () => {
    expect(
      await rewriteAndRead("edit", params, createFile("1\r\n2\n3\n4\r\n", "1\r\nnew\n2\n3\n4\r\n")),
    ).toBeUndefined();
    expect(
      await rewriteAndRead("edit", params, createFile("1\r\n2\n3\n4\r\n", "1\r\nx\ny\n3\n4\r\n")),
    ).toEqual({
      path: "a.txt",
      edits: [{ oldText: "2\n", newText: "x\ny\n" }],
    });
  });

  it.each([
    ["there is no file", undefined, "x"],
    ["the file is blank", " \n", "x"],
    ["the endings would be others", "a\nb\n", "a\r\nb\r\n"],
    ["the byte order mark would go", "\uFEFFa", "b"],
    ["the text holds half a character", "a", "\ud83d"],
  ])("is none where %s", async (_name, current, merged) => {
    expect(await rewriteAndRead("edit", params, createFile(current, merged))).toBeUndefined();
  });

  it.each([
    ["line feeds", fed],
    ["carriage returns", returned],
  ])("leaves any text of %s exactly, wherever there is something to replace", async (_name, text) => {
    await fc.assert(
      fc.asyncProperty(text, text, marked, async (current, merged, mark) => {
        fc.pre(current.trim() !== "");
        const call = await rewriteAndRead("edit", params, createFile(mark + current, mark + merged));
        expect(await rewriteAndApply("edit", call, mark + current)).toEqual({
          kind: "text",
          text: mark + merged,
        });
      }),
    );
  });

  it("leaves any text exactly or is none", async () => {
    let mixedOnes = 0;
    await fc.assert(
      fc.asyncProperty(mixed, mixed, async (current, merged) => {
        const call = await rewriteAndRead("edit", params, createFile(current, merged));
        if (!call) return;
        if (isMixed(current)) mixedOnes += 1;
        expect(await rewriteAndApply("edit", call, current)).toEqual({ kind: "text", text: merged });
      }),
    );
    expect(mixedOnes).toBeGreaterThan(0);
  });
});

describe("a rewritten `apply_patch`", () => {
  const update = createPatch("*** Update File: @a", "@@", "-x", "+y");

  it("replaces the whole file in place, under the name that the patch has for it", async () => {
    expect(await rewriteAndRead("apply_patch", update, createFile("1\n2\n", "1\n3\n"))).toEqual(
      createPatch("*** Update File: @a", "@@", "-1", "-2", "+1", "+3", "*** End of File"),
    );
  });

  it("deletes it and makes it again where the tool would keep another end of the file", async () => {
    expect(await rewriteAndRead("apply_patch", update, createFile("1", "2\n"))).toEqual(
      createPatch("*** Delete File: @a", "*** Add File: @a", "+2"),
    );
  });

  it("adds what is not there", async () => {
    const params = createPatch("*** Add File: a", "+mine");
    expect(await rewriteAndRead("apply_patch", params, createFile(undefined, "both\n"))).toEqual(
      createPatch("*** Add File: a", "+both"),
    );
  });

  it("does to the other files what it did, in their order, and each merged file once", async () => {
    const params = createPatch(
      "*** Delete File: old",
      "*** Update File: a",
      "-x",
      "+y",
      "*** Update File: from",
      "*** Move to: to",
      "@@ context",
      "-x",
      "",
      "*** Update File: ./a",
      "-z",
      "+w",
      "*** Add File: c",
      "+mine",
    );
    const call = await rewriteAndRead(
      "apply_patch",
      params,
      createFile("x\nz\n", "m\n", 1),
      createFile(undefined, "both\n", 4),
    );
    expect(call).toEqual(
      createPatch(
        "*** Delete File: old",
        "*** Update File: a",
        "@@",
        "-x",
        "-z",
        "+m",
        "*** End of File",
        "*** Update File: from",
        "*** Move to: to",
        "@@ context",
        "-x",
        "",
        "*** Add File: c",
        "+both",
      ),
    );
  });

  it("writes a file once that the patch also names by a way through a link", async () => {
    const params = createPatch(
      "*** Update File: a",
      "-x",
      "+y",
      "*** Delete File: c",
      "*** Update File: link/a",
      "-z",
      "+w",
    );
    const file = { ...createFile("x\nz\n", "m\n"), others: [2] };
    expect(await rewriteAndRead("apply_patch", params, file)).toEqual(
      createPatch("*** Update File: a", "@@", "-x", "-z", "+m", "*** End of File", "*** Delete File: c"),
    );
  });

  it("is none where the patch moves the file by such a way", async () => {
    const params = createPatch(
      "*** Update File: a",
      "-x",
      "+y",
      "*** Update File: link/a",
      "*** Move to: b",
      "-y",
      "+z",
    );
    const file = { ...createFile("x\n", "m\n"), others: [1] };
    expect(await rewriteAndRead("apply_patch", params, file)).toBeUndefined();
  });

  it.each([
    ["the last line would have no end", update, createFile("1\n", "2")],
    [
      "a new file would have an open last line",
      createPatch("*** Add File: a", "+x"),
      createFile(undefined, "x"),
    ],
    [
      "the file is moved away",
      createPatch("*** Update File: a", "*** Move to: b", "-x", "+y"),
      createFile("x\n", "z\n"),
    ],
    [
      "the file is moved here",
      createPatch("*** Update File: a", "*** Move to: b", "-x", "+y"),
      createFile("x\n", "z\n", 1),
    ],
    ["the patch cannot be read", { input: "no patch" }, createFile("x\n", "z\n")],
    [
      "one of two files cannot be written",
      createPatch("*** Delete File: a", "*** Delete File: b"),
      createFile("1\n", "2", 1),
    ],
  ])("is none where %s", async (_name, params, merged) => {
    expect(await rewriteAndRead("apply_patch", params, merged)).toBeUndefined();
  });

  it("leaves any text of line feeds exactly, of carriage returns where there were some", async () => {
    const texts = fc.oneof(
      fc.tuple(fed, fed),
      fc.tuple(
        returned.filter((text) => text !== ""),
        returned,
      ),
    );
    await fc.assert(
      fc.asyncProperty(texts, marked, async ([current, merged], mark) => {
        // A byte order mark alone is no line that a patch could leave.
        fc.pre(mark === "" || merged !== "");
        const call = await rewriteAndRead("apply_patch", update, createFile(mark + current, mark + merged));
        expect(await rewriteAndApply("apply_patch", call, mark + current)).toEqual({
          kind: "text",
          text: mark + merged,
        });
      }),
    );
  });

  it("leaves any text exactly or is none", async () => {
    let mixedOnes = 0;
    await fc.assert(
      fc.asyncProperty(fc.option(mixed, { nil: undefined }), mixed, async (current, merged) => {
        const call = await rewriteAndRead("apply_patch", update, createFile(current, merged));
        if (!call) return;
        if (isMixed(current)) mixedOnes += 1;
        expect(await rewriteAndApply("apply_patch", call, current)).toEqual({ kind: "text", text: merged });
      }),
    );
    expect(mixedOnes).toBeGreaterThan(0);
  });
});

describe("no rewritten call", () => {
  it("writes a file that its patch writes again once a link above it is removed: it is another one then", async () => {
    const add = ["*** Add File: current/a.md", "+mine"];
    const update = ["*** Update File: current/a.md", "@@", "-theirs", "+mine"];
    const deleting = createPatch(...update, "*** Delete File: current", ...add);
    for (const merged of [createFile("theirs\n", "both\n"), createFile(undefined, "both\n", 2)])
      expect(await rewriteAndRead("apply_patch", deleting, merged)).toBeUndefined();
  });

  const params = { path: "a", content: "b", edits: [{ oldText: "a", newText: "b" }] };
  const targets = [{ at: { path: "/repo/space/a", folder: "/repo/space" }, replaces: true }];

  it.each([
    ["another tool", "exec", params, [createFile("a", "b")]],
    ["no merged file", "write", params, []],
    ["a target that is not there", "write", params, [createFile("a", "b", 1)]],
    ["two files of one target", "write", params, [createFile("a", "b"), createFile("a", "c")]],
    ["parameters that are none", "write", null, [createFile("a", "b")]],
    ["a list for parameters", "write", [], [createFile("a", "b")]],
    ["an edit without its list", "edit", { path: "a" }, [createFile("a", "b")]],
  ] as const)("comes of %s", (_name, tool, input, merged) => {
    expect(rewriteToolCall(tool, input, targets, merged)).toBeUndefined();
  });

  it("writes into a resource that is no file", () => {
    const queue = [{ at: { resource: "queue:a" }, replaces: false }];
    expect(
      rewriteToolCall("apply_patch", createPatch("*** Delete File: a"), queue, [createFile("a", "b")]),
    ).toBeUndefined();
  });
});
