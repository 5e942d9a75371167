/**
 * Owns: what every `WorkflowStore` must do, S1 to S3 and the port's comments as tests. A store passes by calling
 * `describeWorkflowStore` with a way to open one ledger as often as asked.
 */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { WorkflowStatus } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { describeRunOwners } from "./run-owners.suite.ts";
import { createWorkflowRunAuthor } from "./run-store-written.ts";
import { describeDefinitions, describeRequests } from "./workflow-store-beside.suite.ts";
import { describeMemory, describeMemoryAsOf } from "./workflow-store-memory.suite.ts";
import { describeDamage, describeOrigins } from "./workflow-store-origins.suite.ts";
import {
  beginRun,
  COMPLETED,
  definitionOf,
  createMemoryEntry,
  createNodeStarted,
  NOW,
  readAll,
  SCOPE,
  SOON,
  createRunStarted,
  createWholeRun,
  createWorkflowAuthor,
  nameWorkflowRun,
  type Open,
  type OpenSpoilable,
  type SpoilableLedger,
} from "./workflow-store-tested.ts";

export function describeWorkflowStore(name: string, create: () => Promise<SpoilableLedger>): void {
  const open: OpenSpoilable = async () => {
    const ledger = await create();
    const opened = await ledger.open();
    return {
      ledger,
      store: opened.workflows,
      [Symbol.asyncDispose]: async () => {
        await opened.close();
        await ledger[Symbol.asyncDispose]();
      },
    };
  };
  const parts: readonly [string, (open: OpenSpoilable) => void][] = [
    ["append", describeAppend],
    ["racing writers", describeRaces],
    ["runs", describeRuns],
    ["origins of forks", describeOrigins],
    ["damage", describeDamage],
    ["definitions", describeDefinitions],
    ["memory", describeMemory],
    ["memory as of an event", describeMemoryAsOf],
    ["requests with a key", describeRequests],
    ["owners", describeOwners],
    ["close", describeClose],
  ];
  for (const [part, describePart] of parts)
    describe(`${name}: ${part}`, () => {
      describePart(open);
    });
}

function describeOwners(open: Open): void {
  describeRunOwners(async () => {
    const tested = await open();
    return {
      store: tested.store,
      openAgain: async () => {
        const opened = await tested.ledger.open();
        return { store: opened.workflows, close: () => opened.close() };
      },
      createAuthor: createWorkflowRunAuthor,
      [Symbol.asyncDispose]: () => tested[Symbol.asyncDispose](),
    };
  });
}

const conflict = { code: "LEDGER_CONFLICT" };

function describeAppend(open: Open): void {
  it("gives back what was appended, field by field, also to who opens the ledger later", async () => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    const more = author.append([COMPLETED], { status: "completed" });
    await tested.store.append(more);
    const expected = [...request.events, ...more.events];
    expect(await readAll(tested.store, author.runId)).toEqual(expected);
    const later = await tested.ledger.open();
    expect(await readAll(later.workflows, author.runId)).toEqual(expected);
    expect(await later.workflows.entry(author.runId)).toEqual({
      runId: author.runId,
      ordinal: 1,
      length: 3,
      summary: more.summary,
    });
    await later.close();
  });

  it.each([
    ["behind a gap", 1],
    ["over events that are there", -1],
  ])("refuses an append %s and writes nothing of it", async (_, shift) => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    const next = author.append([], { entries: [createMemoryEntry("m")], status: "completed" });
    await expect(tested.store.append(shiftEvents(next, shift))).rejects.toMatchObject(conflict);
    expect(await readAll(tested.store, author.runId)).toEqual(request.events);
    expect((await tested.store.entry(author.runId))?.summary).toEqual(request.summary);
    expect(await tested.store.memory.list(SCOPE, { now: NOW, limit: 9 })).toEqual([]);
    expect(await tested.store.list({ status: "running", order: "oldest", limit: 9 })).toHaveLength(1);
  });

  it("refuses the first append of a run that does not begin at 0", async () => {
    await using tested = await open();
    const { author } = beginRun("a");
    await expect(tested.store.append(author.append([COMPLETED]))).rejects.toMatchObject(conflict);
    expect(await tested.store.entry(author.runId)).toBeUndefined();
  });

  it("writes all of an append or nothing, also when it breaks off in the middle", async () => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    const next = author.append([createNodeStarted("a"), createNodeStarted("b"), createNodeStarted("c")], {
      entries: [createMemoryEntry("m")],
    });
    const torn = { ...next, memory: [], events: next.events.toSpliced(1, 1) };
    await expect(tested.store.append(torn)).rejects.toMatchObject(conflict);
    expect(await readAll(tested.store, author.runId)).toEqual(request.events);
  });

  it("does not let one failing append harm the others that wait with it", async () => {
    await using tested = await open();
    const good = Array.from({ length: 20 }, (_, index) => createWholeRun(`good-${index}`));
    const torn = createWholeRun("torn");
    const late = createWholeRun("late");
    const requests: WorkflowAppend[] = [...good];
    requests.splice(5, 0, { ...torn, events: torn.events.toSpliced(1, 1) });
    requests.splice(11, 0, shiftEvents(late, 3));
    const results = await Promise.allSettled(requests.map((request) => tested.store.append(request)));
    expect(results.flatMap(({ status }, index) => (status === "rejected" ? [index] : []))).toEqual([5, 11]);
    for (const { runId, events } of good) expect(await readAll(tested.store, runId)).toEqual(events);
    for (const { runId } of [torn, late]) expect(await readAll(tested.store, runId)).toEqual([]);
  });

  it("lets appends to one run follow each other without waiting", async () => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    const more = Array.from({ length: 30 }, (_, index) => author.append([createNodeStarted(`n${index}`)]));
    const requests = [request, ...more];
    await Promise.all(requests.map((each) => tested.store.append(each)));
    expect(await readAll(tested.store, author.runId)).toEqual(requests.flatMap(({ events }) => events));
  });

  it("takes an append of many events whole, and one without events for nothing", async () => {
    await using tested = await open();
    const author = createWorkflowAuthor("many");
    const nodes = Array.from({ length: 57 }, (_, index) => createNodeStarted(`n${index}`));
    await tested.store.append({ ...author.propose([]), events: [] });
    expect(await tested.store.entry(author.runId)).toBeUndefined();
    const request = author.append([createRunStarted(), ...nodes]);
    await tested.store.append(request);
    expect(await readAll(tested.store, author.runId)).toEqual(request.events);
  });
}

function describeRaces(open: Open): void {
  it("lets exactly one of two stores on one ledger win, every time", async () => {
    await using tested = await open();
    const other = await tested.ledger.open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    const expected = [...request.events];
    for (let round = 0; round < 20; round += 1) {
      const mine = author.propose([createNodeStarted(`mine-${round}`)]);
      const theirs = author.propose([createNodeStarted(`theirs-${round}`)]);
      const appends = [() => tested.store.append(mine), () => other.workflows.append(theirs)];
      const ordered = round % 2 === 0 ? appends : appends.toReversed();
      const results = await Promise.allSettled(ordered.map((append) => append()));
      expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      for (const result of results)
        if (result.status === "rejected") expect(result.reason).toMatchObject(conflict);
      const events = await readAll(tested.store, author.runId);
      const last = events.at(-1);
      expect([mine.events[0], theirs.events[0]]).toContainEqual(last);
      author.append([createNodeStarted("taken")]);
      if (last) expected.push(last);
    }
    expect(await readAll(other.workflows, author.runId)).toEqual(expected);
    await other.close();
  });

  it("lets exactly one of several beginnings of one run win", async () => {
    await using tested = await open();
    const beginnings = Array.from({ length: 8 }, (_, index) =>
      createWorkflowAuthor("a").propose([createRunStarted(`by-${index}`)]),
    );
    const results = await Promise.allSettled(beginnings.map((request) => tested.store.append(request)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const winner = results.findIndex(({ status }) => status === "fulfilled");
    expect(await readAll(tested.store, nameWorkflowRun("a"))).toEqual(beginnings[winner]?.events);
  });

  it("shows an append that resolved to every other store at once", async () => {
    await using tested = await open();
    const other = await tested.ledger.open();
    for (let round = 0; round < 10; round += 1) {
      const request = createWholeRun(`run-${round}`);
      await tested.store.append(request);
      expect(await readAll(other.workflows, request.runId)).toEqual(request.events);
    }
    await other.close();
  });
}

const STATUSES: readonly [WorkflowStatus, boolean][] = [
  ["pending", true],
  ["running", true],
  ["paused", true],
  ["waiting-approval", true],
  ["waiting-input", true],
  ["waiting-external", true],
  ["cancelling", true],
  ["completed", false],
  ["failed", false],
  ["cancelled", false],
];

function describeRuns(open: Open): void {
  it("reads any range, and nothing of a run that is not there", async () => {
    await using tested = await open();
    const { runId, events } = createWholeRun("a");
    await tested.store.append(createWholeRun("a"));
    for (const from of [0, 1, 2, 3, 7])
      for (const limit of [0, 1, 2, 100])
        expect(await tested.store.read(runId, { from, limit })).toEqual(events.slice(from, from + limit));
    expect(await readAll(tested.store, "run-none" as CoordinationId)).toEqual([]);
    expect(await tested.store.entry("run-none" as CoordinationId)).toBeUndefined();
  });

  it.each(STATUSES)("lists a run that is %s among those that have not ended: %s", async (status, isOpen) => {
    await using tested = await open();
    const { author, request } = beginRun("a");
    await tested.store.append(request);
    expect(await tested.store.list({ status: "running", order: "oldest", limit: 9 })).toHaveLength(1);
    await tested.store.append(author.append([createNodeStarted("b")], { status }));
    await tested.store.append(createWorkflowAuthor("b").append([createRunStarted()], { status }));
    const listed = await tested.store.list({ status: "running", order: "oldest", limit: 9 });
    expect(listed.map(({ runId }) => runId)).toEqual(isOpen ? ["run-a", "run-b"] : []);
    expect((await tested.store.entry(author.runId))?.summary.status).toBe(status);
  });

  it("lists runs that have not ended oldest first, after an ordinal, so many as asked for", async () => {
    await using tested = await open();
    for (let index = 0; index < 12; index += 1) {
      const { request } = beginRun(`run-${index}`);
      await tested.store.append(index % 3 === 0 ? createWholeRun(`over-${index}`) : request);
    }
    const names: string[] = [];
    for (let after = { ordinal: 0 }; ;) {
      const page = await tested.store.list({ status: "running", order: "oldest", limit: 3, after });
      expect(page.length).toBeLessThanOrEqual(3);
      names.push(...page.map(({ runId }) => runId));
      const last = page.at(-1);
      if (!last) break;
      expect(last.ordinal).toBeGreaterThan(after.ordinal);
      after = last;
    }
    expect(names).toEqual([1, 2, 4, 5, 7, 8, 10, 11].map((index) => nameWorkflowRun(`run-${index}`)));
  });
}

function describeClose(open: Open): void {
  it("answers every later call with LEDGER_CLOSED", async () => {
    await using tested = await open();
    const opened = await tested.ledger.open();
    const store = opened.workflows;
    await opened.close();
    const { runId } = createWholeRun("a");
    const key = { tenant: "acme", endpoint: "POST /v1/runs", key: "k" };
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store.append(createWholeRun("a")),
      () => store.read(runId, { from: 0, limit: 1 }),
      () => store.entry(runId),
      () => store.damage(runId, { before: 1 }),
      () => store.list({ limit: 1 }),
      () => store.putDefinition(definitionOf("wf")),
      () => store.definition("0".repeat(64)),
      () => store.registered("acme", "wf"),
      () => store.memory.list(SCOPE, { now: NOW, limit: 1 }),
      () => store.memory.get(SCOPE, "m", { now: NOW }),
      () => store.memory.deleteExpired(NOW, 1),
      () => store.requests.begin({ ...key, digest: "d", subject: runId, now: NOW, leaseUntilMs: SOON }),
      () => store.requests.finish(key, { status: 200, body: "{}" }),
      () => store.requests.release(key),
      () => store.requests.lapse({ ...key, leaseUntilMs: SOON }),
      () => store.requests.deleteBefore(NOW, 1),
      () => store.owners.beat({ id: "d" }),
      () => store.owners.beats(),
      () => store.owners.remove("d"),
      () => store.owners.take({ owner: "d", from: [], limit: 1 }),
      () => store.owners.list("d", { limit: 1 }),
      () => store.owners.ownersOf([runId]),
      () => store.owners.holders(),
      () => store.owners.give(runId, { id: "d", token: 1 }, "e"),
      () => store.owners.collectArrivals("d", 1),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: "LEDGER_CLOSED" });
    expect(await tested.store.entry(runId)).toBeUndefined();
  });
}

function shiftEvents(request: WorkflowAppend, by: number): WorkflowAppend {
  const moveEvent = (event: WorkflowEvent): WorkflowEvent => ({ ...event, sequence: event.sequence + by });
  const memory = (request.memory ?? []).map((write) => ({ ...write, sequence: write.sequence + by }));
  return { ...request, memory, events: request.events.map(moveEvent) };
}
