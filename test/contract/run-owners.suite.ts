/** Owns: the part of the conformance suite about which process drives which run of either kind (`RunOwners`, O1 to O4). */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  describeGiving,
  describeHolders,
  describeMissedArrivals,
  describeTakingFrom,
} from "./run-owners-giving.suite.ts";
import {
  appendAs,
  arrivalOf,
  beginOne,
  beginRuns,
  listLog,
  notOwner,
  ownerOf,
  takeIds,
  type Append,
  type Open,
  type OwnedStore,
} from "./run-owners-tested.ts";

export function describeRunOwners<Request extends Append>(open: Open<Request>): void {
  describeBeats(open);
  describeTaking(open);
  describeTakingFrom(open);
  describeMissedArrivals(open);
  describeHolders(open);
  describeGiving(open);
  describeFence(open);
  describeArrivals(open);
}

function describeBeats<Request extends Append>(open: Open<Request>): void {
  it("are known with how often they told of themselves, until they are removed", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    expect(await owners.beats()).toEqual([]);
    await owners.beat({ id: "b" });
    await owners.beat({ id: "a", process: "boot/1/7" });
    await owners.beat({ id: "b", process: "boot/1/8" });
    const later = await tested.openAgain();
    expect(await later.store.owners.beats()).toEqual([
      { id: "a", process: "boot/1/7", count: 1 },
      { id: "b", process: "boot/1/8", count: 2 },
    ]);
    await later.store.owners.remove("b");
    await later.store.owners.remove("none");
    await later.close();
    expect((await owners.beats()).map(({ id }) => id)).toEqual(["a"]);
  });
}

function describeTaking<Request extends Append>(open: Open<Request>): void {
  it("take the open runs of who is gone and of nobody, the oldest first and in batches", async () => {
    await using tested = await open();
    const { store } = tested;
    const { owners } = store;
    await owners.beat({ id: "living" });
    await owners.beat({ id: "gone" });
    const kept = await beginOne(tested, "kept", "living");
    const free = [
      ...(await beginRuns(tested, ["g1", "g2"], "gone")),
      ...(await beginRuns(tested, ["n1"])),
      ...(await beginRuns(tested, ["u1"], "unheard-of")),
    ].map(({ runId }) => runId);
    const ended = await beginOne(tested, "ended", "gone");
    await store.append({ ...ended.end(), owner: { id: "gone", token: 1 } });
    expect(await takeIds(owners, "taker", { from: ["gone"], limit: 3 })).toEqual(free.slice(0, 3));
    expect(await takeIds(owners, "taker", { from: ["gone"], limit: 3 })).toEqual(free.slice(3));
    expect(await takeIds(owners, "taker", { from: ["gone"] })).toEqual([]);
    expect((await owners.list("taker", { limit: 9 })).map(({ token }) => token)).toEqual([2, 2, 1, 2]);
    const [first, ...rest] = await owners.list("taker", { limit: 9 });
    expect(await owners.list("taker", { limit: 2, ...(first && { after: first }) })).toEqual(
      rest.slice(0, 2),
    );
    expect((await owners.list("living", { limit: 9 })).map(({ runId }) => runId)).toEqual([kept.runId]);
  });

  it("leave alone what a living owner has, and take it once that one is removed", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    await owners.beat({ id: "one" });
    const author = await beginOne(tested, "a", "one");
    expect(await takeIds(owners, "two")).toEqual([]);
    expect(await takeIds(owners, "one", { from: ["one"] })).toEqual([]);
    await owners.remove("one");
    expect(await takeIds(owners, "two")).toEqual([author.runId]);
    expect(await ownerOf(tested.store, author.runId)).toEqual({ id: "two", token: 2 });
  });

  it("never take one run twice, where many take at once, and leave none behind", async () => {
    await using tested = await open();
    const { store } = tested;
    const names = Array.from({ length: 40 }, (_, index) => `many-${index}`);
    const authors = await beginRuns(tested, names, "gone");
    const others = await Promise.all([tested.openAgain(), tested.openAgain(), tested.openAgain()]);
    const takers = [store, ...others.map((other) => other.store)];
    const takeAll = async ({ owners }: OwnedStore<Request>, index: number): Promise<CoordinationId[]> => {
      const owner = `taker-${index}`;
      await owners.beat({ id: owner });
      const batches: CoordinationId[] = [];
      for (let isAny = true; isAny;) {
        const batch = await takeIds(owners, owner, { from: ["gone"], limit: 3 });
        batches.push(...batch);
        isAny = batch.length > 0;
      }
      return batches;
    };
    const runIds = (await Promise.all(takers.map(takeAll))).flat();
    // A run that one passed over because another one looked at it is left to the next look.
    runIds.push(...(await takeIds(store.owners, "taker-0", { from: ["gone"], limit: 99 })));
    expect(runIds.toSorted()).toEqual(authors.map(({ runId }) => runId).toSorted());
    expect(new Set(runIds).size).toBe(names.length);
    for (const other of others) await other.close();
  });
}

function describeFence<Request extends Append>(open: Open<Request>): void {
  it("write with their token, and nothing after another one took over, however often", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = await beginOne(tested, "a", "one");
    await appendAs(store, author, { id: "one", token: 1 });
    await expect(appendAs(store, author, { id: "one", token: 2 })).rejects.toMatchObject(notOwner);
    await expect(appendAs(store, author, { id: "two", token: 1 })).rejects.toMatchObject(notOwner);
    for (const [token, owner, former] of [
      [2, "two", "one"],
      [3, "one", "two"],
      [4, "two", "one"],
    ] as const) {
      expect(await takeIds(store.owners, owner, { from: [former] })).toEqual([author.runId]);
      expect(await ownerOf(store, author.runId)).toEqual({ id: owner, token });
      const length = (await listLog(store, author.runId)).length;
      for (const late of [
        { id: former, token: token - 1 },
        { id: former, token },
        { id: owner, token: token - 2 },
      ])
        await expect(appendAs(store, author, late)).rejects.toMatchObject(notOwner);
      expect(await listLog(store, author.runId)).toHaveLength(length);
      await appendAs(store, author, { id: owner, token });
    }
  });

  it("refuse a former owner alone among appends that wait together", async () => {
    await using tested = await open();
    const { store } = tested;
    const authors = await beginRuns(tested, ["a", "b", "c"], "one");
    const later = await tested.openAgain();
    expect(await takeIds(later.store.owners, "two", { limit: 1 })).toEqual([authors[0]?.runId]);
    const results = await Promise.allSettled(
      authors.map((author) => appendAs(store, author, { id: "one", token: 1 })),
    );
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(results[0]).toMatchObject({ reason: notOwner });
    await later.close();
  });

  it("write nothing behind a takeover that is made while they append", async () => {
    await using tested = await open();
    const { store } = tested;
    const other = await tested.openAgain();
    for (let round = 0; round < 20; round += 1) {
      const author = await beginOne(tested, `race-${round}`, "one");
      const appending = appendAs(store, author, { id: "one", token: 1 }).then(
        () => undefined,
        (error: unknown) => error,
      );
      const takenIds = await takeIds(other.store.owners, "two");
      const lengthThen = (await listLog(other.store, author.runId)).length;
      const error = await appending;
      const length = (await listLog(store, author.runId)).length;
      if (takenIds.length === 0) {
        expect(error).toBeUndefined();
        await takeIds(other.store.owners, "two");
        continue;
      }
      expect(length).toBe(lengthThen);
      if (error) expect(["NOT_OWNER", "LEDGER_CONFLICT"]).toContain((error as { code?: string }).code);
    }
    await other.close();
  });

  it("begin a run with the first token only, and lose to a log that is longer before anything else", async () => {
    await using tested = await open();
    const { store } = tested;
    const { runId, begin } = tested.createAuthor("a");
    await expect(store.append({ ...begin, owner: { id: "one", token: 2 } })).rejects.toMatchObject(notOwner);
    expect(await store.entry(runId)).toBeUndefined();
    await store.append({ ...begin, owner: { id: "one", token: 1 } });
    const again = store.append({ ...begin, owner: { id: "two", token: 1 } });
    await expect(again).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    expect(await ownerOf(store, runId)).toEqual({ id: "one", token: 1 });
  });
}

function describeArrivals<Request extends Append>(open: Open<Request>): void {
  it("are told once of what others appended to their runs, also of what ended them", async () => {
    await using tested = await open();
    const { store } = tested;
    const { owners } = store;
    const [first, second, unowned] = [
      ...(await beginRuns(tested, ["a", "b"], "one")),
      ...(await beginRuns(tested, ["c"])),
    ];
    if (!first || !second || !unowned) throw new Error("the runs were not begun");
    await appendAs(store, first, { id: "one", token: 1 });
    await appendAs(store, unowned, undefined);
    expect(await owners.collectArrivals("one", 9)).toEqual([]);
    await appendAs(store, first, undefined);
    await store.append(second.end());
    expect(await owners.collectArrivals("two", 9)).toEqual([]);
    const [arrivalOfFirst, arrivalOfSecond] = [await arrivalOf(store, first), await arrivalOf(store, second)];
    expect(await owners.collectArrivals("one", 1)).toEqual([arrivalOfFirst]);
    expect(await owners.collectArrivals("one", 9)).toEqual([arrivalOfSecond]);
    expect(await owners.collectArrivals("one", 9)).toEqual([]);
    await appendAs(store, first, undefined);
    await appendAs(store, first, { id: "one", token: 1 });
    expect(await owners.collectArrivals("one", 9)).toEqual([await arrivalOf(store, first)]);
    expect(await ownerOf(store, first.runId)).toEqual({ id: "one", token: 1 });
  });
}
