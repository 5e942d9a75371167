/** Owns: the part of the conformance suite about memory: who sees what, and what was there before an event. */
import { expect, it } from "vitest";
import { type CoordinationId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  MemoryEntry,
  MemoryScope,
  WorkflowStore,
} from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  at,
  begun,
  memoryEntry,
  nodeStarted,
  NOW,
  SCOPE,
  started,
  workflowAuthor,
  type More,
  type Open,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

interface Seen {
  readonly asOf?: { readonly runId: CoordinationId; readonly sequence: number };
  readonly tag?: string;
  readonly limit?: number;
  readonly scope?: MemoryScope;
  readonly now?: typeof NOW;
}

async function idsIn(store: WorkflowStore, { scope = SCOPE, ...query }: Seen = {}): Promise<string[]> {
  const entries = await store.memory.list(scope, { now: NOW, limit: 100, ...query });
  return entries.map(({ id }) => id);
}

function write(author: WorkflowAuthor, ids: readonly string[], more: More = {}) {
  return author.append([], { entries: ids.map((id) => memoryEntry(id)), ...more });
}

export function describeMemory(open: Open): void {
  describeEntries(open);
  describeExpiry(open);
  describeDeleting(open);
  describeTags(open);

  it("refuses a write that no event of its append tells of, and writes nothing", async () => {
    await using tested = await open();
    const { author, request } = begun("a");
    await tested.store.append(request);
    const next = write(author, ["m", "n"]);
    const [first, second] = next.memory ?? [];
    if (!first || !second) throw new Error("two writes");
    const wrong = [
      [{ ...first, sequence: 0 }],
      [{ ...first, sequence: first.sequence + 2 }],
      [{ ...first, sequence: second.sequence }],
      [first, { ...first }],
      [{ ...first, entry: memoryEntry("m", { expiresAt: "soon" }) }],
    ];
    for (const memory of wrong)
      await expect(tested.store.append({ ...next, memory })).rejects.toMatchObject({
        name: "InvariantViolation",
      });
    expect((await tested.store.entry(author.runId))?.length).toBe(request.events.length);
    expect(await idsIn(tested.store)).toEqual([]);
    await tested.store.append(next);
    expect(await idsIn(tested.store)).toEqual(["n", "m"]);
  });
}

function describeEntries(open: Open): void {
  it("lists newest first, so many as asked for, each as it was written", async () => {
    await using tested = await open();
    const { author, request } = begun("a");
    const entries = [
      memoryEntry("one", { content: "ünïcode 🜁 \u0000", tags: ["a", "b", "a"] }),
      memoryEntry("two", { content: "", expiresAt: formatTimestamp(at(1)) }),
      memoryEntry("three", { createdAt: "2020-01-01T00:00:00Z" }),
    ];
    await tested.store.append(request);
    await tested.store.append(author.append([nodeStarted("b")], { entries }));
    await tested.store.append(write(workflowAuthor("b"), ["four"]));
    const { memory } = tested.store;
    const expected = [memoryEntry("four"), ...entries.toReversed()];
    for (const limit of [0, 1, 3, 4, 9])
      expect(await memory.list(SCOPE, { now: NOW, limit })).toEqual(expected.slice(0, limit));
    for (const entry of expected) expect(await memory.get(SCOPE, entry.id, { now: NOW })).toEqual(entry);
    expect(await memory.get(SCOPE, "five", { now: NOW })).toBeUndefined();
  });

  it("keeps tenants and scopes apart, whatever id is known", async () => {
    await using tested = await open();
    const other = { ...SCOPE, tenant: "evil" };
    const elsewhere = { ...SCOPE, scope: "other" };
    const author = workflowAuthor("a");
    await tested.store.append(
      author.append([], { entries: [memoryEntry("m", { content: "mine", tags: ["t"] })] }),
    );
    await tested.store.append(
      author.append([], { entries: [memoryEntry("m", { content: "theirs" })], scope: other }),
    );
    const { memory } = tested.store;
    const asOf = { runId: author.runId, sequence: 1 };
    for (const scope of [other, elsewhere, { tenant: "", scope: "" }, { tenant: "acme%", scope: "notes" }]) {
      const content = scope === other ? "theirs" : undefined;
      expect((await memory.get(scope, "m", { now: NOW }))?.content).toBe(content);
      expect(await idsIn(tested.store, { scope })).toEqual(content ? ["m"] : []);
      expect(await idsIn(tested.store, { scope, tag: "t" })).toEqual([]);
      expect(await memory.get(scope, "m", { now: NOW, asOf })).toBeUndefined();
      expect(await idsIn(tested.store, { scope, asOf })).toEqual([]);
    }
    expect((await memory.get(SCOPE, "m", { now: NOW }))?.content).toBe("mine");
  });

  it("has of an id that is written again only the newest entry", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    await tested.store.append(
      author.append([], { entries: [memoryEntry("m", { tags: ["old"] }), memoryEntry("n")] }),
    );
    const again = memoryEntry("m", { content: "again", tags: ["new"] });
    await tested.store.append(author.append([], { entries: [again] }));
    const { memory } = tested.store;
    expect(await memory.list(SCOPE, { now: NOW, limit: 9 })).toEqual([again, memoryEntry("n")]);
    expect(await memory.get(SCOPE, "m", { now: NOW })).toEqual(again);
    expect(await idsIn(tested.store, { tag: "old" })).toEqual([]);
    expect(await idsIn(tested.store, { tag: "new" })).toEqual(["m"]);
  });
}

function describeExpiry(open: Open): void {
  it("has no entry from the moment on at which it expires, and none that it replaced", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    const kept = memoryEntry("m", { tags: ["t"] });
    const brief = memoryEntry("m", { content: "brief", tags: ["t"], expiresAt: formatTimestamp(at(10)) });
    await tested.store.append(author.append([], { entries: [kept, brief] }));
    const { memory } = tested.store;
    for (const [now, expected] of [
      [at(9), [brief]],
      [at(10), []],
      [at(11), []],
    ] as const) {
      expect(await memory.list(SCOPE, { now, limit: 9 })).toEqual(expected);
      expect(await memory.list(SCOPE, { now, limit: 9, tag: "t" })).toEqual(expected);
      expect(await memory.get(SCOPE, "m", { now })).toEqual(expected[0]);
    }
    const asOf = { runId: author.runId, sequence: 1 };
    expect(await memory.get(SCOPE, "m", { now: at(11), asOf })).toEqual(kept);
  });

  it("counts only what is there towards a limit", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    const brief = { expiresAt: formatTimestamp(NOW) };
    const entries = ["a", "b", "c", "d"].map((id, index) => memoryEntry(id, index % 2 === 1 ? brief : {}));
    await tested.store.append(author.append([], { entries }));
    expect(await idsIn(tested.store, { limit: 2 })).toEqual(["c", "a"]);
  });
}

function describeDeleting(open: Open): void {
  const expiring = (id: string, ms: number, more: Partial<MemoryEntry> = {}) =>
    memoryEntry(id, { expiresAt: formatTimestamp(at(ms)), ...more });

  it("is of what expired before a time, what expired first goes first, and so many as asked for", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    const entries = [
      expiring("d", 4),
      expiring("b", 2),
      memoryEntry("m"),
      expiring("c", 3),
      expiring("a", 1),
    ];
    await tested.store.append(author.append([started()], { entries }));
    const { memory } = tested.store;
    const before = at(0);
    expect(await memory.deleteExpired(at(1), 9)).toBe(0);
    expect(await memory.deleteExpired(at(3), 1)).toBe(1);
    expect(await idsIn(tested.store, { now: before })).toEqual(["c", "m", "b", "d"]);
    expect(await memory.deleteExpired(at(3), 9)).toBe(1);
    expect(await idsIn(tested.store, { now: before })).toEqual(["c", "m", "d"]);
    expect(await memory.deleteExpired(at(1_000), 9)).toBe(2);
    expect(await memory.deleteExpired(at(1_000), 9)).toBe(0);
    expect(await idsIn(tested.store, { now: before })).toEqual(["m"]);
    expect(await memory.get(SCOPE, "c", { now: before })).toBeUndefined();
    expect(await idsIn(tested.store, { now: before, asOf: { runId: author.runId, sequence: 9 } })).toEqual([
      "m",
    ]);
    expect(await tested.store.damage(author.runId, { before: 6 })).toBeUndefined();
    await tested.store.append(write(author, ["c"]));
    expect(await idsIn(tested.store)).toEqual(["c", "m"]);
  });

  it("does not bring back what an entry had replaced", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    const tags = ["t"];
    const entries = [
      memoryEntry("m", { content: "first", tags }),
      expiring("m", 1, { content: "second", tags }),
      expiring("m", 50, { content: "third", tags }),
    ];
    await tested.store.append(author.append([started()], { entries }));
    const { memory } = tested.store;
    const seen = async (sequence?: number) => {
      const query = { now: NOW, ...(sequence !== undefined && { asOf: { runId: author.runId, sequence } }) };
      const [listed] = await memory.list(SCOPE, { ...query, limit: 9 });
      const [tagged] = await memory.list(SCOPE, { ...query, limit: 9, tag: "t" });
      const found = await memory.get(SCOPE, "m", query);
      expect([listed?.content, tagged?.content]).toEqual([found?.content, found?.content]);
      return found?.content;
    };
    const all = async () => [await seen(2), await seen(3), await seen(4), await seen()];
    expect(await all()).toEqual(["first", "second", "third", "third"]);
    await memory.deleteExpired(at(2), 9);
    expect(await all()).toEqual(["first", undefined, "third", "third"]);
    await memory.deleteExpired(at(60), 9);
    expect(await all()).toEqual(["first", undefined, undefined, undefined]);
    await tested.store.append(author.append([], { entries: [memoryEntry("m", { content: "fourth" })] }));
    expect((await memory.get(SCOPE, "m", { now: NOW }))?.content).toBe("fourth");
  });
}

function describeTags(open: Open): void {
  it("lists those with a tag, newest first, so many as asked for", async () => {
    await using tested = await open();
    const author = workflowAuthor("a");
    const tagged = (id: string, ...tags: string[]) => memoryEntry(id, { tags });
    const entries = [
      tagged("a", "x"),
      tagged("b", "y", "x"),
      tagged("c"),
      tagged("d", "xy"),
      tagged("e", "x"),
    ];
    await tested.store.append(author.append([started()], { entries }));
    expect(await idsIn(tested.store, { tag: "x" })).toEqual(["e", "b", "a"]);
    expect(await idsIn(tested.store, { tag: "x", limit: 2 })).toEqual(["e", "b"]);
    expect(await idsIn(tested.store, { tag: "y" })).toEqual(["b"]);
    expect(await idsIn(tested.store, { tag: "" })).toEqual([]);
    const asOf = { runId: author.runId, sequence: 3 };
    expect(await idsIn(tested.store, { tag: "x", asOf })).toEqual(["b", "a"]);
  });
}

export function describeMemoryAsOf(open: Open): void {
  it("is what was written before that event, also by other runs in between", async () => {
    await using tested = await open();
    const [one, two] = [workflowAuthor("one"), workflowAuthor("two")];
    for (const request of [
      one.append([started()]),
      two.append([started()]),
      write(one, ["a"]),
      write(two, ["b"]),
      write(one, ["c", "d"]),
      write(two, ["e"]),
    ])
      await tested.store.append(request);
    const seen = (runId: CoordinationId, sequence: number) =>
      idsIn(tested.store, { asOf: { runId, sequence } });
    expect(await seen(one.runId, 0)).toEqual([]);
    expect(await seen(one.runId, 1)).toEqual([]);
    expect(await seen(one.runId, 2)).toEqual(["b", "a"]);
    expect(await seen(one.runId, 3)).toEqual(["c", "b", "a"]);
    expect(await seen(two.runId, 0)).toEqual([]);
    expect(await seen(two.runId, 1)).toEqual(["a"]);
    expect(await seen(two.runId, 2)).toEqual(["d", "c", "b", "a"]);
    expect(await idsIn(tested.store)).toEqual(["e", "d", "c", "b", "a"]);
  });

  it("is at the end of a log what was there behind its last event, whatever others write later", async () => {
    await using tested = await open();
    const [one, two] = [workflowAuthor("one"), workflowAuthor("two")];
    await tested.store.append(write(one, ["a", "b"]));
    await tested.store.append(write(two, ["c"]));
    for (const sequence of [2, 3, 1_000])
      expect(await idsIn(tested.store, { asOf: { runId: one.runId, sequence } })).toEqual(["b", "a"]);
  });

  it("stays the same when ids are written again later", async () => {
    await using tested = await open();
    const [one, two] = [workflowAuthor("one"), workflowAuthor("two")];
    const { memory } = tested.store;
    const old = memoryEntry("m", { content: "old", tags: ["t"] });
    await tested.store.append(one.append([started()], { entries: [old] }));
    await tested.store.append(one.append([nodeStarted("n")]));
    const asOf = { runId: one.runId, sequence: 2 };
    const later = memoryEntry("m", { content: "new", expiresAt: formatTimestamp(NOW) });
    for (const author of [one, two]) await tested.store.append(author.append([], { entries: [later] }));
    expect(await memory.get(SCOPE, "m", { now: NOW, asOf })).toEqual(old);
    expect(await memory.list(SCOPE, { now: NOW, limit: 9, asOf })).toEqual([old]);
    expect(await memory.list(SCOPE, { now: NOW, limit: 9, asOf, tag: "t" })).toEqual([old]);
    expect(await memory.get(SCOPE, "m", { now: NOW })).toBeUndefined();
  });

  it("is an entry up to the very event that replaces it, however many lie between", async () => {
    await using tested = await open();
    const author = workflowAuthor("one");
    const passing = Array.from({ length: 600 }, (_, index) => nodeStarted(`n${index}`));
    await tested.store.append(author.append([started()], { entries: [memoryEntry("m", { tags: ["t"] })] }));
    await tested.store.append(author.append(passing));
    await tested.store.append(write(author, ["m"]));
    for (const [sequence, tagged] of [
      [1, []],
      [2, ["m"]],
      [300, ["m"]],
      [602, ["m"]],
      [603, []],
    ] as const) {
      const asOf = { runId: author.runId, sequence };
      expect(await idsIn(tested.store, { asOf, tag: "t" })).toEqual(tagged);
      expect(await idsIn(tested.store, { asOf })).toEqual(sequence === 1 ? [] : ["m"]);
    }
  });

  it("is at the time of then what had not expired then", async () => {
    await using tested = await open();
    const author = workflowAuthor("one");
    const brief = memoryEntry("m", { tags: ["t"], expiresAt: formatTimestamp(at(10)) });
    await tested.store.append(author.append([started()], { entries: [brief] }));
    await tested.store.append(author.append([nodeStarted("n")]));
    const asOf = { runId: author.runId, sequence: 2 };
    const { memory } = tested.store;
    for (const [now, expected] of [
      [at(5), ["m"]],
      [at(20), []],
    ] as const) {
      expect(await idsIn(tested.store, { now, asOf })).toEqual(expected);
      expect(await idsIn(tested.store, { now, asOf, tag: "t" })).toEqual(expected);
      expect((await memory.get(SCOPE, "m", { now, asOf }))?.id).toBe(expected[0]);
    }
  });

  it("is nothing for a run that is not there", async () => {
    await using tested = await open();
    await tested.store.append(write(workflowAuthor("one"), ["a"]));
    const asOf = { runId: "run-none" as CoordinationId, sequence: 1 };
    expect(await idsIn(tested.store, { asOf })).toEqual([]);
    expect(await tested.store.memory.get(SCOPE, "a", { now: NOW, asOf })).toBeUndefined();
  });
}
