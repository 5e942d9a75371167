/** Calls that once got around a ruling, or kept others out for nothing. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import {
  edit,
  createOutputCall,
  read,
  requireRefused,
  createShellCall,
  write,
  type ToolCall,
} from "./arbiter-calls.ts";
import {
  createHost,
  openScene,
  spawnChild,
  startCoordinator,
  createValueFiles,
  versionOf,
  type Scene,
  type SceneOptions,
  type Store,
} from "./arbiter-scene.ts";

const LINES = "one\n-\ntwo\n-\nthree\n";
const FAILED = { hasFailed: true };

/** A call that is allowed, and whose tool fails. */
async function failCall(s: Scene, call: ToolCall): Promise<void> {
  expect((await s.ask(call)).kind).toBe("granted");
  await s.coordinator.arbiter.callEnded(call.callKey, FAILED);
}

/** A store that another program can hold. */
function createSpoilable(): { isBusy: boolean; readonly wrap: NonNullable<SceneOptions["wrap"]> } {
  const spoiled = {
    isBusy: false,
    wrap: (inner: Store): Store => ({
      ...inner,
      append: (request) => {
        return spoiled.isBusy
          ? Promise.reject(new CoordinationError("LEDGER_BUSY", "held by another program"))
          : inner.append(request);
      },
    }),
  };
  return spoiled;
}

describe("what a session knows of a file", () => {
  it("is what it wrote, not what was merged into that: its next whole write keeps the other's lines", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
    const mine = LINES.replace("three", "THREE");
    await s.does(write(s, b, { "notes.md": mine }));
    const answer = await s.does(write(s, b, { "notes.md": mine.replace("two", "TWO") }));
    expect(answer.kind).toBe("granted");
    expect(s.text("notes.md")).toBe("ONE\n-\nTWO\n-\nTHREE\n");
  });

  it("is what it wrote, not what was merged into that, also after a shell command of its own", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(write(s, b, { "notes.md": LINES.replace("one", "ONE") }));
    await s.ends(b);
    await s.clock.advance(1_000);
    const mine = LINES.replace("three", "THREE");
    await s.does(write(s, a, { "notes.md": mine }));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, a));
    expect((await s.does(write(s, a, { "notes.md": mine.replace("two", "TWO") }))).kind).toBe("granted");
    expect(s.text("notes.md")).toBe("ONE\n-\nTWO\n-\nTHREE\n");
  });

  it("is what the tool read shows it, not a command, and a refusal says so", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, b, { "notes.md": LINES.replace("one", "ONE") }));
    await s.ends(b);
    await s.does(write(s, a, { "notes.md": LINES.replace("three", "THREE") }));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, a));
    const again = { "notes.md": LINES.replace("one", "1").replace("three", "THREE") };
    expect(requireRefused(await s.ask(write(s, a, again))).sentence).toContain(
      "(overlapping-changes). Read it again to its end with the tool read, not by a command,",
    );
    await s.does(read(s, a, "notes.md"));
    expect((await s.does(write(s, a, again))).kind).toBe("granted");
  });

  it("is what its own command made of the file that it edited a part of then", async () => {
    await using s = await openScene();
    s.put("notes.md", "one\ntwo\n");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    await s.clock.advance(1_000);
    await s.does(createShellCall(s, a, () => s.put("notes.md", "ONE\ntwo\n")));
    expect((await s.does(edit(s, a, ["notes.md", "two", "TWO"]))).kind).toBe("granted");
    expect((await s.does(write(s, a, { "notes.md": "ONE\nTWO\nTHREE\n" }))).kind).toBe("granted");
  });

  it("is what it wrote where a read of the same message was ruled on before and ended after", async () => {
    await using s = await openScene();
    s.put("notes.md", "v0\n");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    const [change, look] = [write(s, a, { "notes.md": "v1\n" }), read(s, a, "notes.md")];
    const answers = [await s.ask(change), await s.ask(look)] as const;
    await s.runs(change, answers[0]);
    await s.runs(look, answers[1]);
    expect(await s.does(write(s, a, { "notes.md": "v2\n" }))).toEqual({ kind: "granted" });
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("is what it wrote also by several edits of one message, the first of which was merged", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
    const edits = [edit(s, b, ["notes.md", "three", "THREE"]), edit(s, b, ["notes.md", "THREE", "3"])];
    const answers = [];
    for (const call of edits) answers.push(await s.ask(call));
    for (const [index, call] of edits.entries()) await s.runs(call, answers[index] ?? { kind: "free" });
    const answer = await s.does(write(s, b, { "notes.md": "one\n-\nTWO\n-\n3\n" }));
    expect(answer.kind).toBe("granted");
    expect(s.text("notes.md")).toBe("ONE\n-\nTWO\n-\n3\n");
  });

  it("is what it wrote also once the other has ended", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
    await s.does(edit(s, b, ["notes.md", "three", "THREE"]));
    await s.ends(a);
    await s.does(write(s, b, { "notes.md": "one\n-\nTWO\n-\nTHREE\n" }));
    expect(s.text("notes.md")).toBe("ONE\n-\nTWO\n-\nTHREE\n");
  });

  it("is not what it would have written: a merged write that failed is merged again when it is made again", async () => {
    await using s = await openScene({ conflicts: { strategy: "merge_if_safe" } });
    s.put("notes.md", LINES);
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": LINES.replace("one", "ONE") }));
    const mine = { "notes.md": LINES.replace("three", "THREE") };
    await failCall(s, write(s, b, mine));
    await s.does(write(s, b, mine));
    expect(s.text("notes.md")).toBe("ONE\n-\ntwo\n-\nTHREE\n");
  });

  it("does not hold what a read of the same message would show it", async () => {
    await using s = await changeByAnother();
    const look = read(s, s.a, "notes.md");
    const looked = await s.ask(look);
    expect((await s.ask(write(s, s.a, { "notes.md": "a\n" }))).kind).toBe("refused");
    await s.runs(look, looked);
    expect((await s.ask(write(s, s.a, { "notes.md": "a\n" }))).kind).toBe("granted");
  });

  it("does not hold what a read that failed would have shown it", async () => {
    await using s = await changeByAnother();
    await failCall(s, read(s, s.a, "notes.md"));
    expect((await s.ask(write(s, s.a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });

  it("does not hold what it edited a part of without having seen it", async () => {
    await using s = await changeByAnother("never seen");
    expect((await s.does(edit(s, s.a, ["notes.md", "v0", "v1"]))).kind).toBe("granted");
    expect((await s.ask(write(s, s.a, { "notes.md": "v1\n" }))).kind).toBe("refused");
  });

  it("does not hold what a person changed beside its own edit", async () => {
    await using s = await openScene();
    s.put("notes.md", "v0\n");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    s.put("notes.md", "v0\nperson\n");
    expect((await s.does(edit(s, a, ["notes.md", "v0", "v1"]))).kind).toBe("granted");
    expect((await s.ask(write(s, a, { "notes.md": "v1\n" }))).kind).toBe("refused");
  });

  it("is what it left by several edits of one message", async () => {
    await using s = await openScene();
    s.put("notes.md", "one\ntwo\n");
    const a = await s.child("a");
    await s.does(read(s, a, "notes.md"));
    const edits = [edit(s, a, ["notes.md", "one", "ONE"]), edit(s, a, ["notes.md", "two", "TWO"])];
    for (const call of edits) expect((await s.ask(call)).kind).toBe("granted");
    for (const call of edits) await s.runs(call, { kind: "granted" });
    expect(await s.does(write(s, a, { "notes.md": "ONE\nTWO\nTHREE\n" }))).toEqual({ kind: "granted" });
  });

  it("does not hold a file that an edit of it failed on", async () => {
    await using s = await changeByAnother("never seen");
    await failCall(s, edit(s, s.a, ["notes.md", "nowhere", "x"]));
    expect((await s.ask(write(s, s.a, { "notes.md": "a\n" }))).kind).toBe("refused");
  });
});

/** Another step has added a line to the file, and is gone. */
async function changeByAnother(
  seen = "before",
): Promise<Scene & { readonly a: Awaited<ReturnType<Scene["child"]>> }> {
  const s = await openScene();
  s.put("notes.md", "v0\n");
  const [a, b] = [await s.child("a"), await s.child("b")];
  if (seen === "before") await s.does(read(s, a, "notes.md"));
  await s.clock.advance(1_000);
  await s.does(write(s, b, { "notes.md": "v0\nmore\n" }));
  await s.ends(b);
  await s.clock.advance(1_000);
  return Object.assign(s, { a });
}

describe("who takes part", () => {
  it("is known of an owner at once after a restart, before recovery has reached anything", async () => {
    const it_ = createHost();
    const ledger = createMemoryLedger();
    using files = createValueFiles();
    const bootCoordinator = () => startCoordinator({ store: ledger.open(it_.clock), host: it_, files });
    const before = bootCoordinator();
    await before.start();
    const a = await spawnChild(before, it_.observer, { task: "a" });
    await before.arbiter.request(write(files, a, { "notes.md": "a" }));
    await before.stop();
    const after = bootCoordinator();
    expect((await after.arbiter.request(write(files, OWNER, { "notes.md": "o" }))).kind).toBe("refused");
    await after.stop();
  });

  it("is still a child whose step has ended: it is refused what others hold, and free elsewhere", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.ends(a);
    await s.does(write(s, b, { "src/notes.md": "b" }));
    expect(requireRefused(await s.does(write(s, a, { "src/notes.md": "a" }))).sentence).toContain("notes.md");
    expect((await s.ask(createOutputCall(s, a, "src"))).kind).toBe("refused");
    expect((await s.ask(read(s, a, "src/notes.md"))).kind).toBe("free");
    expect((await s.does(write(s, a, { "other.md": "a" }))).kind).toBe("free");
    await s.ends(b);
    expect((await s.does(write(s, a, { "src/notes.md": "a" }))).kind).toBe("free");
  });
});

describe("a call that ends after its coordination", () => {
  it.each([
    ["changed a file: the log of the host says that the ledger lacks it", 1],
    ["changed nothing: there is nothing to say", 0],
  ])("and %s", async (_, warnings) => {
    await using s = await openScene();
    const a = await s.child("a");
    const call = write(s, a, { "notes.md": "a" });
    const answer = await s.ask(call);
    await s.ends(a);
    await s.clock.advance(10_000);
    expect(s.events("coordination.terminal")).toHaveLength(1);
    if (warnings > 0) await s.runs(call, answer);
    else await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    expect(s.events("resource.changed")).toEqual([]);
    const message = "the ledger lacks what a call changed: the coordination ended as success";
    expect(s.lines.filter(({ level }) => level === "warn")).toEqual(
      Array.from({ length: warnings }, () => ({ level: "warn", message })),
    );
  });
});

describe("while the ledger is busy", () => {
  it("the loser of a ruling is refused also where the refusal cannot be recorded", async () => {
    const store = createSpoilable();
    await using s = await openScene({ wrap: store.wrap });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": "a" }));
    store.isBusy = true;
    const answer = requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(answer).not.toHaveProperty("conflictId");
    expect(answer.sentence).toContain("held by");
    const errors = s.lines.splice(0).filter(({ level }) => level === "error");
    expect(errors).toMatchObject([{ message: "a refused write could not be recorded" }]);
    store.isBusy = false;
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).conflictId).toBeDefined();
  });

  it("a change that could not be recorded is recorded before anybody is ruled on again", async () => {
    const store = createSpoilable();
    await using s = await openScene({ wrap: store.wrap });
    s.put("notes.md", "v0\n");
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(read(s, b, "notes.md"));
    const call = write(s, a, { "notes.md": "a\n" });
    const answer = await s.ask(call);
    store.isBusy = true;
    await s.runs(call, answer);
    store.isBusy = false;
    expect(s.events("resource.changed")).toEqual([]);
    await s.ask(write(s, b, { "elsewhere.md": "b" }));
    expect(s.events("resource.changed")).toMatchObject([{ version: versionOf("a\n") }]);
    await s.ends(a);
    expect((await s.ask(edit(s, b, ["notes.md", "a", "b"]))).kind).toBe("refused");
  });

  it("the loser is refused also where an earlier change is not recorded yet", async () => {
    const store = createSpoilable();
    await using s = await openScene({ wrap: store.wrap });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "held.md": "a" }));
    const call = write(s, a, { "other.md": "a" });
    const answer = await s.ask(call);
    store.isBusy = true;
    await s.runs(call, answer);
    expect((await s.ask(write(s, b, { "held.md": "b" }))).kind).toBe("refused");
    store.isBusy = false;
    s.lines.splice(0);
  });

  it("a call whose end is told before its ruling is on disk keeps nobody out, and is recorded", async () => {
    const later = Promise.withResolvers<undefined>();
    let isSlow = false;
    await using s = await openScene({
      wrap: (inner) => ({
        ...inner,
        append: async (request) => {
          if (isSlow) await later.promise;
          return inner.append(request);
        },
      }),
    });
    const a = await s.child("a");
    isSlow = true;
    const call = write(s, a, { "notes.md": "a\n" });
    const pendingAnswer = s.ask(call);
    for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
    await s.runs(call, { kind: "free" });
    later.resolve(undefined);
    expect(await pendingAnswer).toEqual({ kind: "granted" });
    expect(s.events("resource.changed")).toMatchObject([{ version: versionOf("a\n") }]);
    const b = await s.child("b");
    const answer = requireRefused(await s.ask(write(s, b, { "notes.md": "b\n" })));
    expect(answer.sentence).not.toContain("being changed");
  });
});

describe("a call whose id was used before in its run", () => {
  it("is followed to its end, also where the end of the earlier one was told and nothing came of it", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const call = write(s, a, { "notes.md": "a\n" });
    await s.coordinator.arbiter.callEnded(call.callKey, FAILED);
    expect((await s.does(call)).kind).toBe("granted");
    expect(s.events("resource.changed")).toMatchObject([{ version: versionOf("a\n") }]);
  });
});

describe("what nobody can look at", () => {
  it("is refused, also where calls are allowed that may change anything", async () => {
    await using s = await openScene({ conflicts: { unknownWrites: "allow" } });
    const a = await s.child("a");
    const call = { ...write(s, a, { "notes.md": "a" }), undetermined: { because: "too_many" } as const };
    expect(requireRefused(await s.does(call)).sentence).toContain(String(BOUNDS.resourcesPerCallMax));
    expect(s.events("write.undetermined")).toMatchObject([{ because: "too_many", action: "denied" }]);
    expect((await s.does(createShellCall(s, a))).kind).toBe("granted");
  });
});
