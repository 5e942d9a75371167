/** Owns: the part of the conformance suite about which process drives which run (`RunOwners`, O1 to O4). */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OwnerToken, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  beginRun,
  COMPLETED,
  createNodeStarted,
  readAll,
  type Open,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const notOwner = { code: "NOT_OWNER" };

export function describeRunOwners(open: Open): void {
  describeBeats(open);
  describeTaking(open);
  describeFence(open);
  describeArrivals(open);
}

function describeBeats(open: Open): void {
  it("are known with how often they told of themselves, until they are removed", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    expect(await owners.beats()).toEqual([]);
    await owners.beat({ id: "b" });
    await owners.beat({ id: "a", process: "boot/1/7" });
    await owners.beat({ id: "b", process: "boot/1/8" });
    const later = await tested.ledger.open();
    expect(await later.workflows.owners.beats()).toEqual([
      { id: "a", process: "boot/1/7", count: 1 },
      { id: "b", process: "boot/1/8", count: 2 },
    ]);
    await later.workflows.owners.remove("b");
    await later.workflows.owners.remove("none");
    await later.close();
    expect((await owners.beats()).map(({ id }) => id)).toEqual(["a"]);
  });
}

/** Begins runs of one owner, or of nobody. */
async function beginRuns(
  store: WorkflowStore,
  names: readonly string[],
  id?: string,
): Promise<WorkflowAuthor[]> {
  const authors: WorkflowAuthor[] = [];
  for (const name of names) {
    const { author, request } = beginRun(name);
    await store.append({ ...request, ...(id !== undefined && { owner: { id, token: 1 } }) });
    authors.push(author);
  }
  return authors;
}

async function takeIds(
  owners: RunOwners,
  owner: string,
  { from = [], limit = 10 }: { readonly from?: readonly string[]; readonly limit?: number } = {},
): Promise<CoordinationId[]> {
  return (await owners.take({ owner, from, limit })).map(({ runId }) => runId);
}

function describeTaking(open: Open): void {
  it("take the open runs of who is gone and of nobody, the oldest first and in batches", async () => {
    await using tested = await open();
    const { store } = tested;
    const { owners } = store;
    await owners.beat({ id: "living" });
    await owners.beat({ id: "gone" });
    await beginRuns(store, ["kept"], "living");
    const free = [
      ...(await beginRuns(store, ["g1", "g2"], "gone")),
      ...(await beginRuns(store, ["n1"])),
      ...(await beginRuns(store, ["u1"], "unheard-of")),
    ].map(({ runId }) => runId);
    const [ended] = await beginRuns(store, ["ended"], "gone");
    if (!ended) throw new Error("the run was not begun");
    await store.append({
      ...ended.append([COMPLETED], { status: "completed" }),
      owner: { id: "gone", token: 1 },
    });
    expect(await takeIds(owners, "taker", { from: ["gone"], limit: 3 })).toEqual(free.slice(0, 3));
    expect(await takeIds(owners, "taker", { from: ["gone"], limit: 3 })).toEqual(free.slice(3));
    expect(await takeIds(owners, "taker", { from: ["gone"] })).toEqual([]);
    expect((await owners.list("taker", { limit: 9 })).map(({ token }) => token)).toEqual([2, 2, 1, 2]);
    const [first, ...rest] = await owners.list("taker", { limit: 9 });
    expect(await owners.list("taker", { limit: 2, ...(first && { after: first }) })).toEqual(
      rest.slice(0, 2),
    );
    expect((await owners.list("living", { limit: 9 })).map(({ runId }) => runId)).toEqual(["run-kept"]);
  });

  it("leave alone what a living owner has, and take it once that one is removed", async () => {
    await using tested = await open();
    const { owners } = tested.store;
    await owners.beat({ id: "one" });
    const [author] = await beginRuns(tested.store, ["a"], "one");
    expect(await takeIds(owners, "two")).toEqual([]);
    expect(await takeIds(owners, "one", { from: ["one"] })).toEqual([]);
    await owners.remove("one");
    expect(await takeIds(owners, "two")).toEqual([author?.runId]);
    expect(await owners.ownerOf("run-a" as CoordinationId)).toEqual({ id: "two", token: 2 });
    expect(await owners.ownerOf("run-none" as CoordinationId)).toBeUndefined();
  });

  it("never take one run twice, where many take at once, and leave none behind", async () => {
    await using tested = await open();
    const { store } = tested;
    const names = Array.from({ length: 40 }, (_, index) => `many-${index}`);
    await beginRuns(store, names, "gone");
    const others = await Promise.all([tested.ledger.open(), tested.ledger.open(), tested.ledger.open()]);
    const takers = [store, ...others.map(({ workflows }) => workflows)];
    const takeAll = async ({ owners }: WorkflowStore, index: number): Promise<CoordinationId[]> => {
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
    // What one passed over because another one looked at it is left to the next look.
    runIds.push(...(await takeIds(store.owners, "taker-0", { from: ["gone"], limit: 99 })));
    expect(runIds.toSorted()).toEqual(names.map((name) => `run-${name}`).toSorted());
    expect(new Set(runIds).size).toBe(names.length);
    for (const other of others) await other.close();
  });
}

async function appendAs(
  store: WorkflowStore,
  author: WorkflowAuthor,
  owner: OwnerToken | undefined,
): Promise<void> {
  await store.append({ ...author.propose([createNodeStarted("next")]), ...(owner && { owner }) });
  author.append([createNodeStarted("next")]);
}

function describeFence(open: Open): void {
  it("write with their token, and nothing after another one took over, however often", async () => {
    await using tested = await open();
    const { store } = tested;
    const [author] = await beginRuns(store, ["a"], "one");
    if (!author) throw new Error("the run was not begun");
    await appendAs(store, author, { id: "one", token: 1 });
    await expect(appendAs(store, author, { id: "one", token: 2 })).rejects.toMatchObject(notOwner);
    await expect(appendAs(store, author, { id: "two", token: 1 })).rejects.toMatchObject(notOwner);
    for (const [token, owner, former] of [
      [2, "two", "one"],
      [3, "one", "two"],
      [4, "two", "one"],
    ] as const) {
      expect(await takeIds(store.owners, owner, { from: [former] })).toEqual([author.runId]);
      expect(await store.owners.ownerOf(author.runId)).toEqual({ id: owner, token });
      const length = (await readAll(store, author.runId)).length;
      for (const late of [
        { id: former, token: token - 1 },
        { id: former, token },
        { id: owner, token: token - 2 },
      ])
        await expect(appendAs(store, author, late)).rejects.toMatchObject(notOwner);
      expect(await readAll(store, author.runId)).toHaveLength(length);
      await appendAs(store, author, { id: owner, token });
    }
  });

  it("refuse a former owner alone among appends that wait together", async () => {
    await using tested = await open();
    const { store } = tested;
    const authors = await beginRuns(store, ["a", "b", "c"], "one");
    const later = await tested.ledger.open();
    expect(await takeIds(later.workflows.owners, "two", { limit: 1 })).toEqual(["run-a"]);
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
    const other = await tested.ledger.open();
    for (let round = 0; round < 20; round += 1) {
      const [author] = await beginRuns(store, [`race-${round}`], "one");
      if (!author) throw new Error("the run was not begun");
      const appending = appendAs(store, author, { id: "one", token: 1 }).then(
        () => undefined,
        (error: unknown) => error,
      );
      const takenIds = await takeIds(other.workflows.owners, "two");
      const lengthThen = (await readAll(other.workflows, author.runId)).length;
      const error = await appending;
      const length = (await readAll(store, author.runId)).length;
      if (takenIds.length === 0) {
        expect(error).toBeUndefined();
        await takeIds(other.workflows.owners, "two");
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
    const { request } = beginRun("a");
    await expect(store.append({ ...request, owner: { id: "one", token: 2 } })).rejects.toMatchObject(
      notOwner,
    );
    expect(await store.entry(request.runId)).toBeUndefined();
    await store.append({ ...request, owner: { id: "one", token: 1 } });
    const again = store.append({ ...request, owner: { id: "two", token: 1 } });
    await expect(again).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    expect(await store.owners.ownerOf(request.runId)).toEqual({ id: "one", token: 1 });
  });
}

function describeArrivals(open: Open): void {
  it("are told once of what others appended to their runs, also of what ended them", async () => {
    await using tested = await open();
    const { store } = tested;
    const { owners } = store;
    const [first, second, unowned] = [
      ...(await beginRuns(store, ["a", "b"], "one")),
      ...(await beginRuns(store, ["c"])),
    ];
    if (!first || !second || !unowned) throw new Error("the runs were not begun");
    await appendAs(store, first, { id: "one", token: 1 });
    await appendAs(store, unowned, undefined);
    expect(await owners.collectArrivals("one", 9)).toEqual([]);
    await appendAs(store, first, undefined);
    await store.append(second.append([COMPLETED], { status: "completed" }));
    expect(await owners.collectArrivals("two", 9)).toEqual([]);
    expect(await owners.collectArrivals("one", 1)).toEqual([{ runId: first.runId, length: 4 }]);
    expect(await owners.collectArrivals("one", 9)).toEqual([{ runId: second.runId, length: 3 }]);
    expect(await owners.collectArrivals("one", 9)).toEqual([]);
    await appendAs(store, first, undefined);
    await appendAs(store, first, { id: "one", token: 1 });
    expect(await owners.collectArrivals("one", 9)).toEqual([{ runId: first.runId, length: 6 }]);
    expect(await owners.ownerOf(first.runId)).toEqual({ id: "one", token: 1 });
  });
}
