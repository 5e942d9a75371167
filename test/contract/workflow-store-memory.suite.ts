/** Owns: the part of the conformance suite about memory: who sees what, and what was there before an event. */
import { expect, it } from "vitest";
import { type CoordinationId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  MemoryEntry,
  MemoryScope,
  WorkflowStore,
} from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  timeAt,
  beginRun,
  createMemoryEntry,
  createNodeStarted,
  NOW,
  SCOPE,
  createRunStarted,
  createWorkflowAuthor,
  type AppendAdditions,
  type Open,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

interface ListingQuery {
  readonly asOf?: { readonly runId: CoordinationId; readonly sequence: number };
  readonly tag?: string;
  readonly limit?: number;
  readonly scope?: MemoryScope;
  readonly now?: typeof NOW;
}

async function listIds(
  store: WorkflowStore,
  { scope = SCOPE, ...query }: ListingQuery = {},
): Promise<string[]> {
  const entries = await store.memory.list(scope, { now: NOW, limit: 100, ...query });
  return entries.map(({ id }) => id);
}

function write(author: WorkflowAuthor, ids: readonly string[], more: AppendAdditions = {}) {
  return author.append([], { entries: ids.map((id) => createMemoryEntry(id)), ...more });
}

export function describeMemory(open: Open): void {
  describeEntries(open);
  describeExpiry(open);
  describeDeleting(open);
  describeTags(open);

  it("refuses a write that no event of its append tells of, and writes nothing", async () => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    const next = write(author, ["m", "n"]);
    const [first, second] = next.memory ?? [];
    if (!first || !second) throw new Error("two writes");
    const wrong = [
      [{ ...first, sequence: 0 }],
      [{ ...first, sequence: first.sequence + 2 }],
      [{ ...first, sequence: second.sequence }],
      [first, { ...first }],
      [{ ...first, entry: createMemoryEntry("m", { expiresAt: "soon" }) }],
    ];
    for (const memory of wrong)
      await expect(tested.store.append({ ...next, memory })).rejects.toMatchObject({
        name: "InvariantViolation",
      });
    expect((await tested.store.entry(author.runId))?.length).toBe(request.events.length);
    expect(await listIds(tested.store)).toEqual([]);
    await tested.store.append(next);
    expect(await listIds(tested.store)).toEqual(["n", "m"]);
  });
}

function describeEntries(open: Open): void {
  it("lists newest first, so many as asked for, each as it was written", async () => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    const entries = [
      createMemoryEntry("one", { content: "ünïcode 🜁 \u0000", tags: ["a", "b", "a"] }),
      createMemoryEntry("two", { content: "", expiresAt: formatTimestamp(timeAt(1)) }),
      createMemoryEntry("three", { createdAt: "2020-01-01T00:00:00Z" }),
    ];
    await tested.store.append(request);
    await tested.store.append(author.append([createNodeStarted("b")], { entries }));
    await tested.store.append(write(createWorkflowAuthor("b"), ["four"]));
    const { memory } = tested.store;
    const expected = [createMemoryEntry("four"), ...entries.toReversed()];
    for (const limit of [0, 1, 3, 4, 9])
      expect(await memory.list(SCOPE, { now: NOW, limit })).toEqual(expected.slice(0, limit));
    for (const entry of expected) expect(await memory.get(SCOPE, entry.id, { now: NOW })).toEqual(entry);
    expect(await memory.get(SCOPE, "five", { now: NOW })).toBeUndefined();
  });

  it("keeps tenants and scopes apart, whatever id is known", async () => {
    await using tested = await open();
    const other = { ...SCOPE, tenant: "evil" };
    const elsewhere = { ...SCOPE, scope: "other" };
    const author = createWorkflowAuthor("a");
    await tested.store.append(
      author.append([], { entries: [createMemoryEntry("m", { content: "mine", tags: ["t"] })] }),
    );
    await tested.store.append(
      author.append([], { entries: [createMemoryEntry("m", { content: "theirs" })], scope: other }),
    );
    const { memory } = tested.store;
    const asOf = { runId: author.runId, sequence: 1 };
    for (const scope of [other, elsewhere, { tenant: "", scope: "" }, { tenant: "acme%", scope: "notes" }]) {
      const content = scope === other ? "theirs" : undefined;
      expect((await memory.get(scope, "m", { now: NOW }))?.content).toBe(content);
      expect(await listIds(tested.store, { scope })).toEqual(content ? ["m"] : []);
      expect(await listIds(tested.store, { scope, tag: "t" })).toEqual([]);
      expect(await memory.get(scope, "m", { now: NOW, asOf })).toBeUndefined();
      expect(await listIds(tested.store, { scope, asOf })).toEqual([]);
    }
    expect((await memory.get(SCOPE, "m", { now: NOW }))?.content).toBe("mine");
  });

  it("has of an id that is written again only the newest entry", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    await tested.store.append(
      author.append([], { entries: [createMemoryEntry("m", { tags: ["old"] }), createMemoryEntry("n")] }),
    );
    const again = createMemoryEntry("m", { content: "again", tags: ["new"] });
    await tested.store.append(author.append([], { entries: [again] }));
    const { memory } = tested.store;
    expect(await memory.list(SCOPE, { now: NOW, limit: 9 })).toEqual([again, createMemoryEntry("n")]);
    expect(await memory.get(SCOPE, "m", { now: NOW })).toEqual(again);
    expect(await listIds(tested.store, { tag: "old" })).toEqual([]);
    expect(await listIds(tested.store, { tag: "new" })).toEqual(["m"]);
  });
}

function describeExpiry(open: Open): void {
  it("has no entry from the moment on at which it expires, and none that it replaced", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    const kept = createMemoryEntry("m", { tags: ["t"] });
    const brief = createMemoryEntry("m", {
      content: "brief",
      tags: ["t"],
      expiresAt: formatTimestamp(timeAt(10)),
    });
    await tested.store.append(author.append([], { entries: [kept, brief] }));
    const { memory } = tested.store;
    for (const [now, expected] of [
      [timeAt(9), [brief]],
      [timeAt(10), []],
      [timeAt(11), []],
    ] as const) {
      expect(await memory.list(SCOPE, { now, limit: 9 })).toEqual(expected);
      expect(await memory.list(SCOPE, { now, limit: 9, tag: "t" })).toEqual(expected);
      expect(await memory.get(SCOPE, "m", { now })).toEqual(expected[0]);
    }
    const asOf = { runId: author.runId, sequence: 1 };
    expect(await memory.get(SCOPE, "m", { now: timeAt(11), asOf })).toEqual(kept);
  });

  it("counts only what is there towards a limit", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    const brief = { expiresAt: formatTimestamp(NOW) };
    const entries = ["a", "b", "c", "d"].map((id, index) =>
      createMemoryEntry(id, index % 2 === 1 ? brief : {}),
    );
    await tested.store.append(author.append([], { entries }));
    expect(await listIds(tested.store, { limit: 2 })).toEqual(["c", "a"]);
  });
}

function describeDeleting(open: Open): void {
  const createExpiringEntry = (id: string, ms: number, more: Partial<MemoryEntry> = {}) =>
    createMemoryEntry(id, { expiresAt: formatTimestamp(timeAt(ms)), ...more });

  it("is of what expired before a time, what expired first goes first, and so many as asked for", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    const entries = [
      createExpiringEntry("d", 4),
      createExpiringEntry("b", 2),
      createMemoryEntry("m"),
      createExpiringEntry("c", 3),
      createExpiringEntry("a", 1),
    ];
    await tested.store.append(author.append([createRunStarted()], { entries }));
    const { memory } = tested.store;
    const before = timeAt(0);
    expect(await memory.deleteExpired(timeAt(1), 9)).toBe(0);
    expect(await memory.deleteExpired(timeAt(3), 1)).toBe(1);
    expect(await listIds(tested.store, { now: before })).toEqual(["c", "m", "b", "d"]);
    expect(await memory.deleteExpired(timeAt(3), 9)).toBe(1);
    expect(await listIds(tested.store, { now: before })).toEqual(["c", "m", "d"]);
    expect(await memory.deleteExpired(timeAt(1_000), 9)).toBe(2);
    expect(await memory.deleteExpired(timeAt(1_000), 9)).toBe(0);
    expect(await listIds(tested.store, { now: before })).toEqual(["m"]);
    expect(await memory.get(SCOPE, "c", { now: before })).toBeUndefined();
    expect(await listIds(tested.store, { now: before, asOf: { runId: author.runId, sequence: 9 } })).toEqual([
      "m",
    ]);
    expect(await tested.store.damage(author.runId, { before: 6 })).toBeUndefined();
    await tested.store.append(write(author, ["c"]));
    expect(await listIds(tested.store)).toEqual(["c", "m"]);
  });

  it("does not bring back what an entry had replaced", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    const tags = ["t"];
    const entries = [
      createMemoryEntry("m", { content: "first", tags }),
      createExpiringEntry("m", 1, { content: "second", tags }),
      createExpiringEntry("m", 50, { content: "third", tags }),
    ];
    await tested.store.append(author.append([createRunStarted()], { entries }));
    const { memory } = tested.store;
    const listSeen = async (sequence?: number) => {
      const query = { now: NOW, ...(sequence !== undefined && { asOf: { runId: author.runId, sequence } }) };
      const [listed] = await memory.list(SCOPE, { ...query, limit: 9 });
      const [tagged] = await memory.list(SCOPE, { ...query, limit: 9, tag: "t" });
      const found = await memory.get(SCOPE, "m", query);
      expect([listed?.content, tagged?.content]).toEqual([found?.content, found?.content]);
      return found?.content;
    };
    const listAllSeen = async () => [
      await listSeen(2),
      await listSeen(3),
      await listSeen(4),
      await listSeen(),
    ];
    expect(await listAllSeen()).toEqual(["first", "second", "third", "third"]);
    await memory.deleteExpired(timeAt(2), 9);
    expect(await listAllSeen()).toEqual(["first", undefined, "third", "third"]);
    await memory.deleteExpired(timeAt(60), 9);
    expect(await listAllSeen()).toEqual(["first", undefined, undefined, undefined]);
    await tested.store.append(
      author.append([], { entries: [createMemoryEntry("m", { content: "fourth" })] }),
    );
    expect((await memory.get(SCOPE, "m", { now: NOW }))?.content).toBe("fourth");
  });
}

function describeTags(open: Open): void {
  it("lists those with a tag, newest first, so many as asked for", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("a");
    const createTaggedEntry = (id: string, ...tags: string[]) => createMemoryEntry(id, { tags });
    const entries = [
      createTaggedEntry("a", "x"),
      createTaggedEntry("b", "y", "x"),
      createTaggedEntry("c"),
      createTaggedEntry("d", "xy"),
      createTaggedEntry("e", "x"),
    ];
    await tested.store.append(author.append([createRunStarted()], { entries }));
    expect(await listIds(tested.store, { tag: "x" })).toEqual(["e", "b", "a"]);
    expect(await listIds(tested.store, { tag: "x", limit: 2 })).toEqual(["e", "b"]);
    expect(await listIds(tested.store, { tag: "y" })).toEqual(["b"]);
    expect(await listIds(tested.store, { tag: "" })).toEqual([]);
    const asOf = { runId: author.runId, sequence: 3 };
    expect(await listIds(tested.store, { tag: "x", asOf })).toEqual(["b", "a"]);
  });
}

export function describeMemoryAsOf(open: Open): void {
  it("is what was written before that event, also by other runs in between", async () => {
    await using tested = await open();
    const [one, two] = [createWorkflowAuthor("one"), createWorkflowAuthor("two")];
    for (const request of [
      one.append([createRunStarted()]),
      two.append([createRunStarted()]),
      write(one, ["a"]),
      write(two, ["b"]),
      write(one, ["c", "d"]),
      write(two, ["e"]),
    ])
      await tested.store.append(request);
    const listSeen = (runId: CoordinationId, sequence: number) =>
      listIds(tested.store, { asOf: { runId, sequence } });
    expect(await listSeen(one.runId, 0)).toEqual([]);
    expect(await listSeen(one.runId, 1)).toEqual([]);
    expect(await listSeen(one.runId, 2)).toEqual(["b", "a"]);
    expect(await listSeen(one.runId, 3)).toEqual(["c", "b", "a"]);
    expect(await listSeen(two.runId, 0)).toEqual([]);
    expect(await listSeen(two.runId, 1)).toEqual(["a"]);
    expect(await listSeen(two.runId, 2)).toEqual(["d", "c", "b", "a"]);
    expect(await listIds(tested.store)).toEqual(["e", "d", "c", "b", "a"]);
  });

  it("is at the end of a log what was there behind its last event, whatever others write later", async () => {
    await using tested = await open();
    const [one, two] = [createWorkflowAuthor("one"), createWorkflowAuthor("two")];
    await tested.store.append(write(one, ["a", "b"]));
    await tested.store.append(write(two, ["c"]));
    for (const sequence of [2, 3, 1_000])
      expect(await listIds(tested.store, { asOf: { runId: one.runId, sequence } })).toEqual(["b", "a"]);
  });

  it("stays the same when ids are written again later", async () => {
    await using tested = await open();
    const [one, two] = [createWorkflowAuthor("one"), createWorkflowAuthor("two")];
    const { memory } = tested.store;
    const old = createMemoryEntry("m", { content: "old", tags: ["t"] });
    await tested.store.append(one.append([createRunStarted()], { entries: [old] }));
    await tested.store.append(one.append([createNodeStarted("n")]));
    const asOf = { runId: one.runId, sequence: 2 };
    const later = createMemoryEntry("m", { content: "new", expiresAt: formatTimestamp(NOW) });
    for (const author of [one, two]) await tested.store.append(author.append([], { entries: [later] }));
    expect(await memory.get(SCOPE, "m", { now: NOW, asOf })).toEqual(old);
    expect(await memory.list(SCOPE, { now: NOW, limit: 9, asOf })).toEqual([old]);
    expect(await memory.list(SCOPE, { now: NOW, limit: 9, asOf, tag: "t" })).toEqual([old]);
    expect(await memory.get(SCOPE, "m", { now: NOW })).toBeUndefined();
  });

  it("is an entry up to the very event that replaces it, however many lie between", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("one");
    const passing = Array.from({ length: 600 }, (_, index) => createNodeStarted(`n${index}`));
    await tested.store.append(
      author.append([createRunStarted()], { entries: [createMemoryEntry("m", { tags: ["t"] })] }),
    );
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
      expect(await listIds(tested.store, { asOf, tag: "t" })).toEqual(tagged);
      expect(await listIds(tested.store, { asOf })).toEqual(sequence === 1 ? [] : ["m"]);
    }
  });

  it("is at the time of then what had not expired then", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("one");
    const brief = createMemoryEntry("m", { tags: ["t"], expiresAt: formatTimestamp(timeAt(10)) });
    await tested.store.append(author.append([createRunStarted()], { entries: [brief] }));
    await tested.store.append(author.append([createNodeStarted("n")]));
    const asOf = { runId: author.runId, sequence: 2 };
    const { memory } = tested.store;
    for (const [now, expected] of [
      [timeAt(5), ["m"]],
      [timeAt(20), []],
    ] as const) {
      expect(await listIds(tested.store, { now, asOf })).toEqual(expected);
      expect(await listIds(tested.store, { now, asOf, tag: "t" })).toEqual(expected);
      expect((await memory.get(SCOPE, "m", { now, asOf }))?.id).toBe(expected[0]);
    }
  });

  it("is nothing for a run that is not there", async () => {
    await using tested = await open();
    await tested.store.append(write(createWorkflowAuthor("one"), ["a"]));
    const asOf = { runId: "run-none" as CoordinationId, sequence: 1 };
    expect(await listIds(tested.store, { asOf })).toEqual([]);
    expect(await tested.store.memory.get(SCOPE, "a", { now: NOW, asOf })).toBeUndefined();
  });
}
