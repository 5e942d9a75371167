/** Owns: finding coordinations and events by what they are about, on the SQLite ledger. */
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentId, EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventsQuery, LedgerFilter } from "../../src/agents/coordination/ports/ledger-queries.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { contentOf, openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import {
  timeAppended,
  fillQueried,
  LEDGER,
  nameAgent,
  nameChild,
  nameSession,
  nameTrace,
  type QueriedRun,
} from "./queried-ledger.ts";
import { createOlderLedger } from "./older-ledger.ts";
import { createRunStarted, createWorkflowAuthor, nameWorkflowRun } from "./workflow-store-tested.ts";

const RUNS = 40;

let folder: TempFolder;
let store: SqliteLedger;
let runs: readonly QueriedRun[];

beforeAll(async () => {
  folder = createTempFolder();
  store = await openTestLedger(folder.file(LEDGER));
  runs = await fillQueried(store, RUNS);
});

afterAll(async () => {
  await store.close();
  folder[Symbol.dispose]();
});

const idsOf = (events: readonly RunEvent[]): string[] => events.map(({ eventId }) => eventId);
const timeOf = (event: RunEvent): number => Date.parse(event.timestamp);

async function findAll(query: Omit<EventsQuery, "limit">, limit: number): Promise<RunEvent[]> {
  const found: RunEvent[] = [];
  let after: EventsQuery["after"];
  do {
    const page = await store.findEvents({ ...query, limit, ...(after && { after }) });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    found.push(...page.items);
    after = page.next;
  } while (after);
  return found;
}

async function listAll(filter: LedgerFilter, limit: number, status?: "running" | "ended"): Promise<string[]> {
  const found: string[] = [];
  let after: Parameters<SqliteLedger["findRuns"]>[0]["after"];
  do {
    const page = await store.findRuns({
      filter,
      limit,
      ...(status && { status }),
      ...(after && { after }),
    });
    found.push(...page.items.map(({ runId }) => runId));
    after = page.next;
  } while (after);
  return found;
}

/** What the filter finds, by looking at every event. */
function listMatchingEvents(filter: LedgerFilter): RunEvent[] {
  return runs.flatMap((run) => run.events.filter((event) => isMatch(filter, run, event)));
}

function isMatch(filter: LedgerFilter, run: QueriedRun, event: RunEvent): boolean {
  const { since = 0, until = Number.MAX_SAFE_INTEGER } = filter;
  const atMs = timeOf(event);
  return atMs >= since && atMs < until && hasCause(filter, run, event) && hasLabels(filter, run, event);
}

function hasCause({ cause }: LedgerFilter, { causes }: QueriedRun, { causationId }: RunEvent): boolean {
  if (!cause) return true;
  return cause.eventId ? causationId === cause.eventId : causes.includes(cause.coordinationId);
}

function hasLabels(filter: LedgerFilter, run: QueriedRun, { nodeId }: RunEvent): boolean {
  const step = run.steps.find(({ stepId }) => stepId === nodeId);
  const has = (wanted: string | undefined, ...values: (string | undefined)[]): boolean =>
    wanted === undefined || values.includes(wanted);
  return (
    has(filter.traceId, run.traceId) &&
    has(filter.session, run.session, step?.session) &&
    has(filter.agent, run.agent, step?.agent) &&
    has(filter.childSession, step?.child)
  );
}

function listMatchingRuns(filter: LedgerFilter): string[] {
  const { since = 0, until = Number.MAX_SAFE_INTEGER, ...labels } = filter;
  return runs
    .filter(({ startedAtMs }) => startedAtMs >= since && startedAtMs < until)
    .filter((run) =>
      Object.entries(labels).every(([name, value]) =>
        run.events.some((event) => isMatch({ [name]: value }, run, event)),
      ),
    )
    .map(({ runId }) => runId as string)
    .toReversed();
}

const timeAfter = (ms: number): EpochMs => (TEST_EPOCH_MS + ms) as EpochMs;
const SOME: readonly (readonly [string, () => LedgerFilter])[] = [
  ["a trace", () => ({ traceId: nameTrace(3) })],
  ["a session", () => ({ session: nameSession(1) })],
  ["a session that asked for steps of others", () => ({ session: nameChild(2, "step-1") })],
  ["an agent", () => ({ agent: nameAgent(1) })],
  ["an agent of steps only", () => ({ agent: "worker" as AgentId })],
  ["a child session", () => ({ childSession: nameChild(5, "step-2") })],
  [
    "an event that caused others",
    () => ({ cause: { coordinationId: runs[4]!.runId, eventId: runs[4]!.events[0]!.eventId } }),
  ],
  ["a coordination that others followed from", () => ({ cause: { coordinationId: runs[0]!.runId } })],
  ["a time on", () => ({ since: timeAppended(20) })],
  ["a time before", () => ({ until: timeAppended(20) })],
  ["a span of time", () => ({ since: timeAppended(10), until: timeAppended(12) })],
  ["a session and a time on", () => ({ session: nameSession(1), since: timeAppended(30) })],
  ["a session and a time before", () => ({ session: nameSession(1), until: timeAppended(3) })],
  ["a session and an agent", () => ({ session: nameSession(1), agent: "worker" as AgentId })],
  [
    "a trace and a span of time",
    () => ({ traceId: nameTrace(1), since: timeAppended(1), until: timeAppended(30) }),
  ],
  ["a trace that another session owns", () => ({ traceId: nameTrace(1), session: "nobody" as SessionKey })],
  ["a trace of no coordination", () => ({ traceId: "none" })],
];

describe("events", () => {
  it.each(SOME)("of %s are those that match, in pages of any size", async (_, filterOf) => {
    const filter = filterOf();
    const expected = idsOf(listMatchingEvents(filter));
    for (const limit of [1, 7, 1_000]) {
      const found = idsOf(await findAll({ filter }, limit));
      expect(found.toSorted()).toEqual(expected.toSorted());
      expect(new Set(found).size).toBe(found.length);
    }
  });

  it("of a label come coordination by coordination, each in the order of its log", async () => {
    const found = await findAll({ filter: { session: nameSession(1) } }, 9);
    expect(idsOf(found)).toEqual(idsOf(listMatchingEvents({ session: nameSession(1) })));
  });

  it("of a time come in the order of time", async () => {
    const found = await findAll({ filter: { since: timeAppended(5) } }, 9);
    expect(found.map(timeOf)).toEqual(found.map(timeOf).toSorted((a, b) => a - b));
  });

  it("of one coordination are found by the same filters", async () => {
    const { runId, events } = runs[5]!;
    const child = await findAll({ runId, filter: { childSession: nameChild(5, "step-2") } }, 2);
    expect(idsOf(child)).toEqual(idsOf(events.filter(({ nodeId }) => nodeId === "step-2")));
    expect(await findAll({ runId, filter: { traceId: "none" } }, 2)).toEqual([]);
    const eventId = runs[4]!.events[0]!.eventId;
    expect(
      await findAll({ runId, filter: { cause: { coordinationId: runs[4]!.runId, eventId } } }, 2),
    ).toEqual([]);
  });

  it("are read as they are appended, by the same filters", async () => {
    const filter = { session: nameSession(1) };
    const expected = idsOf(listMatchingEvents(filter)).toSorted();
    const found: RunEvent[] = [];
    let after = 0;
    const newest = await store.newestPosition();
    while (after < newest) {
      const { items, reached } = await store.readAppended({ filter, after, limit: 5 });
      expect(reached).toBeGreaterThan(after);
      found.push(...items);
      after = reached;
    }
    expect(idsOf(found).toSorted()).toEqual(expected);
    expect(await store.readAppended({ filter, after, limit: 5 })).toEqual({ items: [], reached: newest });
  });

  it("arrive one after the other, those of workflow runs among them, and none is decoded", async () => {
    using mixed = createTempFolder();
    const ledger = await openTestLedger(mixed.file(LEDGER));
    await ledger.append(openRun("a").request);
    await ledger.workflows.append(createWorkflowAuthor("w").append([createRunStarted()]));
    forge(mixed.file(LEDGER), "update event set payload = '{' where sequence = 0");
    const listArrivals = async (limit: number): Promise<string[]> => {
      const arrivals: string[] = [];
      for (let after = 0; ;) {
        const { items, reached } = await ledger.readArrivals({ after, limit });
        if (items.length === 0) return arrivals;
        arrivals.push(...items.map(({ runId, sequence, type }) => `${runId}:${sequence} ${type}`));
        after = reached;
      }
    };
    const { runId, events } = openRun("a").request;
    const expected = [
      ...events.map(({ sequence, type }) => `${runId}:${sequence} ${type}`),
      `${nameWorkflowRun("w")}:0 run.started`,
    ];
    for (const limit of [1, 2, 9]) expect(await listArrivals(limit)).toEqual(expected);
    await ledger.close();
  });

  it("that cannot be decoded are an error", async () => {
    using damaged = createTempFolder();
    const path = damaged.file(LEDGER);
    const writer = await openTestLedger(path);
    await writer.append(openRun("a").request);
    await writer.close();
    const database = new Database(path);
    database.exec("drop trigger event_no_update; update event set payload = '{' where sequence = 1");
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    await expect(reader.findEvents({ filter: { traceId: "trace-a" }, limit: 9 })).rejects.toMatchObject({
      code: "EVENT_UNREADABLE",
    });
    await reader.close();
  });
});

describe("coordinations", () => {
  it.each(SOME)("of %s are those that match, the newest first, in pages of any size", async (_, filterOf) => {
    const filter = filterOf();
    for (const limit of [1, 7, 1_000]) expect(await listAll(filter, limit)).toEqual(listMatchingRuns(filter));
  });

  it.each(["running", "ended"] as const)("that are %s are found by the same filters", async (status) => {
    for (const filter of [
      { session: nameSession(1) },
      { traceId: nameTrace(3) },
      { since: timeAfter(0) },
      {},
    ]) {
      const expected = listMatchingRuns(filter).filter(
        (id) => runs.find(({ runId }) => runId === id)!.hasEnded === (status === "ended"),
      );
      for (const limit of [1, 1_000]) expect(await listAll(filter, limit, status)).toEqual(expected);
    }
  });
});

describe("labels", () => {
  it("are nothing that verification complains of, and are what a migration would have made", async () => {
    expect(await store.inspect()).toEqual([]);
  });

  it.each([
    [
      "is missing",
      "drop trigger run_label_no_delete; delete from run_label where kind = 'trace' and run_key = 1",
      "the label trace",
    ],
    [
      "was added",
      "insert into run_label select 'session', 'forged', started_at_ms, run_key, step_id from run_label limit 1",
      "the label session forged follows from no event",
    ],
  ])("are reported when one %s", async (_, sql, message) => {
    using forged = createTempFolder();
    const path = forged.file(LEDGER);
    const writer = await openTestLedger(path);
    await writer.append(openRun("a").request);
    await writer.close();
    const database = new Database(path);
    database.exec(sql);
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    expect(await reader.inspect()).toContainEqual({
      kind: "index_differs",
      runId: runIdOf("a"),
      message: expect.stringContaining(message) as string,
    });
    await reader.close();
  });

  it.each(["update run_label set value = 'x'", "delete from run_label"])("refuse %j", (sql) => {
    const database = new Database(folder.file(LEDGER));
    expect(() => database.exec(sql)).toThrow(/a label of the ledger cannot be/u);
    database.close();
  });
});

describe.each([1, 2, 3, 4])("a ledger of schema %i", (schema) => {
  const trace = { traceId: "trace-over" };

  async function answersOf(ledger: SqliteLedger): Promise<unknown[]> {
    const agent = "main" as AgentId;
    return [
      await ledger.findRuns({ filter: trace, limit: 9 }),
      await ledger.findRuns({ filter: { agent }, status: "running", limit: 9 }),
      await ledger.findEvents({ filter: { agent }, limit: 7 }),
      await ledger.findEvents({ filter: { since: timeAfter(0) }, limit: 100 }),
      await ledger.findEvents({ filter: trace, limit: 100 }),
    ];
  }

  it("is queried the same before and after it is brought to the newest schema", async () => {
    using old = createTempFolder();
    const { path, database } = createOlderLedger(old, schema);
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    const before = await answersOf(reader);
    await reader.close();
    expect(before[0]).toMatchObject({ items: [{ runId: runIdOf("over") }] });
    const writer = await openTestLedger(path);
    expect(await answersOf(writer)).toEqual(before);
    expect(await writer.inspect()).toEqual([]);
    await writer.append({ ...openRun("later").request, contents: [contentOf("x")] });
    expect(await writer.findRuns({ filter: { traceId: "trace-later" }, limit: 9 })).toMatchObject({
      items: [{ runId: runIdOf("later") }],
    });
    await writer.close();
  });
});
