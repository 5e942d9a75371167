import { describe, expect, it } from "vitest";
import { OWNER } from "../support/fake-clock-host.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { edit, read, requireRefused, remove, createShellCall, write } from "./arbiter-calls.ts";
import { createRealSceneFiles, openScene, type Scene } from "./arbiter-scene.ts";

const HALF_AN_HOUR_MS = 30 * 60_000;

/** Two steps; what the second changes, it does not hold any more. */
async function changeBySecond(s: Scene, text: string): Promise<{ a: SessionKey; b: SessionKey }> {
  const [a, b] = [await s.child("a"), await s.child("b")];
  await s.does(read(s, a, "notes.md"));
  await s.does(read(s, b, "notes.md"));
  await s.clock.advance(1_000);
  expect((await s.does(write(s, b, { "notes.md": text }))).kind).toBe("granted");
  await s.ends(b);
  return { a, b };
}

async function start(text: string | undefined = "v0\n"): Promise<Scene> {
  const s = await openScene({ files: createRealSceneFiles() });
  if (text !== "") s.put("notes.md", text);
  return s;
}

describe("a change of a file that another step has changed since", () => {
  it("is refused where the whole file is replaced, and made after reading it again", async () => {
    await using s = await start();
    const { a } = await changeBySecond(s, "v1\n");
    const answer = requireRefused(await s.does(write(s, a, { "notes.md": "a\n" })));
    expect(answer.sentence).toMatch(
      /was changed by step-2 since you read all of it; .* Read it again to its end/u,
    );
    expect(s.text("notes.md")).toBe("v1\n");
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
    expect(s.events("conflict.detected")).toMatchObject([{ contest: { cause: "stale_base" } }]);
    await s.does(read(s, a, "notes.md"));
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-2", losers: ["step-1"], rule: "lease", because: "changed-since" },
    ]);
  });

  it("is refused also where the clock was put back meanwhile", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    s.clock.jump(s.clock.now() - 10_000);
    await s.does(write(s, b, { "notes.md": "v1\n" }));
    await s.ends(b);
    expect(requireRefused(await s.does(edit(s, a, ["notes.md", "v1", "v2"]))).sentence).toContain("step-2");
  });

  it("is refused for an edit, too, where the session saw it before", async () => {
    await using s = await start();
    const { a } = await changeBySecond(s, "v0\nmore\n");
    expect(requireRefused(await s.does(edit(s, a, ["notes.md", "v0", "v1"]))).sentence).toContain(
      "Read it again",
    );
  });

  it("is refused for a deletion, too", async () => {
    await using s = await start();
    const { a } = await changeBySecond(s, "v1\n");
    expect((await s.does(remove(s, a, "notes.md"))).kind).toBe("refused");
  });

  it("is made after a read that fails has shown that the other deleted it", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(remove(s, b, "notes.md"));
    await s.ends(b);
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
    const look = read(s, a, "notes.md");
    expect((await s.ask(look)).kind).toBe("granted");
    await s.coordinator.arbiter.callEnded(look.callKey, { hasFailed: true });
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is refused where the host did not run the read that fails", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(remove(s, b, "notes.md"));
    await s.ends(b);
    const look = read(s, a, "notes.md");
    expect((await s.ask(look)).kind).toBe("granted");
    await s.coordinator.arbiter.callEnded(look.callKey, { hasFailed: true, isNotRun: true });
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });

  it("is refused where it was written again while the read failed", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(remove(s, b, "notes.md"));
    const look = read(s, a, "notes.md");
    expect((await s.ask(look)).kind).toBe("granted");
    await s.does(write(s, b, { "notes.md": "b\n" }));
    await s.coordinator.arbiter.callEnded(look.callKey, { hasFailed: true });
    await s.ends(b);
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });

  it("is refused where the other one is of another coordination", async () => {
    await using s = await start();
    const a = await s.child("a");
    const b = await s.child("b", { trace: "trace-2" });
    await s.does(read(s, a, "notes.md"));
    await s.does(read(s, b, "notes.md"));
    await s.does(write(s, b, { "notes.md": "v1\n" }));
    await s.ends(b);
    const answer = requireRefused(await s.does(write(s, a, { "notes.md": "a\n" })));
    expect(answer.sentence).toContain("changed by step-1 of coordination co-2");
  });

  it("is refused where the other one deleted it or created it", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const name of ["notes.md", "new.md"])
      for (const session of [a, b]) await s.does(read(s, session, name));
    await s.does(remove(s, b, "notes.md"));
    await s.does(write(s, b, { "new.md": "b\n" }));
    await s.ends(b);
    expect(requireRefused(await s.does(write(s, a, { "notes.md": "a\n" }))).sentence).toContain("step-2");
    expect(requireRefused(await s.does(write(s, a, { "new.md": "a\n" }))).sentence).toContain("step-2");
    expect(s.events("resource.changed").map(({ version }) => version)).toContain("absent");
  });

  it("that the session never saw is refused only where it replaces the whole file", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": "v1\n" }));
    await s.ends(b);
    await s.clock.advance(1_000);
    expect((await s.ask(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
    expect((await s.ask(edit(s, a, ["notes.md", "v1", "v2"]))).kind).toBe("granted");
  });

  it("is refused a step that was at work meanwhile, but not one that began later", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": "v1\n" }));
    await s.ends(b);
    await s.clock.advance(1_000);
    const c = await s.child("c");
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
    expect((await s.does(write(s, c, { "notes.md": "c\n" }))).kind).toBe("granted");
  });

  it("is not refused where the file is again what the session saw", async () => {
    await using s = await start();
    const { a } = await changeBySecond(s, "v1\n");
    s.put("notes.md", "v0\n");
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is refused after a restart only by what the ledger says", async () => {
    await using s = await start();
    const { a } = await changeBySecond(s, "v1\n");
    await s.restart();
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
    expect((await s.does(edit(s, a, ["notes.md", "v1", "v2"]))).kind).toBe("granted");
  });
});

describe("a change of a file that somebody outside has changed since", () => {
  it("is refused where the whole file is replaced, and made after reading it again", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    s.put("notes.md", "person\n");
    const answer = requireRefused(await s.does(write(s, a, { "notes.md": "a\n" })));
    expect(answer.sentence).toContain("changed by somebody outside of this coordination");
    await s.does(read(s, a, "notes.md"));
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is made where only a part of it is changed, or where it is gone", async () => {
    await using s = await start("v0\n");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    s.put("notes.md", "v0\nperson\n");
    expect((await s.does(edit(s, a, ["notes.md", "v0", "v1"]))).kind).toBe("granted");
    expect(s.text("notes.md")).toBe("v1\nperson\n");
    s.remove("notes.md");
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is told from a change that the session itself made before", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a\n" }));
    s.put("notes.md", "a\nperson\n");
    expect((await s.does(edit(s, a, ["notes.md", "a\n", "b\n"]))).kind).toBe("granted");
    s.put("notes.md", "person again\n");
    expect(requireRefused(await s.does(write(s, a, { "notes.md": "c\n" }))).sentence).toContain(
      "by somebody outside",
    );
  });

  it("is made where the session has run a shell command since, which may have done it", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    await s.clock.advance(1_000);
    const ran = await s.does(createShellCall(s, a, () => s.put("notes.md", "by its own command\n")));
    expect(ran).toEqual({ kind: "granted" });
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("is refused where the shell command was before it saw the file", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(createShellCall(s, a));
    await s.clock.advance(1_000);
    await s.does(read(s, a, "notes.md"));
    s.put("notes.md", "person\n");
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });

  it("is made where a shell command ran since that people had allowed", async () => {
    await using s = await openScene({ conflicts: { unknownWrites: "review" } });
    await s.child("a");
    s.put("notes.md", "v0\n");
    await s.does(read(s, OWNER, "notes.md"));
    await s.clock.advance(1_000);
    const call = createShellCall(s, OWNER, () => s.put("notes.md", "by its own command\n"));
    const answer = await s.ask(call);
    if (answer.kind === "review") await answer.settle("approved");
    await s.runs(call, answer);
    expect((await s.does(write(s, OWNER, { "notes.md": "o\n" }))).kind).toBe("granted");
  });
});

describe("a session that changed a part of a file which it never saw", () => {
  it("is refused the whole file where somebody of another coordination changed it before", async () => {
    await using s = await start();
    const a = await s.child("a");
    const b = await s.child("b", { trace: "trace-2" });
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    await s.ends(b);
    expect((await s.does(edit(s, a, ["notes.md", "of", "by"]))).kind).toBe("granted");
    const answer = requireRefused(await s.does(write(s, a, { "notes.md": "of a\n" })));
    expect(answer.sentence).toContain("changed by step-1 of coordination co-2");
    await s.does(read(s, a, "notes.md"));
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("granted");
  });

  it("is told of the newest change of another, whoever made it", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const other of [
      await s.child("c", { trace: "trace-2" }),
      b,
      await s.child("d", { trace: "trace-3" }),
    ]) {
      await s.clock.advance(1_000);
      await s.does(read(s, other, "notes.md"));
      await s.does(write(s, other, { "notes.md": `${s.text("notes.md")}of ${other}\n` }));
      await s.ends(other);
    }
    expect((await s.does(edit(s, a, ["notes.md", "v0", "v1"]))).kind).toBe("granted");
    expect(requireRefused(await s.does(write(s, a, { "notes.md": "a\n" }))).sentence).toContain(
      "changed by step-1 of coordination co-3 ",
    );
  });

  it("is not refused for what another coordination changed before the session began", async () => {
    await using s = await start();
    const b = await s.child("b", { trace: "trace-2" });
    await s.does(write(s, b, { "notes.md": "of b\n" }));
    await s.ends(b);
    await s.clock.advance(1_000);
    const a = await s.child("a");
    await s.does(edit(s, a, ["notes.md", "of", "by"]));
    expect((await s.does(write(s, a, { "notes.md": "of a\n" }))).kind).toBe("granted");
  });
});

describe("an owner that never read a file as one", () => {
  it("is refused the whole file where a child changed it since, also after a restart", async () => {
    await using s = await start();
    const [a] = [await s.child("a"), await s.child("at work")];
    await s.clock.advance(1_000);
    await s.does(write(s, a, { "notes.md": "of a\n" }));
    await s.ends(a);
    const answer = requireRefused(await s.does(write(s, OWNER, { "notes.md": "o\n" })));
    expect(answer.sentence).toContain("changed by step-1");
    await s.restart();
    expect((await s.does(write(s, OWNER, { "notes.md": "o\n" }))).kind).toBe("refused");
    expect(s.text("notes.md")).toBe("of a\n");
    await s.does(read(s, OWNER, "notes.md"));
    expect((await s.does(write(s, OWNER, { "notes.md": "o\n" }))).kind).toBe("granted");
  });

  it("is refused it, too, where it has opened a newer coordination since", async () => {
    await using s = await start();
    const [a] = [await s.child("a"), await s.child("at work")];
    await s.does(write(s, a, { "notes.md": "of a\n" }));
    await s.ends(a);
    await s.clock.advance(1_000);
    await s.child("b", { trace: "trace-2" });
    const answer = requireRefused(await s.does(write(s, OWNER, { "notes.md": "o\n" })));
    expect(answer.sentence).toContain("changed by step-1 of coordination co-1");
  });
});

describe("a call that changes a part of a file first and replaces the whole then", () => {
  it("is refused what another changed that its session never saw", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": "of a\n" }));
    await s.ends(a);
    const call = write(s, b, { "notes.md": "of b\n" });
    const targets = [...edit(s, b, ["notes.md", "of", "by"]).targets, ...call.targets];
    expect((await s.ask({ ...call, targets })).kind).toBe("refused");
  });
});

describe("a session's own changes", () => {
  it("never stand against it, also several of them in one message", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    const first = write(s, a, { "notes.md": "1\n" });
    const second = write(s, a, { "notes.md": "2\n" });
    const answers = [await s.ask(first), await s.ask(second)];
    expect(answers).toEqual([{ kind: "granted" }, { kind: "granted" }]);
    await s.runs(first, { kind: "granted" });
    await s.runs(second, { kind: "granted" });
    expect((await s.does(write(s, a, { "notes.md": "3\n" }))).kind).toBe("granted");
    expect(s.events("resource.changed")).toHaveLength(3);
  });

  it("do not stand against it either before their end is told", async () => {
    await using s = await start();
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    const first = write(s, a, { "notes.md": "1\n" });
    await s.ask(first);
    first.tools(undefined);
    expect(await s.ask(write(s, a, { "notes.md": "2\n" }))).toEqual({ kind: "granted" });
  });

  it("are recorded only where there is something else in the file than before", async () => {
    await using s = await start("same\n");
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "same\n" }));
    expect(s.events("resource.changed")).toEqual([]);
  });

  it("that were allowed and did not happen are no changes", async () => {
    await using s = await start();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, b, "notes.md"));
    const call = write(s, a, { "notes.md": "a\n" });
    await s.ask(call);
    await s.coordinator.arbiter.callEnded(call.callKey);
    await s.coordinator.arbiter.callEnded(call.callKey);
    await s.coordinator.arbiter.callEnded("unknown");
    await s.ends(a);
    expect(s.events("resource.changed")).toEqual([]);
    expect((await s.does(write(s, b, { "notes.md": "b\n" }))).kind).toBe("granted");
  });

  it("that end at the same time are recorded once each", async () => {
    await using s = await openScene();
    const children = [await s.child("a"), await s.child("b"), await s.child("c")];
    const calls = children.map((child, index) => write(s, child, { [`${index}.md`]: "new\n" }));
    for (const [index, call] of calls.entries()) {
      await s.ask(call);
      s.put(`${index}.md`, "new\n");
    }
    await Promise.all(calls.map(({ callKey }) => s.coordinator.arbiter.callEnded(callKey)));
    const changed = s.events("resource.changed").map(({ resource }) => resource);
    expect(changed.toSorted()).toEqual(calls.map((_, index) => s.resource(`${index}.md`)));
  });

  it("whose end the host never told do not switch the protection off for good", async () => {
    await using s = await openScene({ settings: { stepTimeoutMs: 10 * HALF_AN_HOUR_MS } });
    s.put("notes.md", "v0\n");
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, a, "notes.md"));
    await s.ask(write(s, a, { "notes.md": "never made\n" }));
    await s.clock.advance(HALF_AN_HOUR_MS + 60_000);
    await s.does(read(s, b, "notes.md"));
    expect((await s.does(write(s, b, { "notes.md": "b\n" }))).kind).toBe("granted");
    await s.ends(b);
    expect((await s.does(write(s, a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });
});
