/** Owns: what a shell command changed without saying so, found when it has ended. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createShellCall, read, requireRefused, write } from "./arbiter-calls.ts";
import { openAskedScene } from "./arbiter-hooks-scene.ts";
import { createRealSceneFiles, openScene, versionOf, type Scene } from "./arbiter-scene.ts";

/** Has `a` hold notes.md. */
async function holdNotes(s: Scene) {
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(write(s, a, { "notes.md": "of a\n" }));
  await s.clock.advance(1);
  return { a, b };
}

const listChanges = (s: Scene) =>
  s.events("resource.changed").map(({ stepId, resource, token }) => ({ stepId, resource, token }));

describe("a command that nobody declared", () => {
  it("that overwrites what another step holds is a change of its step, and a conflict for people", async () => {
    await using scene = await openScene();
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(listChanges(scene)).toEqual([
      { stepId: "step-1", resource: "file:/repo/notes.md", token: 1 },
      { stepId: "step-2", resource: "file:/repo/notes.md", token: undefined },
    ]);
    expect(scene.events("conflict.detected")).toMatchObject([
      {
        resource: "file:/repo/notes.md",
        claims: [{ stepId: "step-1", claimedSequence: 1 }, { stepId: "step-2" }],
        contest: { requester: "step-2", cause: "overwritten", current: versionOf("of b\n") },
      },
    ]);
    expect(scene.events("conflict.resolved")).toMatchObject([
      { strategy: "manual_review", losers: ["step-2"], because: "manual-review" },
    ]);
    expect(await scene.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("is found for every file that a step holds, not for one of them only", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    for (const name of ["second.md", "third.md"]) await scene.does(write(scene, a, { [name]: "of a\n" }));
    await scene.clock.advance(1);
    await scene.does(createShellCall(scene, b, () => scene.put("third.md", "of b\n")));
    expect(scene.events("conflict.detected")).toMatchObject([{ resource: "file:/repo/third.md" }]);
  });

  it("has the holder told to read again before it writes the next time", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    const { sentence } = requireRefused(await scene.ask(write(scene, a, { "notes.md": "again of a\n" })));
    expect(sentence).toContain("was changed by step-2");
  });

  it("has changed nothing of others where their file is as it was, and where nobody holds it", async () => {
    await using scene = await openScene();
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("free.md", "of b\n")));
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene)).toHaveLength(1);
  });

  it("is not blamed for what the holder wrote meanwhile, nor for what its own owner holds", async () => {
    await using scene = await openScene();
    const { a, b } = await holdNotes(scene);
    const command = createShellCall(scene, b);
    const allowed = await scene.ask(command);
    await scene.does(write(scene, a, { "notes.md": "more of a\n" }));
    await scene.runs(command, allowed);
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene).every(({ stepId }) => stepId === "step-1")).toBe(true);
  });

  it("asks people where somebody is told of questions, and leaves it to them who has the file", async () => {
    await using scene = await openAskedScene({ conflicts: { strategy: "owner_wins" } });
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(scene.events("coordination.escalated")).toMatchObject([{ cause: "conflict", stepId: "step-2" }]);
    expect(scene.events("conflict.resolved")).toEqual([]);
  });

  it("is looked after no more where the operator does not want it", async () => {
    await using scene = await openScene({ conflicts: { afterCommands: "off" } });
    const { b } = await holdNotes(scene);
    await scene.does(createShellCall(scene, b, () => scene.put("notes.md", "of b\n")));
    expect(scene.events("conflict.detected")).toEqual([]);
    expect(listChanges(scene)).toHaveLength(1);
  });
});

describe("where everything below the folder is looked for", () => {
  it("records every file that the command changed, and none that another step did", async () => {
    await using scene = await openScene({ conflicts: { afterCommands: "all" } });
    const { b } = await holdNotes(scene);
    const command = createShellCall(scene, b, () => scene.put("free.md", "of b\n"));
    await scene.does(command);
    expect(listChanges(scene)).toContainEqual({
      stepId: "step-2",
      resource: "file:/repo/free.md",
      token: undefined,
    });
  });

  it("says that there was more where it was too much", async () => {
    await using s = await openScene({ conflicts: { afterCommands: "all" } });
    const a = await s.child("a");
    const writeMany = () => {
      for (let number = 0; number < 70; number += 1) s.put(`many/${number}.txt`, "x");
    };
    await s.does(createShellCall(s, a, writeMany));
    expect(s.events("resource.changed")).toHaveLength(64);
    expect(s.events("write.undetermined")).toMatchObject([
      { because: "undeclared" },
      { because: "too_many", action: "allowed" },
    ]);
  });
});

describe("two hard links", () => {
  it("are one resource: who changes the file by one of them stands against who holds the other", async () => {
    await using s = await openScene({ files: createRealSceneFiles() });
    s.put("notes.md", "one\n");
    linkSync(join(s.folder, "notes.md"), join(s.folder, "same.md"));
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, a, "notes.md"));
    expect(await s.does(write(s, a, { "notes.md": "of a\n" }))).toEqual({ kind: "granted" });
    expect(requireRefused(await s.ask(write(s, b, { "same.md": "of b\n" }))).sentence).toContain("hardlink:");
  });
});
