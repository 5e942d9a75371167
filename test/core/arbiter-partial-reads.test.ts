/** Owns: sessions that read a part of a file, or could not read it, and what they may do to the whole of it. */
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { edit, read, remove, requireRefused, write } from "./arbiter-calls.ts";
import { createRealSceneFiles, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

const V0 = "1\n2\n3\n4\n5\n";

interface Page {
  readonly from?: number;
  /** The line at which the rest of the file begins; absent: the page reaches its end. */
  readonly upTo?: number;
}

/** Begins to read some lines of notes.md, as the host tells of it. Returns what ends the call. */
async function beginPage(
  s: Scene,
  session: SessionKey,
  { from = 1, upTo }: Page,
): Promise<() => Promise<void>> {
  const call = read(s, session, "notes.md");
  const reads = [{ path: "notes.md", folder: s.folder, from: { line: from, character: 0 } }];
  await s.ask({ ...call, reads });
  const ending = { hasFailed: false, ...(upTo !== undefined && { readUpTo: { line: upTo, character: 0 } }) };
  return () => s.coordinator.arbiter.callEnded(call.callKey, ending);
}

async function readPage(s: Scene, session: SessionKey, page: Page): Promise<void> {
  const end = await beginPage(s, session, page);
  await end();
}

/** Both steps have read notes.md whole; then `b` changes it, and ends unless it keeps the file. */
async function changeByOther(s: Scene, { keeps = false } = {}): Promise<SessionKey> {
  s.put("notes.md", V0);
  const [a, b] = [await s.child("a"), await s.child("b")];
  for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
  await s.clock.advance(1_000);
  await s.does(write(s, b, { "notes.md": V0.replace("5", "5 of b") }));
  if (!keeps) await s.ends(b);
  await s.clock.advance(1_000);
  return a;
}

const openReadScene = (options: SceneOptions = {}): Promise<Scene> =>
  openScene({ files: createRealSceneFiles(), ...options });

describe("a session that has read a part of a changed file", () => {
  it.each([
    ["from the beginning", [{ upTo: 3 }]],
    ["behind the beginning", [{ from: 4 }]],
    ["with lines left out", [{ upTo: 3 }, { from: 4 }]],
  ])("%s may change a part of it, and not replace it", async (_, pages: readonly Page[]) => {
    await using s = await openReadScene();
    const a = await changeByOther(s);
    for (const page of pages) await readPage(s, a, page);
    const answer = requireRefused(await s.does(write(s, a, { "notes.md": "of a\n" })));
    expect(answer.sentence).toContain("was changed by step-2 since you read all of it");
    expect((await s.does(edit(s, a, ["notes.md", "1", "1 of a"]))).kind).toBe("granted");
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("refused");
    expect(s.text("notes.md")).toBe("1 of a\n2\n3\n4\n5 of b\n");
  });

  it("may replace it when it has read all pages in turn", async () => {
    await using s = await openReadScene();
    const a = await changeByOther(s);
    for (const page of [{ upTo: 3 }, { from: 3, upTo: 5 }, { from: 4 }]) await readPage(s, a, page);
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("granted");
  });

  it("may not replace it where it changed between the pages", async () => {
    await using s = await openReadScene();
    const [a, b] = [await changeByOther(s), await s.child("c")];
    await readPage(s, a, { upTo: 3 });
    await s.does(edit(s, b, ["notes.md", "1", "1 of c"]));
    await s.ends(b);
    await readPage(s, a, { from: 3 });
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("refused");
  });

  it("may replace it where it had read all of the same text before", async () => {
    await using s = await openReadScene();
    const a = await changeByOther(s);
    await s.does(read(s, a, "notes.md"));
    await readPage(s, a, { from: 2, upTo: 3 });
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("granted");
  });

  it.each([
    ["all of it, which ended last", { first: { from: 4 }, last: {} }, "granted"],
    ["all of it, which ended first", { first: {}, last: { from: 4 } }, "granted"],
    ["parts only", { first: { from: 4 }, last: { from: 2 } }, "refused"],
  ] as const)("with two calls of one message: %s", async (_, { first, last }, ruling) => {
    await using s = await openReadScene();
    const a = await changeByOther(s);
    const endLast = await beginPage(s, a, last);
    const endFirst = await beginPage(s, a, first);
    await endFirst();
    await endLast();
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe(ruling);
  });

  it("may replace it where it changed it before both of its reads in one message ended", async () => {
    await using s = await openReadScene();
    const a = await changeByOther(s);
    const endWhole = await beginPage(s, a, {});
    const endPart = await beginPage(s, a, { from: 4 });
    await s.does(edit(s, a, ["notes.md", "1", "1 of a"]));
    await endPart();
    await endWhole();
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("granted");
  });

  it("may not replace it where another changed it before the later of two reads, which ended first", async () => {
    await using s = await openReadScene();
    const [a, b] = [await changeByOther(s), await s.child("c")];
    const endWhole = await beginPage(s, a, {});
    await s.does(edit(s, b, ["notes.md", "1", "1 of c"]));
    await s.ends(b);
    await readPage(s, a, { from: 4 });
    await endWhole();
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("refused");
  });

  it("and never the whole may not replace it either", async () => {
    await using s = await openReadScene();
    s.put("notes.md", V0);
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    await s.ends(b);
    await readPage(s, a, { upTo: 1 });
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("refused");
  });

  it("has its whole text merged from what it read whole, so that the other change stays", async () => {
    await using s = await openReadScene({ conflicts: { strategy: "merge_if_safe" } });
    const a = await changeByOther(s, { keeps: true });
    await readPage(s, a, { upTo: 3 });
    expect((await s.does(write(s, a, { "notes.md": V0.replace("1", "1 of a") }))).kind).toBe("granted");
    expect(s.text("notes.md")).toBe("1 of a\n2\n3\n4\n5 of b\n");
  });
});

describe("a session of which a tool that reads a deleted file failed", () => {
  it.each([
    ["render", "refused"],
    ["read", "granted"],
  ])("by %s: its write of that file is %s", async (tool, expected) => {
    await using s = await openReadScene();
    s.put("notes.md", V0);
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, a, "notes.md"));
    await s.does(remove(s, b, "notes.md"));
    await s.ends(b);
    const { reads } = read(s, a, "notes.md");
    const failing = write(s, a, tool === "render" ? { "out.html": "x" } : {});
    expect((await s.ask({ ...failing, tool, reads })).kind).toBe("granted");
    await s.coordinator.arbiter.callEnded(failing.callKey, { hasFailed: true });
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe(expected);
  });
});
