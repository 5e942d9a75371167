/** Several calls of one message: the host runs all of their hooks before the first of them happens. */
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createShellCall, edit, read, requireRefused, write, type ToolCall } from "./arbiter-calls.ts";
import { openScene, type Scene } from "./arbiter-scene.ts";

const LINES = "one\n-\ntwo\n-\nthree\n";
const MINE = LINES.replace("three", "THREE");

/** `a` has changed the first line of notes.md, and `b` has seen it as it was before. */
async function openMergeScene(): Promise<{ s: Scene; a: SessionKey; b: SessionKey }> {
  const s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
  s.put("notes.md", LINES);
  const [a, b] = [await s.child("a"), await s.child("b")];
  for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
  await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
  return { s, a, b };
}

/** Makes the calls as a host does with those of one message. Returns the kinds of the answers. */
async function makeTogether(s: Scene, ...calls: readonly ToolCall[]): Promise<string[]> {
  const answers = [];
  for (const call of calls) answers.push(await s.ask(call));
  for (const [index, call] of calls.entries()) {
    const answer = answers[index];
    if (answer && answer.kind !== "refused") await s.runs(call, answer);
  }
  return answers.map(({ kind }) => kind);
}

describe("what was merged into a whole text", () => {
  it.each([false, true])(
    "is not known after an edit of the same message: the next whole text keeps it (the other has ended: %s)",
    async (hasEnded) => {
      const { s, a, b } = await openMergeScene();
      await using _ = s;
      if (hasEnded) await s.ends(a);
      const calls = [write(s, b, { "notes.md": MINE }), edit(s, b, ["notes.md", "THREE", "3"])];
      expect(await makeTogether(s, ...calls)).toEqual(["granted", "granted"]);
      const answer = await s.does(
        write(s, b, { "notes.md": LINES.replace("three", "3").replace("two", "TWO") }),
      );
      expect(answer.kind).toBe("granted");
      expect(s.text("notes.md")).toBe("ONE\n-\nTWO\n-\n3\n");
    },
  );

  it.each([
    ["a whole text", 1],
    ["a whole text and an edit", 2],
  ])(
    "is not overwritten by one behind %s of the same message, though the other has ended",
    async (_name, count) => {
      const { s, a, b } = await openMergeScene();
      await using _ = s;
      await s.ends(a);
      const before = [write(s, b, { "notes.md": MINE }), edit(s, b, ["notes.md", "THREE", "3"])].slice(
        0,
        count,
      );
      const kinds = await makeTogether(s, ...before, write(s, b, { "notes.md": MINE.replace("two", "TWO") }));
      expect(kinds).toEqual([...before.map(() => "granted"), "refused"]);
      expect(s.text("notes.md")).toMatch(/^ONE\n/u);
    },
  );
});

describe("a read", () => {
  const ORDERS = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ].map((order) => ({ order }));

  it.each(ORDERS)(
    "of the message in which its session edits parts of the file shows it what it edited, too: $order",
    async ({ order }) => {
      for (const ends of ORDERS) {
        await using s = await openScene();
        s.put("notes.md", "one\ntwo\n");
        const a = await s.child("a");
        await s.does(createShellCall(s, a));
        await s.clock.advance(1_000);
        const calls = [
          edit(s, a, ["notes.md", "one", "ONE"]),
          edit(s, a, ["notes.md", "two", "TWO"]),
          read(s, a, "notes.md"),
        ];
        for (const index of order) await s.ask(calls[index]!);
        for (const index of ends.order) await s.runs(calls[index]!, { kind: "granted" });
        const whole = write(s, a, { "notes.md": "ONE\nTWO\nTHREE\n" });
        expect((await s.does(whole)).kind, ends.order.join()).toBe("granted");
        s.put("notes.md", "person\n");
        expect((await s.ask(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
      }
    },
  );

  it("does not show what somebody outside changed beside such an edit", async () => {
    await using s = await openScene();
    s.put("notes.md", "one\ntwo\n");
    const a = await s.child("a");
    const change = edit(s, a, ["notes.md", "one", "ONE"]);
    const allowed = await s.ask(change);
    const look = read(s, a, "notes.md");
    const looked = await s.ask(look);
    await s.runs(change, allowed);
    s.put("notes.md", "person\n");
    await s.runs(look, looked);
    expect(requireRefused(await s.ask(write(s, a, { "notes.md": "a\n" }))).sentence).toContain("outside");
  });

  it.each([["in their order"], ["the later one first"]])(
    "that was allowed later counts before an earlier one of the same message: they end %s",
    async (order) => {
      await using s = await openScene();
      s.put("notes.md", "v0\n");
      const [a, b] = [await s.child("a"), await s.child("b")];
      const [first, second] = [read(s, a, "notes.md"), read(s, a, "notes.md")];
      await s.ask(first);
      await s.does(write(s, b, { "notes.md": "v1\n" }));
      await s.ends(b);
      await s.ask(second);
      const ended = order === "in their order" ? [first, second] : [second, first];
      for (const call of ended) await s.runs(call, { kind: "granted" });
      expect((await s.does(write(s, a, { "notes.md": "v2\n" }))).kind).toBe("granted");
    },
  );
});
