import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { edit, read, requireRefused, remove, requireReview, write } from "./arbiter-calls.ts";
import {
  createRealSceneFiles,
  openScene,
  createValueFiles,
  versionOf,
  type Scene,
  type SceneOptions,
} from "./arbiter-scene.ts";

const BASE = "one\ntwo\nthree\nfour\nfive\n";
const FIRST = "ONE\ntwo\nthree\nfour\nfive\n";
const LAST = "one\ntwo\nthree\nfour\nFIVE\n";
const BOTH = "ONE\ntwo\nthree\nfour\nFIVE\n";

async function openMergingScene(
  content: string | Buffer | undefined = BASE,
  more: SceneOptions = {},
): Promise<Scene> {
  const s = await openScene({
    files: createRealSceneFiles(),
    ...more,
    conflicts: { strategy: "merge_if_safe", ...more.conflicts },
  });
  if (content.length > 0) s.put("notes.md", content);
  return s;
}

describe("merge_if_safe", () => {
  it("rewrites a whole write so that both changes are in the file, and both keep their claims", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const answer = await s.does(write(s, b, { "notes.md": LAST }));
    expect(answer).toMatchObject({ kind: "granted", params: { merged: [{ target: 0, merged: BOTH }] } });
    expect(s.text("notes.md")).toBe(BOTH);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1", "co-1/step-2"]);
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-2", losers: [], rule: "strategy", because: "merged" },
    ]);
    expect(s.events("conflict.detected")[0]?.contest?.merge).toEqual({
      kind: "clean",
      base: versionOf(BASE),
      current: versionOf(FIRST),
      merged: versionOf(BOTH),
    });
  });

  it("names each target that is the merged file, also those through a link", async () => {
    await using s = await openMergingScene();
    symlinkSync(s.folder, join(s.folder, "link"));
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const texts = { "notes.md": "draft\n", "other.md": "o\n", "link/notes.md": LAST };
    const answer = await s.ask(write(s, b, texts));
    expect(answer).toMatchObject({ params: { merged: [{ target: 0, others: [2], merged: BOTH }] } });
  });

  it("merges an edit whose lines nobody else changed, without rewriting it", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(edit(s, a, ["notes.md", "one", "ONE"]));
    expect(await s.does(edit(s, b, ["notes.md", "five", "FIVE"]))).toEqual({ kind: "granted" });
    expect(s.text("notes.md")).toBe(BOTH);
  });

  it("merges by key what has keys, and records that", async () => {
    await using s = await openMergingScene();
    s.put("x.json", '{"a": 1, "b": 1}');
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "x.json"));
    await s.does(write(s, a, { "x.json": '{"a": 2, "b": 1}' }));
    await s.does(write(s, b, { "x.json": '{"a": 1, "b": 2}' }));
    expect(s.text("x.json")).toBe('{"a": 2, "b": 2}');
    expect(s.events("conflict.detected")[0]?.contest?.merge).toMatchObject({ kind: "clean", way: "key" });
  });

  it("merges several files of one call, each with what is in it", async () => {
    await using s = await openMergingScene();
    s.put("free.md", "free\n");
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const name of ["notes.md", "free.md"])
      for (const session of [a, b]) await s.does(read(s, session, name));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const answer = await s.does(write(s, b, { "free.md": "b\n", "notes.md": LAST }));
    expect(answer).toMatchObject({ params: { merged: [{ target: 1, current: FIRST, merged: BOTH }] } });
    expect([s.text("free.md"), s.text("notes.md")]).toEqual(["b\n", BOTH]);
  });

  it("takes the version that was there when the other one claimed it where the session saw none", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": FIRST }));
    expect(await s.does(write(s, b, { "notes.md": LAST }))).toMatchObject({ kind: "granted" });
    expect(s.text("notes.md")).toBe(BOTH);
  });

  it("merges with the change of a step that has ended, as the session saw the file before", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    await s.ends(a);
    expect(await s.does(write(s, b, { "notes.md": LAST }))).toMatchObject({ kind: "granted" });
    expect(s.text("notes.md")).toBe(BOTH);
    expect(s.events("conflict.detected")[0]).toMatchObject({ contest: { cause: "stale_base" } });
  });

  it("merges with the change of another coordination", async () => {
    await using s = await openMergingScene();
    const a = await s.child("a");
    const b = await s.child("b", { trace: "trace-2" });
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    expect(await s.does(write(s, b, { "notes.md": LAST }))).toMatchObject({ kind: "granted" });
    expect(s.text("notes.md")).toBe(BOTH);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1", "co-2/step-1"]);
  });

  it("lets two edits of one message follow each other into the merged file", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const edits = [edit(s, b, ["notes.md", "three", "THREE"]), edit(s, b, ["notes.md", "five", "FIVE"])];
    const answers = [];
    for (const call of edits) answers.push(await s.ask(call));
    for (const [index, answer] of answers.entries()) {
      expect(answer.kind).toBe("granted");
      const call = edits[index];
      if (call) await s.runs(call, answer);
    }
    expect(s.text("notes.md")).toBe(BOTH.replace("three", "THREE"));
  });

  it("waits for a call that is under way and merges with what it left", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    const first = write(s, a, { "notes.md": FIRST });
    const allowed = await s.ask(first);
    const second = s.does(write(s, b, { "notes.md": LAST }));
    await s.runs(first, allowed);
    expect(await second).toMatchObject({ kind: "granted" });
    expect(s.text("notes.md")).toBe(BOTH);
  });

  it("lets five steps write five parts of one file at once", async () => {
    const lines = ["one", "two", "three", "four", "five"];
    const base = lines.join("\n-\n");
    await using s = await openMergingScene(base);
    const steps = await Promise.all(lines.map((line) => s.child(line)));
    for (const session of steps) await s.does(read(s, session, "notes.md"));
    const answers = await Promise.all(
      steps.map((session, index) => {
        const line = lines[index] ?? "";
        return s.does(write(s, session, { "notes.md": base.replace(line, line.toUpperCase()) }));
      }),
    );
    expect(answers.map(({ kind }) => kind)).toEqual(lines.map(() => "granted"));
    expect(s.text("notes.md")).toBe(base.toUpperCase());
  });

  it("lets nobody merge from what the other one's claim began with when only later changes are known", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, b, "notes.md"));
    s.put("notes.md", "somebody else\n");
    await s.does(write(s, a, { "notes.md": "somebody else\nand a\n" }));
    await s.ends(a);
    // Nobody kept what `b` saw.
    expect(requireRefused(await s.does(write(s, b, { "notes.md": LAST }))).sentence).toContain("(no-base)");
  });
});

describe("what is not merged is for people:", () => {
  const describeObstacle = async (s: Scene, second: "write" | "delete" | "edit"): Promise<string> => {
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": "a\n" }));
    const call =
      second === "write"
        ? write(s, b, { "notes.md": "b\n" })
        : second === "delete"
          ? remove(s, b, "notes.md")
          : edit(s, b, ["notes.md", "nowhere", "x"]);
    const { sentence } = requireRefused(await s.does(call));
    expect(s.text("notes.md")).toBe("a\n");
    return sentence;
  };

  it("changes of the same lines", async () => {
    await using s = await openMergingScene();
    expect(await describeObstacle(s, "write")).toContain(
      "could not be merged with theirs (overlapping-changes). Read it again",
    );
    expect(s.events("conflict.resolved")).toMatchObject([
      { losers: ["step-2"], because: "overlapping-changes", rule: "strategy" },
    ]);
  });

  it("deletions", async () => {
    await using s = await openMergingScene();
    expect(await describeObstacle(s, "delete")).toContain("(not-a-file)");
  });

  it("an edit that fits neither what was there nor what is there", async () => {
    await using s = await openMergingScene();
    expect(await describeObstacle(s, "edit")).toContain("(does-not-apply)");
  });

  it("a file that both create", async () => {
    await using s = await openMergingScene("");
    expect(await describeObstacle(s, "write")).toContain("(overlapping-changes)");
  });

  it.each([
    ["files that are no text", Buffer.from([0xff, 0xfe, 0x00]), "not-text"],
    ["files that are too large", Buffer.alloc(5 * 1024 * 1024 + 1, "x"), "too-large"],
  ] as const)("%s", async (_, content, because) => {
    await using s = await openMergingScene(content);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    const first = write(s, a, { "notes.md": "a\n" });
    await s.ask(first);
    await s.coordinator.arbiter.callEnded(first.callKey);
    expect(requireRefused(await s.does(write(s, b, { "notes.md": "b\n" }))).sentence).toContain(
      `(${because})`,
    );
  });

  it("a second whole text in one message, which knows nothing of what was merged into the first", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const first = write(s, b, { "notes.md": LAST });
    const allowed = await s.ask(first);
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": LAST }))).sentence).toContain(
      "is being changed just now",
    );
    await s.runs(first, allowed);
    expect(s.text("notes.md")).toBe(BOTH);
  });

  it("a lock file, and the model and people are told which tool writes it", async () => {
    await using s = await openMergingScene();
    s.put("package-lock.json", BASE);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b, OWNER]) await s.does(read(s, session, "package-lock.json"));
    await s.does(write(s, a, { "package-lock.json": FIRST }));
    const { sentence } = requireRefused(await s.does(write(s, b, { "package-lock.json": LAST })));
    expect(sentence).toContain("(owned-by-tool)");
    expect(sentence).toContain('run "npm install"');
    const review = requireReview(await s.ask(write(s, OWNER, { "package-lock.json": LAST })));
    expect(review.description).toContain('A tool writes it: running "npm install"');
    await review.settle("denied");
    expect(s.text("package-lock.json")).toBe(FIRST);
  });

  it("calls whose tool cannot be made to write the merged text", async () => {
    await using s = await openMergingScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const call = { ...write(s, b, { "notes.md": LAST }), rewrite: () => undefined };
    expect(requireRefused(await s.does(call)).sentence).toContain("(does-not-apply)");
    const { rewrite: _, ...without } = write(s, b, { "notes.md": LAST });
    expect((await s.ask(without)).kind).toBe("refused");
    expect(s.text("notes.md")).toBe(FIRST);
  });

  it("and of a call of the owner's session people are asked", async () => {
    await using s = await openMergingScene();
    const a = await s.child("a");
    for (const session of [a, OWNER]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST }));
    const call = { ...write(s, OWNER, { "notes.md": LAST }), rewrite: () => undefined };
    const review = requireReview(await s.ask(call));
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(s.text("notes.md")).toBe(LAST);
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
  });

  it("a file that somebody is still writing when the time to wait is over", async () => {
    await using s = await openMergingScene(BASE, { files: createValueFiles() });
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.ask(write(s, a, { "notes.md": FIRST }));
    const second = s.does(write(s, b, { "notes.md": LAST }));
    await s.clock.advance(1_900);
    await s.clock.advance(200);
    expect(requireRefused(await second).sentence).toContain("is being changed just now");
  });
});

describe("a call of which people are asked about one file and another could be merged", () => {
  const conflicts: SceneOptions["conflicts"] = { highRisk: ["secret.md"] };
  const openMixedScene = async (): Promise<{ s: Scene; a: SessionKey }> => {
    const s = await openMergingScene(BASE, { conflicts });
    s.put("secret.md", "s\n");
    const a = await s.child("a");
    for (const session of [a, OWNER]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": FIRST, "secret.md": "of a\n" }));
    return { s, a };
  };

  it("asks about both: minutes later the merged text would not be of what is there", async () => {
    const { s } = await openMixedScene();
    await using _ = s;
    const call = write(s, OWNER, { "notes.md": LAST, "secret.md": "of owner\n" });
    const review = requireReview(await s.ask(call));
    expect(review.description).toMatch(/notes\.md: also wanted by step-1/u);
    expect(review.description).toMatch(/secret\.md, which is marked high-risk: also wanted by step-1/u);
    expect(review.params).toBeUndefined();
    const resources = [s.resource("notes.md"), s.resource("secret.md")];
    expect(s.events("conflict.detected").map(({ resource }) => resource)).toEqual(resources);
    await review.settle("approved");
    await s.runs(call, { kind: "granted" });
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "@owner", losers: ["step-1"], rule: "people", because: "approved" },
      { winner: "@owner", losers: ["step-1"], rule: "people", because: "approved" },
    ]);
    expect(s.text("notes.md")).toBe(LAST);
  });

  it("asks about both also where the tool needs no other text for the merge", async () => {
    const { s } = await openMixedScene();
    await using _ = s;
    const secret = write(s, OWNER, { "secret.md": "of owner\n" });
    const [target] = edit(s, OWNER, ["notes.md", "five", "FIVE"]).targets;
    const targets = [...secret.targets, ...(target ? [target] : [])];
    const review = requireReview(await s.ask({ ...secret, targets }));
    await review.settle("denied");
    const resources = [s.resource("notes.md"), s.resource("secret.md")];
    expect(s.events("conflict.detected").map(({ resource }) => resource)).toEqual(resources);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("asks about the other alone by a question: the call is ruled on anew when it is made again", async () => {
    const { s } = await openMixedScene();
    await using _ = s;
    const b = await s.child("b");
    s.put("notes.md", BASE);
    await s.does(read(s, b, "notes.md"));
    s.put("notes.md", FIRST);
    const call = write(s, b, { "notes.md": LAST, "secret.md": "of b\n" });
    expect(requireRefused(await s.ask(call)).sentence).toContain("a person must decide who may change");
    expect(s.events("conflict.detected").map(({ resource }) => resource)).toEqual([s.resource("secret.md")]);
  });
});
