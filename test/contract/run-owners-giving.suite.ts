/** Owns: of the suite of `RunOwners` who holds runs, and taking and giving runs away between owners that are named. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
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
} from "./run-owners-tested.ts";

export function describeTakingFrom<Request extends Append>(open: Open<Request>): void {
  it("take from those alone whom they name, where that is asked for", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    await owners.beat({ id: "living" });
    await owners.beat({ id: "named" });
    const [living] = await beginRuns(tested, ["l"], "living");
    const named = await beginRuns(tested, ["n1", "n2", "n3"], "named");
    const removed = await beginOne(tested, "u", "unheard-of");
    const unowned = await beginOne(tested, "o");
    const ofTaker = await beginOne(tested, "t", "taker");
    const runIds = named.map(({ runId }) => runId);
    const fromNamed = { from: ["named", "taker"], isOnlyFrom: true };
    expect(await takeIds(owners, "taker", { from: [], isOnlyFrom: true })).toEqual([]);
    expect(await takeIds(owners, "taker", { ...fromNamed, limit: 2 })).toEqual(runIds.slice(0, 2));
    expect(await takeIds(owners, "taker", fromNamed)).toEqual(runIds.slice(2));
    expect(await takeIds(owners, "taker", fromNamed)).toEqual([]);
    expect(await ownerOf(tested.store, ofTaker.runId)).toEqual({ id: "taker", token: 1 });
    expect(await takeIds(owners, "taker", { from: [""], isOnlyFrom: true })).toEqual([unowned.runId]);
    const fromOthers = { from: ["unheard-of", "living"], isOnlyFrom: true };
    expect(await takeIds(owners, "taker", fromOthers)).toEqual([living?.runId, removed.runId]);
  });
}

export function describeMissedArrivals<Request extends Append>(open: Open<Request>): void {
  it("forget what arrived at ended runs whose owner is gone, and nothing else that arrived", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    const ids = ["living", "named", "removed", "taker", "unheard-of"];
    for (const id of ids) {
      if (id !== "unheard-of") await owners.beat({ id });
      await tested.store.append((await beginOne(tested, `ended-${id}`, id)).end());
    }
    const running = await beginOne(tested, "open", "living");
    await appendAs(tested.store, running, undefined);
    const countArrivals = async (id: string): Promise<number> => (await owners.collectArrivals(id, 9)).length;
    await owners.remove("removed");
    expect([await countArrivals("removed"), await countArrivals("unheard-of")]).toEqual([0, 0]);
    expect(await takeIds(owners, "taker", { from: ["named"], isOnlyFrom: true })).toEqual([]);
    expect([await countArrivals("named"), await countArrivals("taker")]).toEqual([0, 1]);
    expect(await countArrivals("living")).toBe(2);
  });
}

export function describeHolders<Request extends Append>(open: Open<Request>): void {
  it("hold open runs, each named once and in order, also those unheard of and nobody", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    expect(await owners.holders()).toEqual([]);
    await owners.beat({ id: "idle" });
    await beginRuns(tested, ["z1", "z2"], "z");
    await beginRuns(tested, ["b1", "b2", "b3"], "b");
    await beginRuns(tested, ["B"], "B");
    const ended = await beginOne(tested, "e", "ended");
    expect(await owners.holders()).toEqual(["B", "b", "ended", "z"]);
    await tested.store.append({ ...ended.end(), owner: { id: "ended", token: 1 } });
    await beginRuns(tested, ["n"]);
    expect(await owners.holders()).toEqual(["", "B", "b", "z"]);
  });

  it("are found by the ids of their runs, without runs that are not there or that nobody owns", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    const one = await beginOne(tested, "a", "one");
    const two = await beginOne(tested, "b", "two");
    const unowned = await beginOne(tested, "c");
    const ended = await beginOne(tested, "d", "one");
    await tested.store.append({ ...ended.end(), owner: { id: "one", token: 1 } });
    const runIds = [two, unowned, one, ended, two].map(({ runId }) => runId);
    expect(await owners.ownersOf([...runIds, "none" as CoordinationId])).toEqual(
      new Map([
        [one.runId, { id: "one", token: 1 }],
        [two.runId, { id: "two", token: 1 }],
        [ended.runId, { id: "one", token: 1 }],
      ]),
    );
    expect(await owners.ownersOf([])).toEqual(new Map());
  });
}

export function describeGiving<Request extends Append>(open: Open<Request>): void {
  it("give a run to another one, who finds it as an arrival and writes with the next token", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = await beginOne(tested, "a", "one");
    const other = await tested.openAgain();
    await store.owners.give(author.runId, { id: "one", token: 1 }, "two");
    expect(await ownerOf(other.store, author.runId)).toEqual({ id: "two", token: 2 });
    expect(await store.owners.collectArrivals("one", 9)).toEqual([]);
    expect(await other.store.owners.collectArrivals("two", 9)).toEqual([await arrivalOf(store, author)]);
    expect(await other.store.owners.collectArrivals("two", 9)).toEqual([]);
    await expect(appendAs(store, author, { id: "one", token: 1 })).rejects.toMatchObject(notOwner);
    await appendAs(other.store, author, { id: "two", token: 2 });
    await other.store.owners.give(author.runId, { id: "two", token: 2 }, "one");
    await appendAs(store, author, { id: "one", token: 3 });
    expect(await store.owners.collectArrivals("one", 9)).toEqual([await arrivalOf(store, author)]);
    await other.close();
  });

  it("give away nothing that they do not own, or that has ended", async () => {
    await using tested = await open();
    const { store } = tested;
    const { owners } = store;
    const author = await beginOne(tested, "a", "one");
    const unowned = await beginOne(tested, "n");
    const ended = await beginOne(tested, "e", "one");
    await store.append({ ...ended.end(), owner: { id: "one", token: 1 } });
    await owners.give(author.runId, { id: "one", token: 1 }, "two");
    for (const [runId, owner] of [
      [author.runId, { id: "one", token: 1 }],
      [author.runId, { id: "one", token: 2 }],
      [author.runId, { id: "two", token: 1 }],
      [unowned.runId, { id: "one", token: 1 }],
      [ended.runId, { id: "one", token: 1 }],
      ["none" as CoordinationId, { id: "one", token: 1 }],
    ] as const)
      await expect(owners.give(runId, owner, "three")).rejects.toMatchObject(notOwner);
    expect(await ownerOf(store, author.runId)).toEqual({ id: "two", token: 2 });
    expect(await ownerOf(store, unowned.runId)).toBeUndefined();
    expect(await owners.collectArrivals("three", 9)).toEqual([]);
  });

  it("give a run once, where it is given to two at once", async () => {
    await using tested = await open();
    const author = await beginOne(tested, "a", "one");
    const other = await tested.openAgain();
    const owner = { id: "one", token: 1 };
    const results = await Promise.allSettled([
      tested.store.owners.give(author.runId, owner, "two"),
      other.store.owners.give(author.runId, owner, "three"),
    ]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(results.find(({ status }) => status === "rejected")).toMatchObject({ reason: notOwner });
    const id = results[0].status === "fulfilled" ? "two" : "three";
    expect(await ownerOf(tested.store, author.runId)).toEqual({ id, token: 2 });
    await other.close();
  });

  it("lose no event of an append under way to a gift, and write nothing behind it", async () => {
    await using tested = await open();
    const { store } = tested;
    const other = await tested.openAgain();
    const owner = { id: "one", token: 1 };
    for (let round = 0; round < 20; round += 1) {
      const author = await beginOne(tested, `gift-${round}`, "one");
      const appending = store.append({ ...author.propose(), owner }).then(
        () => undefined,
        (error: unknown) => error,
      );
      await other.store.owners.give(author.runId, owner, "two");
      const lengthThen = (await listLog(other.store, author.runId)).length;
      const error = await appending;
      expect(await listLog(store, author.runId)).toHaveLength(lengthThen);
      const begun = author.begin.events.length;
      if (error) expect(["NOT_OWNER", "LEDGER_CONFLICT"]).toContain((error as { code?: string }).code);
      expect(lengthThen > begun).toBe(error === undefined);
      expect(await ownerOf(store, author.runId)).toEqual({ id: "two", token: 2 });
    }
    await other.close();
  });
}
