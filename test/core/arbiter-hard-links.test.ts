/** Owns: files of several hard links: who has one by one name has it by the others, too. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireRefused, write } from "./arbiter-calls.ts";
import { createRealSceneFiles, openScene, type Scene, type SceneOptions } from "./arbiter-scene.ts";

/** The names lead to one file. */
function putLinked(s: Scene, [first, ...others]: readonly [string, ...string[]]): void {
  s.put(first, "x\n");
  for (const name of others) linkSync(join(s.folder, first), join(s.folder, name));
}

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
): Promise<Scene> {
  const s = await openScene({ files: createRealSceneFiles(), conflicts });
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

  it("is that of what they share where an exception names it", async () => {
    const overrides = [{ resource: "hardlink:*", strategy: "manual_review" as const }];
    await using s = await openLinkedScene({ strategy: "priority_wins", overrides });
    expect((await s.ask(write(s, s.sessionOf("high"), { "secret.md": "of high\n" }))).kind).toBe("refused");
  });
});
