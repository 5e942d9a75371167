/**
 * Owns: what every `LedgerStore` and `ContentStore` must do, S1 to S5 and the port's comments as tests. A store passes by
 * calling `describeLedgerStore` with a way to open one ledger as often as asked.
 */
import { describe, expect, it } from "vitest";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { createAuthor, contentOf, openRun, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createManualClock } from "../support/temp-ledger.ts";
import { describeClaimRaces, describeClaims } from "./ledger-store-claims.suite.ts";
import { describeContent, describeGetMany, describeKeeping } from "./ledger-store-content.suite.ts";
import { describeFind, describeHolders, describeList } from "./ledger-store-lookup.suite.ts";
import { describeClaimProperties, describeOverlapping } from "./ledger-store-overlap.suite.ts";
import { describeRunOwners } from "./run-owners.suite.ts";
import { createCoordinationAuthor } from "./run-store-written.ts";
import {
  readAll,
  type Open,
  type StoreFixture,
  type TestedLedger,
  type TestedStore,
} from "./ledger-store-tested.ts";

export type { TestedLedger, TestedStore } from "./ledger-store-tested.ts";

export function describeLedgerStore(name: string, create: () => Promise<TestedLedger>): void {
  const open = async (): Promise<StoreFixture> => {
    const ledger = await create();
    const clock = createManualClock();
    const store = await ledger.open(clock);
    return {
      ledger,
      store,
      clock,
      [Symbol.asyncDispose]: async () => {
        await store.close();
        await ledger[Symbol.asyncDispose]();
      },
    };
  };
  describe(`${name}: append`, () => {
    describeAppend(open);
  });
  describe(`${name}: racing writers`, () => {
    describeRaces(open);
  });
  describe(`${name}: read`, () => {
    describeRead(open);
  });
  describe(`${name}: list`, () => {
    describeList(open);
  });
  describe(`${name}: find`, () => {
    describeFind(open);
  });
  describe(`${name}: holders`, () => {
    describeHolders(open);
  });
  describe(`${name}: claims`, () => {
    describeClaims(open);
  });
  describe(`${name}: races`, () => {
    describeClaimRaces(open);
  });
  describe(`${name}: overlapping`, () => {
    describeOverlapping(open);
  });
  describe(`${name}: a sequence of appends with claims`, () => {
    describeClaimProperties(open);
  });
  describe(`${name}: owners`, () => {
    describeOwners(open);
  });
  describe(`${name}: content`, () => {
    describeContent(open);
  });
  describe(`${name}: many contents`, () => {
    describeGetMany(open);
  });
  describe(`${name}: content that is needed`, () => {
    describeKeeping(open);
  });
  describe(`${name}: close`, () => {
    describeClose(open);
  });
}

const conflict = { code: "LEDGER_CONFLICT" };

function describeOwners(open: Open): void {
  describeRunOwners(async () => {
    const tested = await open();
    return {
      store: tested.store,
      openAgain: async () => {
        const store = await tested.ledger.open(tested.clock);
        return { store, close: () => store.close() };
      },
      createAuthor: createCoordinationAuthor,
      [Symbol.asyncDispose]: () => tested[Symbol.asyncDispose](),
    };
  });
}

function describeAppend(open: Open): void {
  it("gives back the very events that were appended, in order", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const next = writer.append(spawnOf("second"));
    await tested.store.append(next);
    expect(await readAll(tested.store, writer.runId)).toEqual([...request.events, ...next.events]);
  });

  it("keeps texts of every kind as they are", async () => {
    await using tested = await open();
    const writer = createAuthor("ünïcode 🜁 'quote' \\ \u0000 end");
    const opening = openingOf("trace\u0000with\nall “kinds” 🜂");
    const request = writer.append(opening, spawnOf("call\t🜃"));
    await tested.store.append(request);
    expect(await readAll(tested.store, writer.runId)).toEqual(request.events);
    expect((await tested.store.list({ limit: 1 })).map(({ runId }) => runId)).toEqual([writer.runId]);
    const [reference] = request.references;
    expect(await tested.store.find(reference?.name ?? "")).toEqual({ runId: writer.runId });
  });

  it("takes an append of many events whole", async () => {
    await using tested = await open();
    const writer = createAuthor("many");
    const spawns = Array.from({ length: 57 }, (_, index) => spawnOf(`call-${index}`));
    const request = writer.append(openingOf("many"), ...spawns);
    await tested.store.append(request);
    const events = await readAll(tested.store, writer.runId);
    expect(events).toEqual(request.events);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  });

  it.each([
    ["behind a gap", 1],
    ["over events that are there", -1],
  ])("refuses an append %s and writes nothing of it", async (_, shift) => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const next = writer.append(spawnOf("second"));
    const moved = { ...next, ...withMarks("moved"), events: shiftEvents(next.events, shift) };
    await expect(tested.store.append(moved)).rejects.toMatchObject(conflict);
    expect(await readAll(tested.store, writer.runId)).toEqual(request.events);
    await expectNoMarks(tested.store, "moved");
  });

  it("refuses the first append of a run that does not begin at 0", async () => {
    await using tested = await open();
    const { author: writer } = openRun("a");
    const next = writer.append(spawnOf("second"));
    await expect(tested.store.append(next)).rejects.toMatchObject(conflict);
    expect(await readAll(tested.store, writer.runId)).toEqual([]);
    expect(await tested.store.list({ limit: 10 })).toEqual([]);
  });

  it("writes all of an append or nothing, also when it breaks off in the middle", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const next = writer.append(spawnOf("second"), spawnOf("third"));
    const torn = { ...next, ...withMarks("torn"), events: next.events.toSpliced(3, 1) };
    await expect(tested.store.append(torn)).rejects.toMatchObject(conflict);
    expect(await readAll(tested.store, writer.runId)).toEqual(request.events);
    await expectNoMarks(tested.store, "torn");
    const [entry] = await tested.store.list({ limit: 1 });
    expect(entry).toMatchObject({ length: request.events.length, summary: request.summary });
  });

  it("does not let one failing append harm the others that wait with it", async () => {
    await using tested = await open();
    const good = Array.from({ length: 20 }, (_, index) => openRun(`good-${index}`));
    const torn = openRun("torn");
    const late = openRun("late");
    const requests = good.map(({ request }) => request);
    requests.splice(5, 0, { ...torn.request, events: torn.request.events.toSpliced(2, 1) });
    requests.splice(11, 0, { ...late.request, events: shiftEvents(late.request.events, 3) });
    const results = await Promise.allSettled(requests.map((request) => tested.store.append(request)));
    const failed = results.flatMap(({ status }, index) => (status === "rejected" ? [index] : []));
    expect(failed).toEqual([5, 11]);
    for (const { author: writer, request } of good)
      expect(await readAll(tested.store, writer.runId)).toEqual(request.events);
    expect(await readAll(tested.store, torn.author.runId)).toEqual([]);
    expect(await readAll(tested.store, late.author.runId)).toEqual([]);
    expect(await tested.store.inspect()).toEqual([]);
  });

  it("lets appends to one run follow each other without waiting", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    const requests = [
      request,
      ...Array.from({ length: 30 }, (_, index) => writer.append(spawnOf(`c${index}`))),
    ];
    await Promise.all(requests.map((each) => tested.store.append(each)));
    expect(await readAll(tested.store, writer.runId)).toEqual(requests.flatMap(({ events }) => events));
  });

  it("takes an append without events for nothing", async () => {
    await using tested = await open();
    const { request } = openRun("a");
    await tested.store.append({ ...request, ...withMarks("empty"), events: [] });
    expect(await tested.store.list({ limit: 10 })).toEqual([]);
    await expectNoMarks(tested.store, "empty");
  });
}

function describeRaces(open: Open): void {
  it("lets exactly one of several appends at the same place win", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const proposals = Array.from({ length: 10 }, (_, index) => writer.propose(spawnOf(`rival-${index}`)));
    const results = await Promise.allSettled(proposals.map((proposal) => tested.store.append(proposal)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const winner = results.findIndex(({ status }) => status === "fulfilled");
    const events = await readAll(tested.store, writer.runId);
    expect(events).toEqual([...request.events, ...(proposals[winner]?.events ?? [])]);
    for (const result of results)
      if (result.status === "rejected") expect(result.reason).toMatchObject(conflict);
  });

  it("lets exactly one of two stores on one ledger win, every time", async () => {
    await using tested = await open();
    const other = await tested.ledger.open(createManualClock());
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const expected = [...request.events];
    for (let round = 0; round < 20; round += 1) {
      const mine = writer.propose(spawnOf(`mine-${round}`));
      const theirs = writer.propose(spawnOf(`theirs-${round}`));
      const stores = round % 2 === 0 ? [tested.store, other] : [other, tested.store];
      const results = await Promise.allSettled([stores[0]?.append(mine), stores[1]?.append(theirs)]);
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const call = results[0].status === "fulfilled" ? `mine-${round}` : `theirs-${round}`;
      expected.push(...writer.append(spawnOf(call)).events);
    }
    expect(await readAll(other, writer.runId)).toEqual(expected);
    expect(await readAll(tested.store, writer.runId)).toEqual(expected);
    await other.close();
  });

  it("shows an append that resolved to every other store at once", async () => {
    await using tested = await open();
    const other = await tested.ledger.open(createManualClock());
    for (let round = 0; round < 10; round += 1) {
      const { author: writer, request } = openRun(`run-${round}`);
      await tested.store.append(request);
      expect(await readAll(other, writer.runId)).toEqual(request.events);
      expect(await other.find(request.references[0]?.name ?? "")).toEqual({ runId: writer.runId });
    }
    await other.close();
  });
}

function describeRead(open: Open): void {
  it("reads any range, and nothing of a run that is not there", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const { runId } = writer;
    const { events } = request;
    for (const from of [0, 1, 3, events.length - 1, events.length, events.length + 7]) {
      for (const limit of [0, 1, 2, 100]) {
        expect(await tested.store.read(runId, { from, limit })).toEqual(events.slice(from, from + limit));
      }
    }
    expect(await readAll(tested.store, "co-none" as CoordinationId)).toEqual([]);
  });

  it("keeps the logs of runs apart whose appends are mixed", async () => {
    await using tested = await open();
    const runs = Array.from({ length: 5 }, (_, index) => openRun(`run-${index}`));
    await Promise.all(runs.map(({ request }) => tested.store.append(request)));
    const more = runs.map(({ author: writer }) => writer.append(spawnOf("more")));
    await Promise.all(more.toReversed().map((request) => tested.store.append(request)));
    for (const [index, { author: writer, request }] of runs.entries()) {
      const expected = [...request.events, ...(more[index]?.events ?? [])];
      expect(await readAll(tested.store, writer.runId)).toEqual(expected);
    }
  });

  it("finds no damage in what was appended, and names the first event that is not there", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    await tested.store.append(request);
    const { length } = request.events;
    for (const before of [0, 1, length])
      expect(await tested.store.damage(writer.runId, { before })).toBeUndefined();
    const missing = await tested.store.damage(writer.runId, { before: length + 1 });
    expect(missing).toEqual({ sequence: length, problem: "event_missing" });
    const nothing = await tested.store.damage("co-none" as CoordinationId, { before: 1 });
    expect(nothing).toEqual({ sequence: 0, problem: "event_missing" });
  });

  it("says EVENT_UNREADABLE for an event of an unknown type instead of skipping it", async () => {
    await using tested = await open();
    const { author: writer, request } = openRun("a");
    const other = openRun("b");
    await tested.store.append(request);
    await tested.store.append(other.request);
    await tested.ledger.appendUnknownEvent(writer.runId);
    await expect(readAll(tested.store, writer.runId)).rejects.toMatchObject({ code: "EVENT_UNREADABLE" });
    const before = await tested.store.read(writer.runId, { from: 0, limit: request.events.length });
    expect(before).toEqual(request.events);
    expect(await readAll(tested.store, other.author.runId)).toEqual(other.request.events);
  });
}

function describeClose(open: Open): void {
  it("waits for the appends under way, and they are there afterwards", async () => {
    await using tested = await open();
    const store = await tested.ledger.open(createManualClock());
    const runs = Array.from({ length: 300 }, (_, index) => openRun(`run-${index}`));
    const appends = runs.map(({ request }) => store.append(request));
    await store.close();
    await Promise.all(appends);
    expect(await tested.store.list({ limit: 1_000 })).toHaveLength(300);
  });

  it("answers every later call with LEDGER_CLOSED", async () => {
    await using tested = await open();
    const store = await tested.ledger.open(createManualClock());
    const { author: writer, request } = openRun("a");
    const closing = store.close();
    const closed = { code: "LEDGER_CLOSED" };
    await expect(store.append(request)).rejects.toMatchObject(closed);
    await closing;
    await expect(store.append(request)).rejects.toMatchObject(closed);
    await expect(readAll(store, writer.runId)).rejects.toMatchObject(closed);
    await expect(store.list({ limit: 1 })).rejects.toMatchObject(closed);
    await expect(store.find("n")).rejects.toMatchObject(closed);
    await expect(store.holders("n", 1)).rejects.toMatchObject(closed);
    await expect(store.references(writer.runId)).rejects.toMatchObject(closed);
    await expect(store.claims({ after: 0, limit: 1 })).rejects.toMatchObject(closed);
    await expect(store.owners.holders()).rejects.toMatchObject(closed);
    const query = { resource: "queue:q", atMs: 0 as EpochMs, limit: 1 };
    await expect(store.overlapping(query)).rejects.toMatchObject(closed);
    await expect(store.inspect()).rejects.toMatchObject(closed);
    await expect(store.get("0".repeat(64))).rejects.toMatchObject(closed);
    await expect(store.getMany([])).rejects.toMatchObject(closed);
    await expect(store.deleteBefore(0 as EpochMs)).rejects.toMatchObject(closed);
    expect(await readAll(tested.store, writer.runId)).toEqual([]);
  });

  it("may be closed twice", async () => {
    await using tested = await open();
    const store = await tested.ledger.open(createManualClock());
    await store.close();
    await store.close();
  });
}

function shiftEvents(events: readonly RunEvent[], by: number): RunEvent[] {
  return events.map((event) => ({ ...event, sequence: event.sequence + by }));
}

/** The rows that must not be there after a refused append. */
function withMarks(name: string): Pick<AppendRequest, "references" | "contents"> {
  return { references: [{ name: `mark:${name}` }], contents: [contentOf(`mark of ${name}`)] };
}

async function expectNoMarks(store: TestedStore, name: string): Promise<void> {
  expect(await store.find(`mark:${name}`)).toBeUndefined();
  expect(await store.get(contentOf(`mark of ${name}`).ref.sha256)).toBeUndefined();
}
