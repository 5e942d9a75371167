import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { createMeasureCounter } from "../../src/plugins/reports/count-measures.ts";
import { joinLedgerPath } from "../../src/plugins/ledger-setting.ts";
import type { MeasuresReport } from "../../src/plugins/page/contract/measures-report.ts";
import type { HealthReport } from "../../src/plugins/page/contract/health.ts";
import type { QuestionDetail, QuestionsList } from "../../src/plugins/page/contract/questions.ts";
import type { CoordinationDetail, EventsPage, RunsPage } from "../../src/plugins/page/contract/runs.ts";
import {
  HELD_TEXT,
  recordQuestions,
  recordCommands,
  REPORT,
  SPAWNS,
  type RecordedCommand,
} from "../cli/recorded-questions.ts";
import { ENDED_PLAN, RUNNING_PLAN, recordPlans } from "../cli/recorded-plan.ts";
import { runCli } from "../cli/run-cli.ts";
import { usageOf } from "../core/usage-scene.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { contentOf, openingOf, openRun } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import {
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "../contract/workflow-store-tested.ts";
import {
  createPageClient,
  readLive,
  type LiveEvent,
  servePage,
  signIn,
  type PageClient,
  type ServedPage,
} from "./page-scene.ts";

let folder: TempFolder;
let served: ServedPage;
let client: PageClient;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordQuestions(nameLedger());
  await recordPlans(nameLedger(), [RUNNING_PLAN]);
  served = await servePage(nameLedger());
  client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function printJson(args: readonly string[]): Promise<unknown> {
  const { stdout } = await runCli([...args, "--json", "--ledger", nameLedger()]);
  return JSON.parse(stdout);
}

describe("the listing", () => {
  it("has what `list --json` has, newest first, with the kind of each", async () => {
    const { runs } = await client.get<RunsPage>("runs");
    const listed = (await printJson(["list"])) as { coordinationId: string }[];
    expect(runs.map(({ id }) => id).toSorted()).toEqual(listed.map((each) => each.coordinationId).toSorted());
    for (const entry of listed)
      expect(runs.find(({ id }) => id === entry.coordinationId)).toMatchObject(entry);
    expect(runs.find(({ id }) => id === REPORT)?.kind).toBe("plan");
    expect(runs.find(({ id }) => id === SPAWNS)?.kind).toBe("coordination");
  });

  it("comes in pages that join without a gap", async () => {
    const { runs: all } = await client.get<RunsPage>("runs");
    const paged: string[] = [];
    let cursor: string | undefined = "";
    do {
      const page: RunsPage = await client.get<RunsPage>(`runs?limit=1&cursor=${cursor}`);
      paged.push(...page.runs.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(paged).toEqual(all.map(({ id }) => id));
  });

  it("has no further page where its last entry fills one", async () => {
    const { runs } = await client.get<RunsPage>("runs");
    const { nextCursor } = await client.get<RunsPage>(`runs?limit=${runs.length}`);
    expect(nextCursor).toBeUndefined();
    expect((await client.get<RunsPage>(`runs?limit=${runs.length - 1}`)).nextCursor).toBeDefined();
  });

  it("is searched by words of the id, whatever their case, and by kind", async () => {
    const found = await client.get<RunsPage>("runs?text=PLAN-REPO");
    expect(found.runs.map(({ id }) => id)).toEqual([REPORT]);
    const { runs } = await client.get<RunsPage>("runs?kind=plan");
    expect(runs.every(({ kind }) => kind === "plan")).toBe(true);
    expect(runs.length).toBeGreaterThan(0);
  });

  it("has the beginning of a long objective, which is searched to its end", async () => {
    const store = await openTestLedger(nameLedger());
    const text = `${"long ".repeat(2_000)}needle`;
    const objective = contentOf(text);
    const opening = { ...openingOf("trace-long"), objective: objective.ref } as Command;
    await recordCommands(store, "co-long" as CoordinationId, [[0, opening, [objective]]]);
    await store.close();
    const { runs } = await client.get<RunsPage>("runs?text=needle");
    expect(runs).toMatchObject([{ id: "co-long", objective: text.slice(0, 1_000) }]);
  });

  it("has the end of work before the use of it that was recorded later", async () => {
    using other = createTempFolder();
    const ledger = other.file("ledger.sqlite");
    await recordPlans(ledger, [ENDED_PLAN]);
    const listEnds = async () => {
      await using page = await servePage(ledger);
      const reader = createPageClient(page.baseUrl, await signIn(page.baseUrl, page.link));
      const { runs } = await reader.get<RunsPage>("runs");
      return runs.map((run) => "endedAtMs" in run && run.endedAtMs);
    };
    const ends = await listEnds();
    const store = await openTestLedger(ledger);
    const bills = Array.from({ length: 60 }, (_, index) => {
      const usage = usageOf("postgres" as StepId, 1, { runId: `late-${index}` });
      return [500_000 + index, { type: "recordUsage", ...usage }] as RecordedCommand;
    });
    await recordCommands(store, ENDED_PLAN.id as CoordinationId, bills);
    await store.close();
    expect(await listEnds()).toEqual(ends);
  });

  it.each(["runs?limit=0", "runs?limit=201", "runs?cursor=%00", "runs?kind=x", "runs?since=soon"])(
    "refuses %s with a sentence",
    async (path) => {
      const { status, body } = await client.ask(path);
      expect([status, body["error"]]).toEqual([422, "invalid"]);
      expect(body["message"]).toMatch(/expected/u);
    },
  );
});

describe("one coordination", () => {
  it("has what show, timeline and tree print", async () => {
    const detail = await client.get<CoordinationDetail>(`runs/${REPORT}`);
    const { stdout } = await runCli(["show", REPORT, "--json", "--ledger", nameLedger()]);
    expect(detail.view).toEqual(JSON.parse(stdout));
    const timeline = (await printJson(["timeline", REPORT])) as { rows: { stepId: string }[] };
    expect(detail.timeline.rows.map(({ stepId }) => stepId)).toEqual(
      timeline.rows.map(({ stepId }) => stepId),
    );
    expect(detail.tree.tree.name).toBe(detail.view.ownerSession);
  });

  it("is not there for an id that the ledger does not know", async () => {
    expect(await client.ask("runs/nobody")).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  it("has its events in pages, forwards and backwards", async () => {
    const all = await client.get<EventsPage>(`runs/${SPAWNS}/events?limit=1000`);
    expect(all.next).toBeUndefined();
    expect(all.events).toEqual(await printJson(["events", SPAWNS]));
    const first = await client.get<EventsPage>(`runs/${SPAWNS}/events?limit=3`);
    const rest = await client.get<EventsPage>(`runs/${SPAWNS}/events?limit=1000&after=${first.next}`);
    expect([...first.events, ...rest.events]).toEqual(all.events);
    const newest = await client.get<EventsPage>(`runs/${SPAWNS}/events?limit=2&before=${all.events.length}`);
    expect(newest.events).toEqual(all.events.slice(-2));
    const behindAll = `limit=2&before=${Number.MAX_SAFE_INTEGER}`;
    expect((await client.get<EventsPage>(`runs/${SPAWNS}/events?${behindAll}`)).events).toEqual(
      newest.events,
    );
  });

  it("finds events of one type", async () => {
    const { events } = await client.get<EventsPage>(`runs/${SPAWNS}/events?type=step.admitted`);
    expect(events.length).toBeGreaterThan(0);
    expect(events.every((event) => "type" in event && event.type === "step.admitted")).toBe(true);
  });
});

describe("questions", () => {
  it("have a revision, and the held text for who may read it", async () => {
    const { questions } = await client.get<QuestionsList>("questions?which=all");
    const details: QuestionDetail[] = [];
    for (const { questionId } of questions) details.push(await client.get(`questions/${questionId}`));
    expect(details.map(({ heldText }) => heldText)).toContain(HELD_TEXT);
    expect(details.map(({ revision }) => revision)).toEqual(questions.map(({ revision }) => revision));
    expect(new Set(questions.map(({ revision }) => revision)).size).toBe(questions.length);
  });
});

describe("measures", () => {
  it("are those of the command, and the same when they are asked for again", async () => {
    const shown = await client.get<MeasuresReport>("measures");
    const { stdout } = await runCli(["stats", "--json", "--ledger", nameLedger()], { nowMs: Date.now() });
    const { measures, coordinations } = JSON.parse(stdout) as MeasuresReport;
    expect({ measures: shown.measures, coordinations: shown.coordinations }).toEqual({
      measures,
      coordinations,
    });
    expect((await client.get<MeasuresReport>("measures")).measures).toEqual(measures);
  });

  it("are counted of the newest where there are too many", async () => {
    using other = createTempFolder();
    const file = other.file("ledger.sqlite");
    await recordPlans(file, [RUNNING_PLAN, ENDED_PLAN]);
    const ledger = await openTestLedger(file);
    const counter = createMeasureCounter();
    const wanted = { since: 0 as EpochMs };
    expect(await counter.count(ledger, { ...wanted, limit: 1 })).toMatchObject({
      isCut: true,
      counts: { coordinations: 1 },
    });
    const all = await counter.count(ledger, wanted);
    expect(all).toMatchObject({ isCut: false, counts: { coordinations: 2 } });
    expect(await counter.count(ledger, wanted)).toEqual(all);
    await ledger.close();
  });
});

describe("health", () => {
  it("counts what is open as status does, and each event of the last day once", async () => {
    const health = await client.get<HealthReport>("health");
    const { stdout } = await runCli(["status", "--json", "--ledger", nameLedger()]);
    const status = JSON.parse(stdout) as { openQuestions: number; running: number };
    expect(health.contents).toMatchObject({ openQuestions: status.openQuestions, running: status.running });
    expect(health.hours).toHaveLength(24);
    expect((await client.get<HealthReport>("health")).hours).toEqual(health.hours);
    expect(JSON.stringify(health)).not.toContain(folder.file(""));
  });

  it("has what verify came to last, which a copy elsewhere does not tell", async () => {
    using state = createTempFolder();
    const ledger = joinLedgerPath(state.file(""));
    mkdirSync(dirname(ledger));
    await recordPlans(ledger, [RUNNING_PLAN]);
    await using page = await servePage(ledger);
    const reader = createPageClient(page.baseUrl, await signIn(page.baseUrl, page.link));
    await runCli(["verify", "--ledger", ledger]);
    expect((await reader.get<HealthReport>("health")).verification).toBeUndefined();

    const { stdout } = await runCli(["verify", "--json"], { stateDir: state.file(""), nowMs: 7 });
    const { events } = JSON.parse(stdout) as { events: number };
    const sound = { atMs: 7, ok: true, problems: 0, events };
    expect((await reader.get<HealthReport>("health")).verification).toEqual(sound);

    forge(ledger, "update event set timestamp_ms = 1 where sequence = 3");
    await runCli(["verify"], { stateDir: state.file(""), nowMs: 8 });
    expect((await reader.get<HealthReport>("health")).verification).toMatchObject({ atMs: 8, ok: false });
  });
});

describe("a damaged log", () => {
  it("is listed, and its events say which one is damaged", async () => {
    using damaged = createTempFolder();
    await recordQuestions(damaged.file("ledger.sqlite"));
    forge(
      damaged.file("ledger.sqlite"),
      `update event set payload = '{}' where sequence = 2 and run_key = (select run_key from run where run_id = '${SPAWNS}')`,
    );
    await using page = await servePage(damaged.file("ledger.sqlite"));
    const other = createPageClient(page.baseUrl, await signIn(page.baseUrl, page.link));
    expect((await other.get<RunsPage>("runs")).runs.map(({ id }) => id)).toContain(SPAWNS);
    const { events } = await other.get<EventsPage>(`runs/${SPAWNS}/events?limit=5`);
    expect(events[2]).toMatchObject({ sequence: 2, damage: expect.stringMatching(/payload/u) as string });
    expect(events[3]).toMatchObject({ sequence: 3, eventId: `${SPAWNS}:3` });
    const { status, body } = await other.ask(`runs/${SPAWNS}`);
    expect([status, body["message"]]).toEqual([409, expect.stringContaining("verify")]);
  });
});

describe("the live stream", () => {
  it("tells what another connection appends, and what was missed after a break", async () => {
    const stop = new AbortController();
    const events = readLive(served.baseUrl, client, { signal: stop.signal });
    expect((await takeNext(events)).event).toBe("hello");
    const runId = await appendRun("live-1");
    const change = await takeNext(events);
    expect([change.event, change.data["id"]]).toEqual(["change", runId]);
    expect(change.data["types"]).toContain("coordination.created");
    stop.abort();
    const missed = await appendRun("live-2");
    const again = new AbortController();
    const { id: lastEventId = "" } = change;
    const resumed = readLive(served.baseUrl, client, { signal: again.signal, lastEventId });
    expect(await takeNext(resumed)).toMatchObject({ event: "hello", id: lastEventId });
    expect(await takeNext(resumed)).toMatchObject({ event: "change", data: { id: missed } });
    again.abort();
  });
});

it("tells what is appended to a workflow run, too", async () => {
  const stop = new AbortController();
  const events = readLive(served.baseUrl, client, { signal: stop.signal });
  expect((await takeNext(events)).event).toBe("hello");
  const ledger = await openTestLedger(nameLedger());
  await ledger.workflows.append(createWorkflowAuthor("followed").append([createRunStarted()]));
  await ledger.close();
  const id = nameWorkflowRun("followed");
  expect(await takeNext(events)).toMatchObject({
    event: "change",
    data: { id, sequence: 0, types: ["run.started"] },
  });
  stop.abort();
});

async function takeNext(events: AsyncGenerator<LiveEvent, void>): Promise<LiveEvent> {
  const { value } = await events.next();
  if (!value) throw new Error("the stream has ended");
  return value;
}

async function appendRun(name: string): Promise<CoordinationId> {
  const ledger = await openTestLedger(nameLedger());
  const { request } = openRun(name);
  await ledger.append(request);
  await ledger.close();
  return request.runId;
}
