/** Claims that would keep others out for nothing, and what one call may cost. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  createNamedCall,
  createOutputCall,
  edit,
  read,
  requireRefused,
  write,
  type ToolCall,
} from "./arbiter-calls.ts";
import { openScene, type Scene } from "./arbiter-scene.ts";

const MERGING = { conflicts: { strategy: "merge_if_safe" } } as const;

/** A call that is allowed, and whose tool fails. */
async function failCall(s: Scene, call: ToolCall): Promise<void> {
  expect((await s.ask(call)).kind).toBe("granted");
  await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
}

function createNames(count: number, folder = "many"): string[] {
  return Array.from({ length: count }, (_, index) => `${folder}/${index}`);
}

function createTexts(files: readonly string[], text: string): Record<string, string> {
  return Object.fromEntries(files.map((name) => [name, text]));
}

describe("a claim", () => {
  it("is not given on a folder to a tool that writes files, which can only fail at it", async () => {
    await using s = await openScene();
    s.put("src/old.md", "x");
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.ask(write(s, a, { src: "text" }));
    expect(await s.holders("src")).toEqual([]);
    expect((await s.does(write(s, b, { "src/new.md": "b" }))).kind).toBe("granted");
  });

  it("is given on a folder that is declared as an output", async () => {
    await using s = await openScene();
    s.put("src/old.md", "x");
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.ask(createOutputCall(s, a, "src"));
    expect((await s.ask(write(s, b, { "src/new.md": "b" }))).kind).toBe("refused");
  });

  it("is released where the call that acquired it failed and changed nothing", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    await failCall(s, write(s, a, { "notes.md": "a" }));
    expect(s.events("claim.released")).toMatchObject([{ stepId: "step-1", because: "unused" }]);
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
  });

  it("is kept where the call that failed changed something, or found the claim there", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const half = write(s, a, { "half.md": "a" });
    await s.ask(half);
    s.put("half.md", "hal");
    await s.coordinator.arbiter.callEnded(half.callKey, { hasFailed: true });
    await s.does(write(s, a, { "held.md": "a" }));
    await failCall(s, edit(s, a, ["held.md", "nowhere", "x"]));
    expect(s.events("claim.released")).toEqual([]);
    expect(await s.holders("held.md")).toEqual(["co-1/step-1"]);
  });

  it("is kept while another call of the same message is under way under it", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    const [first, second] = [write(s, a, { "notes.md": "1" }), write(s, a, { "notes.md": "2" })];
    const answers = [await s.ask(first), await s.ask(second)];
    expect(answers).toEqual([{ kind: "granted" }, { kind: "granted" }]);
    await s.coordinator.arbiter.callEnded(first.callKey, { hasFailed: true });
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    const other = s.ask(write(s, b, { "notes.md": "b" }));
    await s.runs(second, { kind: "granted" });
    await s.clock.advance(5_000);
    expect((await other).kind).toBe("refused");
  });

  it.each([
    ["first", [0, 1]],
    ["last", [1, 0]],
  ])("is released where every call of one message failed, and its own ended %s", async (_, order) => {
    await using s = await openScene();
    const a = await s.child("a");
    const calls = [write(s, a, { "notes.md": "1" }), write(s, a, { "notes.md": "2" })];
    for (const call of calls) await s.ask(call);
    for (const index of order)
      await s.coordinator.arbiter.callEnded(calls[index]?.callKey ?? "", { hasFailed: true });
    expect(s.events("claim.released")).toMatchObject([{ stepId: "step-1", because: "unused" }]);
  });

  it("is released also where calls of one message fail at the same time", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const calls = [write(s, a, { "notes.md": "1" }), write(s, a, { "notes.md": "2" })];
    for (const call of calls) await s.ask(call);
    await Promise.all(
      calls.map(({ callKey }) => s.coordinator.arbiter.callEnded(callKey, { hasFailed: true })),
    );
    expect(s.events("claim.released")).toMatchObject([{ stepId: "step-1", because: "unused" }]);
  });

  it("is kept where one call of a message did what nobody can look at, and another failed", async () => {
    await using s = await openScene();
    const a = await s.child("a");
    const calls = [createNamedCall(s, a, "queue:mail"), createNamedCall(s, a, "queue:mail")];
    for (const call of calls) await s.ask(call);
    for (const [index, { callKey }] of calls.entries())
      await s.coordinator.arbiter.callEnded(callKey, { hasFailed: index === 1 });
    expect(s.events("claim.released")).toEqual([]);
  });

  it("is refused a step that has as many as one may have, and nobody else", async () => {
    await using s = await openScene();
    const [a, b] = [await s.child("a"), await s.child("b")];
    const perCall = 250;
    for (let first = 0; first < BOUNDS.claimsPerStepMax; first += perCall) {
      const call = write(s, a, createTexts(createNames(perCall, `d${first}`), "x"));
      expect((await s.ask(call)).kind).toBe("granted");
      await s.coordinator.arbiter.callEnded(call.callKey);
    }
    expect(requireRefused(await s.ask(write(s, a, { "more.md": "a" }))).sentence).toContain(
      String(BOUNDS.claimsPerStepMax),
    );
    expect((await s.ask(write(s, a, { "d0/0": "again" }))).kind).toBe("granted");
    expect((await s.ask(write(s, b, createTexts(createNames(perCall, "b"), "b")))).kind).toBe("granted");
  });
});

describe("what is kept of files for later merges", () => {
  const hashText = (text: string): string => hash("sha256", text);

  it("is nothing of a call whose files are too much together, which is granted all the same", async () => {
    await using s = await openScene(MERGING);
    const a = await s.child("a");
    const files = createNames(4);
    const contents = files.map((name) => `${name}\n`.padEnd(BOUNDS.mergeBytesMax - 1, "x"));
    for (const [index, name] of files.entries()) s.put(name, contents[index] ?? "");
    expect((await s.ask(write(s, a, createTexts(files, "new")))).kind).toBe("granted");
    for (const text of contents) expect(await s.store.get(hashText(text))).toBeUndefined();
  });

  it("is what each file was where it is not too much", async () => {
    await using s = await openScene(MERGING);
    s.put("notes.md", "before\n");
    await s.ask(write(s, await s.child("a"), { "notes.md": "after\n" }));
    expect(await s.store.get(hashText("before\n"))).toBe("before\n");
  });

  it("is nothing of a call that is refused", async () => {
    await using s = await openScene(MERGING);
    s.put("notes.md", "before\n");
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(write(s, a, { "notes.md": "of a\n" }));
    expect((await s.ask(write(s, b, { "notes.md": "of b\n" }))).kind).toBe("refused");
    expect(await s.store.get(hashText("of a\n"))).toBeUndefined();
  });
});

describe("what a call changed", () => {
  it("is recorded in one append, however many files it changed", async () => {
    let appends = 0;
    await using s = await openScene({
      wrap: (inner) => ({
        ...inner,
        append: (request) => {
          appends += 1;
          return inner.append(request);
        },
      }),
    });
    const call = write(s, await s.child("a"), createTexts(createNames(BOUNDS.resourcesPerCallMax), "a"));
    const answer = await s.ask(call);
    appends = 0;
    await s.runs(call, answer);
    expect(s.events("resource.changed")).toHaveLength(BOUNDS.resourcesPerCallMax);
    expect(appends).toBe(1);
  });

  it("is recorded also of a tool without a name", async () => {
    await using s = await openScene();
    await s.does({ ...write(s, await s.child("a"), { "notes.md": "a" }), tool: "" });
    expect(s.events("resource.changed")).toHaveLength(1);
  });
});
