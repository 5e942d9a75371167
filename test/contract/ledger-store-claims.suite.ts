/** Owns: the part of the conformance suite about what an append changes in the claims (S5), and about races for them. */
import { expect, it } from "vitest";
import type { ClaimChange } from "../../src/agents/coordination/contracts/claim-entry.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { contentOf, openRun, spawnOf, type Author } from "../support/ledger-fixtures.ts";
import { createManualClock } from "../support/temp-ledger.ts";
import {
  createAcquired,
  listAll,
  beginRun,
  change,
  claimConflict,
  entryOf,
  readLastToken,
  EARLY_MS,
  openEarly,
  createReleased,
  createRenewed,
} from "./ledger-store-claim-play.ts";
import { readAll, type Open } from "./ledger-store-tested.ts";

export function describeClaims(open: Open): void {
  it("are there from the append that acquires them to the one that releases them", async () => {
    await using tested = await openEarly(open);
    const { author, request } = openRun("a");
    const first = createAcquired(1, "file:/a", { priority: "critical", stepId: "@owner" as StepId });
    const second = createAcquired(2, "queue:deploys");
    await tested.store.append({ ...request, claims: [first] });
    expect(await listAll(tested.store)).toEqual([entryOf(author.runId, first)]);
    await change(tested.store, author, second);
    expect(await listAll(tested.store)).toEqual([first, second].map((each) => entryOf(author.runId, each)));
    await change(tested.store, author, createRenewed(1, 9_000));
    const longer = { ...entryOf(author.runId, first), expiresAtMs: 9_000 };
    expect(await listAll(tested.store)).toEqual([longer, entryOf(author.runId, second)]);
    await change(tested.store, author, createReleased(1));
    expect(await listAll(tested.store)).toEqual([entryOf(author.runId, second)]);
    expect(await tested.store.inspect()).toEqual([]);
  });

  it("are changed one after the other within one append", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const [first, second] = [createAcquired(1, "file:/a"), createAcquired(2, "file:/a")];
    await change(
      tested.store,
      author,
      first,
      createRenewed(1, 3_000),
      createReleased(1),
      second,
      createRenewed(2, 4_000),
    );
    expect(await listAll(tested.store)).toEqual([{ ...entryOf(author.runId, second), expiresAtMs: 4_000 }]);
    expect(await readLastToken(tested.store)).toBe(2);
  });

  it("never get a token again, also after all were released", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    expect(await readLastToken(tested.store)).toBe(0);
    await change(tested.store, author, createAcquired(1, "file:/a"), createAcquired(2, "file:/b"));
    await change(tested.store, author, createReleased(1), createReleased(2));
    expect(await listAll(tested.store)).toEqual([]);
    expect(await readLastToken(tested.store)).toBe(2);
    for (const token of [1, 2, 4])
      await expect(change(tested.store, author, createAcquired(token, "file:/c"))).rejects.toMatchObject(
        claimConflict,
      );
    await change(tested.store, author, createAcquired(3, "file:/c"));
    expect((await listAll(tested.store)).map(({ token }) => token)).toEqual([3]);
  });

  const refused: readonly [string, ClaimChange[]][] = [
    ["acquires a token that is taken", [createAcquired(1, "file:/new")]],
    ["leaves a token out", [createAcquired(4, "file:/new")]],
    ["acquires token 0", [createAcquired(0, "file:/new")]],
    ["acquires a token twice", [createAcquired(3, "file:/new"), createAcquired(3, "file:/newer")]],
    ["acquires tokens out of order", [createAcquired(4, "file:/new"), createAcquired(3, "file:/newer")]],
    ["renews a claim that is not there", [createRenewed(3, 9_000)]],
    ["releases a claim that is not there", [createReleased(3)]],
    ["renews another coordination's claim", [createRenewed(2, 9_000)]],
    ["releases another coordination's claim", [createReleased(2)]],
    ["renews a claim after releasing it", [createReleased(1), createRenewed(1, 9_000)]],
    ["releases a claim twice", [createReleased(1), createReleased(1)]],
    ["renews a claim before acquiring it", [createRenewed(3, 9_000), createAcquired(3, "file:/new")]],
    [
      "is right at first and then wrong",
      [createRenewed(1, 9_000), createAcquired(3, "file:/new"), createReleased(2)],
    ],
  ];

  it.each(refused)("are left as they are, with all else, by an append that %s", async (_, claims) => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const other = await beginRun(tested.store, "b");
    await change(tested.store, author, createAcquired(1, "file:/a"));
    await change(tested.store, other, createAcquired(2, "file:/b"));
    const before = await listAll(tested.store);
    const events = await readAll(tested.store, author.runId);
    const [entry] = await tested.store.list({ limit: 1, idPrefix: author.runId });
    const content = contentOf("mark");
    const request = { ...author.propose(spawnOf("x")), references: [{ name: "mark" }], contents: [content] };
    await expect(tested.store.append({ ...request, claims })).rejects.toMatchObject(claimConflict);
    expect(await listAll(tested.store)).toEqual(before);
    expect(await readLastToken(tested.store)).toBe(2);
    expect(await readAll(tested.store, author.runId)).toEqual(events);
    expect(await tested.store.list({ limit: 1, idPrefix: author.runId })).toEqual([entry]);
    expect(await tested.store.find("mark")).toBeUndefined();
    expect(await tested.store.get(content.ref.sha256)).toBeUndefined();
    // Whoever tries again as it should be is heard.
    await change(tested.store, author, createAcquired(3, "file:/new"));
  });

  it("are left as they are by an append whose place in the log is taken", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const late = author.propose(spawnOf("late"));
    await change(tested.store, author, createAcquired(1, "file:/a"));
    const append = tested.store.append({ ...late, claims: [createAcquired(2, "file:/b")] });
    await expect(append).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    expect(await readLastToken(tested.store)).toBe(1);
    expect(await listAll(tested.store)).toHaveLength(1);
  });

  it("are left as they are by an append that breaks off in the middle, and by one without events", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const request = author.propose(spawnOf("x"), spawnOf("y"));
    const claims = [createAcquired(1, "file:/a")];
    const torn = { ...request, claims, events: request.events.toSpliced(3, 1) };
    await expect(tested.store.append(torn)).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    await tested.store.append({ ...request, claims, events: [] });
    expect(await listAll(tested.store)).toEqual([]);
    expect(await readLastToken(tested.store)).toBe(0);
  });
}

export function describeClaimRaces(open: Open): void {
  it("for one token between appends that wait together are won by the first, and the others go on", async () => {
    await using tested = await openEarly(open);
    const names = Array.from({ length: 12 }, (_, index) => `run-${index}`);
    const authors: Author[] = [];
    for (const name of names) authors.push(await beginRun(tested.store, name));
    // Two bring token 1, two bring token 2, one has nothing to release; the others bring no claims.
    const claims: Record<number, ClaimChange[]> = {
      2: [createAcquired(1, "file:/a")],
      4: [createAcquired(1, "file:/b")],
      5: [createAcquired(2, "file:/c"), createAcquired(3, "file:/d")],
      6: [createAcquired(2, "file:/e")],
      9: [createReleased(7)],
    };
    const results = await Promise.allSettled(
      authors.map((author, index) =>
        tested.store.append({
          ...author.append(spawnOf("more")),
          ...(claims[index] && { claims: claims[index] }),
        }),
      ),
    );
    const failed = results.flatMap(({ status }, index) => (status === "rejected" ? [index] : []));
    expect(failed).toEqual([4, 6, 9]);
    for (const result of results)
      if (result.status === "rejected") expect(result.reason).toMatchObject(claimConflict);
    expect((await listAll(tested.store)).map(({ runId, token }) => [runId, token])).toEqual([
      ["co-run-2", 1],
      ["co-run-5", 2],
      ["co-run-5", 3],
    ]);
    expect(await readLastToken(tested.store)).toBe(3);
  });

  it("are as if a torn append had never waited with the others", async () => {
    await using tested = await openEarly(open);
    const [torn, good] = [await beginRun(tested.store, "torn"), await beginRun(tested.store, "good")];
    const request = torn.propose(spawnOf("x"), spawnOf("y"));
    const results = await Promise.allSettled([
      tested.store.append({
        ...request,
        events: request.events.toSpliced(3, 1),
        claims: [createAcquired(1, "file:/a")],
      }),
      tested.store.append({ ...good.propose(spawnOf("x")), claims: [createAcquired(1, "file:/b")] }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect((await listAll(tested.store)).map(({ resource }) => resource)).toEqual(["file:/b"]);
  });

  it("between two stores on one ledger are won by exactly one, every time", async () => {
    await using tested = await openEarly(open);
    const other = await tested.ledger.open(createManualClock(EARLY_MS));
    const mine = await beginRun(tested.store, "mine");
    const theirs = await beginRun(tested.store, "theirs");
    const winners: string[] = [];
    for (let token = 1; token <= 20; token += 1) {
      expect([await readLastToken(tested.store), await readLastToken(other)]).toEqual([token - 1, token - 1]);
      const contenders = [
        () => change(tested.store, mine, createAcquired(token, `file:/mine-${token}`)),
        () => change(other, theirs, createAcquired(token, `file:/theirs-${token}`)),
      ];
      if (token % 2 === 0) contenders.reverse();
      const results = await Promise.allSettled(contenders.map((contend) => contend()));
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const result of results)
        if (result.status === "rejected") expect(result.reason).toMatchObject(claimConflict);
      winners.push((await listAll(other)).at(-1)?.runId ?? "");
    }
    expect((await listAll(tested.store)).map(({ token }) => token)).toEqual(
      winners.map((_, index) => index + 1),
    );
    expect((await listAll(tested.store)).map(({ runId }) => runId)).toEqual(winners);
    await other.close();
  });

  it("are not renewed once they have run out, because another process may have acquired one since", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    await change(tested.store, author, createAcquired(1, "file:/a"));
    tested.clock.set(1_999);
    await change(tested.store, author, createRenewed(1, 3_000));
    tested.clock.set(3_000);
    await expect(change(tested.store, author, createRenewed(1, 9_000))).rejects.toMatchObject(claimConflict);
    await change(tested.store, author, createReleased(1));
    expect(await listAll(tested.store)).toEqual([]);
  });
}
