/** Owns: files of several hard links: who has one by one name has it by the others, too. */
import { linkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  PluginContest,
  PluginHooks,
} from "../../src/agents/coordination/runtime/environment/plugin-hooks.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { edit, read, requireRefused, requireReview, write } from "./arbiter-calls.ts";
import { createRealSceneFiles, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

/** The names lead to one file. */
function putLinked(s: Scene, [first, ...others]: readonly [string, ...string[]]): void {
  s.put(first, "x\n");
  for (const name of others) linkSync(join(s.folder, first), join(s.folder, name));
}

const LINES = "one\n-\ntwo\n-\nthree\n";

/** `a` has changed the first line of notes.md, which is also links.md; `b` read it by a name before. */
async function openMergeScene(seenAs: "notes.md" | "links.md"): Promise<{ s: Scene; b: SessionKey }> {
  const s = await openScene({ files: createRealSceneFiles(), conflicts: { strategy: "merge_if_safe" } });
  s.put("notes.md", LINES);
  linkSync(join(s.folder, "notes.md"), join(s.folder, "links.md"));
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(read(s, a, "notes.md"));
  await s.does(read(s, b, seenAs));
  await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
  return { s, b };
}

describe("changes of several steps by one of the names", () => {
  it("are merged as those of any other file", async () => {
    const { s, b } = await openMergeScene("notes.md");
    await using _ = s;
    const answer = await s.does(write(s, b, { "notes.md": LINES.replace("three", "THREE") }));
    expect(answer.kind).toBe("granted");
    expect(s.text("links.md")).toBe("ONE\n-\ntwo\n-\nTHREE\n");
    expect(s.events("conflict.resolved").map(({ because }) => because)).toEqual(["merged", "merged"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1", "co-1/step-2"]);
    expect(s.events("claim.released")).toEqual([]);
  });

  it("are merged also where one call makes two of them", async () => {
    const { s, b } = await openMergeScene("notes.md");
    await using _ = s;
    const edits = [edit(s, b, ["notes.md", "three", "THREE"]), edit(s, b, ["notes.md", "THREE", "3"])];
    const answers = [];
    for (const call of edits) answers.push(await s.ask(call));
    expect(answers.map(({ kind }) => kind)).toEqual(["granted", "granted"]);
    for (const [index, call] of edits.entries()) await s.runs(call, answers[index] ?? { kind: "free" });
    expect(s.text("links.md")).toBe("ONE\n-\ntwo\n-\n3\n");
  });

  it("are merged after a look at the name where the holder changed it by another one first", async () => {
    await using s = await openScene({
      files: createRealSceneFiles(),
      conflicts: { strategy: "merge_if_safe" },
    });
    s.put("notes.md", LINES);
    linkSync(join(s.folder, "notes.md"), join(s.folder, "links.md"));
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, b, "links.md"));
    const one = LINES.replace("one", "ONE");
    await s.does(write(s, a, { "links.md": one }));
    const both = one.replace("two", "TWO");
    await s.does(write(s, a, { "notes.md": both }));
    const mine = { "notes.md": LINES.replace("three", "THREE") };
    expect(requireRefused(await s.does(write(s, b, mine))).sentence).toContain("(no-base). Read it again");
    expect(s.text("notes.md")).toBe(both);
    await s.does(read(s, b, "notes.md"));
    expect((await s.does(write(s, b, { "notes.md": both.replace("three", "THREE") }))).kind).toBe("granted");
    expect(s.text("notes.md")).toBe(both.replace("three", "THREE"));
  });

  it("are for people where the holder has the file by another name", async () => {
    const { s, b } = await openMergeScene("links.md");
    await using _ = s;
    const answer = await s.ask(write(s, b, { "links.md": LINES.replace("three", "THREE") }));
    expect(requireRefused(answer).sentence).toContain(
      `a person must decide who may change ${s.folder}/links.md`,
    );
    expect(s.text("notes.md")).toBe(LINES.replace("one", "ONE"));
    const { title, description } = requireReview(await s.ask(write(s, OWNER, { "links.md": "o" })));
    expect(`${title} ${description}`).not.toContain("hardlink:");
  });
});

describe("a child whose step has ended", () => {
  it("is refused a file that others hold by another of its names", async () => {
    await using s = await openScene({ files: createRealSceneFiles() });
    putLinked(s, ["a.md", "b.md"]);
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "a.md": "of a\n" }));
    await s.ends(b);
    expect(requireRefused(await s.does(write(s, b, { "b.md": "of b\n" }))).sentence).toContain(
      "the step that this session worked on has ended",
    );
    expect(s.text("a.md")).toBe("of a\n");
    expect((await s.does(write(s, b, { "c.md": "of b\n" }))).kind).toBe("free");
  });
});

/** `low` holds the file by the name b.md, and `high` has the higher priority. */
async function openLinkedScene(
  conflicts: NonNullable<SceneOptions["conflicts"]>,
  names: readonly [string, ...string[]] = ["secret.md", "b.md"],
  dependencies: NonNullable<SceneOptions["dependencies"]> = {},
): Promise<Scene> {
  const s = await openScene({ files: createRealSceneFiles(), conflicts, dependencies });
  putLinked(s, names);
  await s.plan([
    { stepId: "low", priority: "low" },
    { stepId: "high", priority: "high" },
  ]);
  await s.does(write(s, s.sessionOf("low"), { "b.md": "of low\n" }));
  return s;
}

describe("the strategy for a file that the holder has by another name", () => {
  it("is that of the name which the call gives it: high-risk files are for people", async () => {
    await using s = await openLinkedScene({ strategy: "priority_wins", highRisk: ["secret.md"] });
    const answer = await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }));
    expect(requireRefused(answer).sentence).toContain("a person must decide");
    expect(s.events("conflict.detected")).toMatchObject([
      { contest: { strategy: "manual_review", from: "high_risk" } },
    ]);
    expect(await s.holders("b.md")).toEqual(["plan-1/low"]);
  });

  it("is the operator's exception for that name, not the default", async () => {
    const overrides = [{ resource: "b.md", strategy: "priority_wins" as const }];
    await using s = await openLinkedScene({ strategy: "owner_wins", overrides }, [
      "secret.md",
      "b.md",
      "c.md",
    ]);
    const high = s.sessionOf("high");
    expect((await s.ask(write(s, high, { "c.md": "of high\n" }))).kind).toBe("refused");
    expect((await s.ask(write(s, high, { "b.md": "of high\n" }))).kind).toBe("granted");
  });

  it("is the strictest one where the call gives it several names, in whatever order", async () => {
    const conflicts = { strategy: "priority_wins" as const, highRisk: ["secret.md"] };
    for (const order of [
      ["secret.md", "c.md"],
      ["c.md", "secret.md"],
    ]) {
      await using s = await openLinkedScene(conflicts, ["secret.md", "b.md", "c.md"]);
      const texts = Object.fromEntries(order.map((name) => [name, "of high\n"]));
      expect((await s.ask(write(s, s.sessionOf("high"), texts))).kind, order.join()).toBe("refused");
    }
  });

  it("is also that of the name by which the holder has it, where a rule for that name is stricter", async () => {
    const overrides = [{ resource: "b.md", strategy: "manual_review" as const }];
    for (const rules of [{ highRisk: ["b.md"] }, { overrides }]) {
      await using s = await openLinkedScene({ strategy: "priority_wins", ...rules });
      await s.does(write(s, s.sessionOf("low"), { "other.md": "of low\n" }));
      const answer = await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }));
      expect(requireRefused(answer).sentence).toContain("a person must decide");
    }
    // Another file that the holder has is none of its names.
    await using s = await openLinkedScene({ strategy: "priority_wins", highRisk: ["other.md"] });
    await s.does(write(s, s.sessionOf("low"), { "other.md": "of low\n" }));
    expect((await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }))).kind).toBe("granted");
  });

  it("is that of a plugin, which reads by which names the call writes it and its holder has it", async () => {
    const contests: PluginContest[] = [];
    const arbitrate: PluginHooks["arbitrate"] = (contest) => {
      contests.push(contest);
      return Promise.resolve({ award: "requester", plugin: "guard", reason: "It may." });
    };
    const hooks: PluginHooks = {
      hasAny: () => true,
      arbitrate,
      decide: () => Promise.resolve(undefined),
    };
    await using s = await openLinkedScene({ strategy: "owner_wins" }, ["secret.md", "b.md"], { hooks });
    await s.does(write(s, s.sessionOf("low"), { "other.md": "of low\n" }));
    const answer = await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }));
    expect(answer.kind).toBe("granted");
    expect(contests.map(({ resource, names }) => [resource.split(":")[0], names])).toEqual([
      ["hardlink", ["secret.md", "b.md"].map((name) => `file:${join(realpathSync(s.folder), name)}`)],
    ]);
  });

  it("is that of what they share where an exception names it", async () => {
    const overrides = [{ resource: "hardlink:*", strategy: "manual_review" as const }];
    await using s = await openLinkedScene({ strategy: "priority_wins", overrides });
    expect((await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }))).kind).toBe("refused");
  });
});
