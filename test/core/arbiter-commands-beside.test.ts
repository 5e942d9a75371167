/** Owns: which of several commands at the same time is taken for what overwrote a file that a step holds. */
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createShellCall, write } from "./arbiter-calls.ts";
import { openScene, type Scene } from "./arbiter-scene.ts";

/** Has `a` hold notes.md. */
async function holdNotes(s: Scene): Promise<{ readonly a: SessionKey; readonly b: SessionKey }> {
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(write(s, a, { "notes.md": "of a\n" }));
  await s.clock.advance(1);
  return { a, b };
}

const listChanges = (s: Scene) =>
  s.events("resource.changed").map(({ stepId, resource }) => ({ stepId, resource }));

describe("a command that ran beside another one", () => {
  /** A command of `b`, with one of `session` in its midst that overwrites notes.md. */
  async function runBeside(s: Scene, b: SessionKey, session: SessionKey): Promise<void> {
    const longCommand = createShellCall(s, b);
    const allowed = await s.ask(longCommand);
    await s.clock.advance(1);
    await s.does(createShellCall(s, session, () => s.put("notes.md", "more\n")));
    await s.clock.advance(1);
    await s.runs(longCommand, allowed);
  }

  it.each(["held", "all"] as const)(
    "is not blamed for what may be the work of the holder's, which has ended (%s)",
    async (afterCommands) => {
      await using s = await openScene({ conflicts: { afterCommands } });
      const { a, b } = await holdNotes(s);
      await runBeside(s, b, a);
      expect(s.events("conflict.detected")).toEqual([]);
      expect(listChanges(s).every(({ stepId }) => stepId === "step-1")).toBe(true);
    },
  );

  it.each(["held", "all"] as const)(
    "is not blamed for what may be the work of the holder's, which still runs (%s)",
    async (afterCommands) => {
      await using s = await openScene({ conflicts: { afterCommands } });
      const { a, b } = await holdNotes(s);
      const holdersCommand = createShellCall(s, a);
      const allowed = await s.ask(holdersCommand);
      await s.clock.advance(1);
      await s.does(createShellCall(s, b, () => s.put("notes.md", "more\n")));
      expect(s.events("conflict.detected")).toEqual([]);
      expect(listChanges(s)).toHaveLength(1);
      await s.runs(holdersCommand, allowed);
    },
  );

  it("is not blamed for what may be the work of a step that works for the holder", async () => {
    await using s = await openScene();
    const { a, b } = await holdNotes(s);
    await runBeside(s, b, await s.child("of a", { source: a }));
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("is not blamed for it either when the holder's claim has ended with its turn", async () => {
    await using s = await openScene();
    const { a, b } = await holdNotes(s);
    const longCommand = createShellCall(s, b);
    const allowed = await s.ask(longCommand);
    await s.does(createShellCall(s, a, () => s.put("notes.md", "more\n")));
    await s.coordinator.turnEnded(a, "run-1");
    await s.runs(longCommand, allowed);
    expect(await s.holders("notes.md")).toEqual([]);
    expect(listChanges(s)).toHaveLength(1);
  });

  it("is taken for it where neither is the holder's, and it ended first", async () => {
    await using s = await openScene();
    const { b } = await holdNotes(s);
    await runBeside(s, b, await s.child("c"));
    expect(s.events("conflict.detected")).toMatchObject([{ contest: { requester: "step-3" } }]);
  });

  it("is blamed where the holder's had ended before it began", async () => {
    await using s = await openScene();
    const { a, b } = await holdNotes(s);
    await s.does(createShellCall(s, a));
    await s.clock.advance(1);
    await s.does(createShellCall(s, b, () => s.put("notes.md", "of b\n")));
    expect(s.events("conflict.detected")).toHaveLength(1);
  });
});
