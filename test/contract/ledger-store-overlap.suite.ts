/** Owns: the part of the conformance suite about finding claims: what overlaps what, and the list. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { ClaimChange, ClaimEntry } from "../../src/agents/coordination/contracts/claim-entry.ts";
import { PRIORITIES } from "../../src/agents/coordination/contracts/envelope.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Author } from "../support/ledger-fixtures.ts";
import {
  createAcquired,
  listAll,
  beginRun,
  change,
  claimConflict,
  entryOf,
  readLastToken,
  createReleased,
  createRenewed,
  EARLY_MS,
  openEarly,
} from "./ledger-store-claim-play.ts";
import type { Open } from "./ledger-store-tested.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 30);

const RESOURCES = [
  "file:/",
  "file:/a",
  "file:/a/b",
  "file:/a/b/c.txt",
  "file:/a/bc",
  "file:/a-b",
  "file:/a.b",
  "file:/a0",
  "file:/A/b",
  "file:/b/%",
  "file:/b/_/ü🜁",
  "file:c:/",
  "file:c:/Users/a",
  "file:d:/a",
  "file://server/share/",
  "file://server/share/a",
  "session:agent:main:main",
  "session:agent:main:main/sub",
  "session:agent:main",
  "queue:/a",
  "queue:/a/b",
  "/a",
  "file",
] as const;

/** Which of these are below which. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  "file:/": RESOURCES.filter((name) => name.startsWith("file:/") && name !== "file:/"),
  "file:/a": ["file:/a/b", "file:/a/b/c.txt", "file:/a/bc"],
  "file:/a/b": ["file:/a/b/c.txt"],
  "file:c:/": ["file:c:/Users/a"],
  "file://server/share/": ["file://server/share/a"],
};

function nameStep(number: number): { readonly stepId: StepId } {
  return { stepId: `step-${number}` as StepId };
}

function isOverlapping(one: string, other: string): boolean {
  return one === other || Boolean(BELOW[one]?.includes(other)) || Boolean(BELOW[other]?.includes(one));
}

export function describeOverlapping(open: Open): void {
  it("finds a claim by its own name, by what is above a file and by what is below a folder", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    await change(
      tested.store,
      author,
      ...RESOURCES.map((name, index) => createAcquired(index + 1, name, nameStep(index))),
    );
    for (const resource of [
      ...RESOURCES,
      "file:/a/b/c.txt/d",
      "file:/nothing",
      "file:/b",
      "queue:",
      "",
      "%",
    ]) {
      const { claims } = await tested.store.overlapping({ resource, atMs: 0 as EpochMs, limit: 100 });
      const isHit = (name: string): boolean =>
        isOverlapping(name, resource) ||
        (resource === "file:/b" && name.startsWith("file:/b/")) ||
        (resource === "file:/a/b/c.txt/d" && ["file:/a", "file:/a/b", "file:/a/b/c.txt"].includes(name)) ||
        (resource.startsWith("file:/") && name === "file:/");
      expect([resource, claims.map((claim) => claim.resource)]).toEqual([resource, RESOURCES.filter(isHit)]);
    }
  });

  it("leaves out claims whose lease has ended, to the millisecond", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const expiresAtMs = 5_000 as EpochMs;
    await change(
      tested.store,
      author,
      createAcquired(1, "file:/a"),
      createAcquired(2, "file:/a/b", { expiresAtMs, ...nameStep(2) }),
    );
    const listTokensAt = async (atMs: number): Promise<number[]> => {
      const { claims } = await tested.store.overlapping({
        resource: "file:/a",
        atMs: atMs as EpochMs,
        limit: 9,
      });
      return claims.map(({ token }) => token);
    };
    expect(await listTokensAt(1_999)).toEqual([1, 2]);
    expect(await listTokensAt(2_000)).toEqual([2]);
    expect(await listTokensAt(4_999)).toEqual([2]);
    expect(await listTokensAt(5_000)).toEqual([]);
    await change(tested.store, author, createRenewed(1, 6_000));
    expect(await listTokensAt(5_000)).toEqual([1]);
    expect(await listAll(tested.store)).toHaveLength(2);
  });

  it("answers the earliest claims first, whichever way they overlap, and no more than asked for", async () => {
    await using tested = await openEarly(open);
    const author = await beginRun(tested.store, "a");
    const names = [
      "file:/a/b/z",
      "file:/a",
      "file:/a/b/c",
      "file:/",
      "file:/other",
      "file:/a/b",
      "file:/a/b/a",
    ];
    await change(
      tested.store,
      author,
      ...names.map((name, index) => createAcquired(index + 1, name, nameStep(index))),
    );
    const tokens = { "file:/a/b": [1, 2, 3, 4, 6, 7], "file:/": [1, 2, 3, 4, 5, 6, 7] };
    const atMs = 0 as EpochMs;
    for (const [resource, expected] of Object.entries(tokens)) {
      for (const limit of [0, 1, 3, 5, 6, 7, 100]) {
        const found = await tested.store.overlapping({ resource, atMs, limit });
        expect(found.claims.map(({ token }) => token)).toEqual(expected.slice(0, limit));
        expect(found.lastToken).toBe(7);
      }
    }
  });

  it("answers of each step its earliest claim alone, however many it has", async () => {
    await using tested = await openEarly(open);
    const [one, two] = [await beginRun(tested.store, "one"), await beginRun(tested.store, "two")];
    const below = Array.from({ length: 20 }, (_, index) => `file:/a/${index}`);
    await change(tested.store, one, ...below.map((name, index) => createAcquired(index + 1, name)));
    await change(tested.store, two, createAcquired(21, "file:/a/x"), createAcquired(22, "file:/a/y"));
    await change(tested.store, one, createAcquired(23, "file:/a/z", nameStep(2)), createReleased(1));
    const atMs = 0 as EpochMs;
    const found = await tested.store.overlapping({ resource: "file:/a", atMs, limit: 3 });
    expect(found.claims.map(({ token }) => token)).toEqual([2, 21, 23]);
  });

  it("pages through all claims and through those of one coordination, while others are released", async () => {
    await using tested = await openEarly(open);
    const [one, two] = [await beginRun(tested.store, "one"), await beginRun(tested.store, "two")];
    for (let token = 1; token <= 20; token += 1)
      await change(tested.store, token % 2 === 0 ? one : two, createAcquired(token, `queue:${token}`));
    const seen: number[] = [];
    let page = await tested.store.claims({ after: 0, limit: 6 });
    while (page.length > 0) {
      seen.push(...page.map(({ token }) => token));
      const last = seen.at(-1)!;
      if (last === 6) await change(tested.store, one, createReleased(6), createReleased(8));
      page = await tested.store.claims({ after: last, limit: 6 });
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, ...Array.from({ length: 12 }, (_, index) => index + 9)]);
    const listTokensOfRun = async (runId: CoordinationId, after: number, limit: number): Promise<number[]> =>
      (await tested.store.claims({ after, limit, runId })).map(({ token }) => token);
    expect(await listTokensOfRun(two.runId, 0, 3)).toEqual([1, 3, 5]);
    expect(await listTokensOfRun(two.runId, 5, 100)).toEqual([7, 9, 11, 13, 15, 17, 19]);
    expect(await listTokensOfRun(one.runId, 3, 2)).toEqual([4, 10]);
    expect(await listTokensOfRun("co-none" as CoordinationId, 0, 9)).toEqual([]);
  });
}

interface Attempt {
  readonly run: number;
  readonly acts: readonly {
    readonly kind: ClaimChange["kind"];
    readonly resource: string;
    readonly priority: ClaimEntry["priority"];
    readonly expiresAtMs: number;
    /** From the tokens that were given so far; beyond them, one that was not. */
    readonly pick: number;
    readonly isWrong: boolean;
  }[];
}

interface Model {
  readonly entries: ReadonlyMap<number, ClaimEntry>;
  readonly last: number;
}

/** The changes that an attempt stands for, and the model after them; none where they cannot be made. */
function attemptActs(
  { entries, last }: Model,
  runId: CoordinationId,
  { acts }: Attempt,
): [ClaimChange[], Model?] {
  const after = new Map(entries);
  let [newest, isRefused] = [last, false];
  const changes = acts.map(({ kind, resource, priority, expiresAtMs: at, pick, isWrong }): ClaimChange => {
    const expiresAtMs = at as EpochMs;
    if (kind === "acquired") {
      const claim = createAcquired(newest + (isWrong ? 2 : 1), resource, { priority, expiresAtMs });
      if (claim.token !== newest + 1) isRefused = true;
      newest = claim.token;
      after.set(newest, entryOf(runId, claim));
      return claim;
    }
    const token = (pick % (newest + 2)) + 1;
    const claim = after.get(token);
    if (claim?.runId !== runId || (kind === "renewed" && claim.expiresAtMs <= EARLY_MS)) isRefused = true;
    else if (kind === "released") after.delete(token);
    else after.set(token, { ...claim, expiresAtMs });
    return kind === "released" ? createReleased(token) : createRenewed(token, at);
  });
  return isRefused ? [changes] : [changes, { entries: after, last: newest }];
}

export function describeClaimProperties(open: Open): void {
  const acts = fc.record({
    kind: fc.constantFrom("acquired" as const, "acquired" as const, "renewed" as const, "released" as const),
    resource: fc.constantFrom(...RESOURCES),
    priority: fc.constantFrom(...PRIORITIES),
    expiresAtMs: fc.integer({ min: 0, max: 4 }),
    pick: fc.nat(30),
    isWrong: fc.nat(9).map((pick) => pick === 0),
  });
  const attempts = fc.array(fc.record({ run: fc.nat(2), acts: fc.array(acts, { maxLength: 4 }) }), {
    maxLength: 25,
  });

  it("leaves exactly what the appends that were taken say, whatever is tried", async () => {
    await fc.assert(
      fc.asyncProperty(attempts, fc.constantFrom(...RESOURCES), async (tries, resource) => {
        await using tested = await openEarly(open);
        const authors: Author[] = [];
        for (const name of ["0", "1", "2"]) authors.push(await beginRun(tested.store, name));
        let model: Model = { entries: new Map(), last: 0 };
        for (const attempt of tries) {
          const author = authors[attempt.run]!;
          const [changes, after] = attemptActs(model, author.runId, attempt);
          const result = change(tested.store, author, ...changes);
          if (after) await result;
          else await expect(result).rejects.toMatchObject(claimConflict);
          model = after ?? model;
        }
        const entries = [...model.entries.values()];
        expect(await listAll(tested.store)).toEqual(entries);
        expect(await readLastToken(tested.store)).toBe(model.last);
        const query = { resource, atMs: 2 as EpochMs, limit: 5 };
        const hits = entries.filter(
          (entry) => entry.expiresAtMs > 2 && isOverlapping(entry.resource, resource),
        );
        const earliest = [...Map.groupBy(hits, ({ runId }) => runId).values()].map(([first]) => first);
        expect((await tested.store.overlapping(query)).claims).toEqual(earliest.slice(0, 5));
        expect(await tested.store.inspect()).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });
}
