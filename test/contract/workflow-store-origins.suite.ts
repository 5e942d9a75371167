/** Owns: the part of the conformance suite about forks: their origins, the ids of their events, and damage to a log. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowAppend, WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  beginRun,
  branchOf,
  COMPLETED,
  createNodeStarted,
  readAll,
  createRunStarted,
  createWholeRun,
  createWorkflowAuthor,
  nameWorkflowRun,
  type Open,
  type OpenSpoilable,
  type LedgerDamage,
  type WorkflowStoreFixture,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const SOURCE = nameWorkflowRun("source");
const BRANCH = branchOf(SOURCE, "fork", 2);
const FORK = nameWorkflowRun("fork");
const brokenRule = { name: "InvariantViolation" };

interface WrittenFork {
  readonly author: WorkflowAuthor;
  readonly requests: readonly WorkflowAppend[];
}

/** A source of three events, and a fork that took two of them and wrote two of its own. */
async function forkRun({ store }: WorkflowStoreFixture, origin: RunOrigin = BRANCH): Promise<WrittenFork> {
  await store.append(createWholeRun("source"));
  const author = createWorkflowAuthor("fork", origin);
  const requests = [
    author.append([createRunStarted(), createNodeStarted("only")]),
    author.append([createNodeStarted("again")]),
    author.append([COMPLETED], { status: "completed" }),
  ];
  for (const request of requests) await store.append(request);
  return { author, requests };
}

export function describeOrigins(open: Open): void {
  describeIds(open);
  describeRefusals(open);

  it("come with their runs, also to who opens the ledger later, as they were given", async () => {
    await using tested = await open();
    const origin = { ...BRANCH, configurable: { "ai.model": "m", nested: { list: [1, null, "ünï"] } } };
    await forkRun(tested, origin);
    await tested.store.append(beginRun("running").request);
    await tested.store.append(
      createWorkflowAuthor("open", branchOf(SOURCE, "open", 1)).append([createRunStarted()]),
    );
    const later = await tested.ledger.open();
    for (const store of [tested.store, later.workflows]) {
      expect((await store.entry(FORK))?.origin).toEqual(origin);
      expect(await store.entry(SOURCE)).not.toHaveProperty("origin");
      const all = await store.list({ order: "oldest", limit: 9 });
      expect(all.map((run) => run.origin)).toEqual([
        undefined,
        origin,
        undefined,
        branchOf(SOURCE, "open", 1),
      ]);
      const running = await store.list({ status: "running", order: "oldest", limit: 9 });
      expect(running.map((run) => run.origin?.fromSeq)).toEqual([undefined, 1]);
    }
    await later.close();
  });

  it("are of the beginning that won, where several begin a run at the same time", async () => {
    await using tested = await open();
    const other = await tested.ledger.open();
    const origins = [branchOf(SOURCE, "fork", 2), undefined, branchOf(nameWorkflowRun("else"), "fork", 1)];
    const beginnings = origins.map((origin) =>
      createWorkflowAuthor("fork", origin).propose([createRunStarted()]),
    );
    const results = await Promise.allSettled(
      beginnings.map((request, index) => (index === 1 ? other.workflows : tested.store).append(request)),
    );
    const winners = results.flatMap(({ status }, index) => (status === "fulfilled" ? [index] : []));
    expect(winners).toHaveLength(1);
    const [winner = -1] = winners;
    expect((await tested.store.entry(FORK))?.origin).toEqual(origins[winner]);
    expect(await readAll(tested.store, FORK)).toEqual(beginnings[winner]?.events);
    await other.close();
  });
}

function describeIds(open: Open): void {
  it("give the events that were taken the ids of the source's, and the others the run's own", async () => {
    await using tested = await open();
    const { requests } = await forkRun(tested);
    const events = await readAll(tested.store, FORK);
    expect(events).toEqual(requests.flatMap((request) => request.events));
    expect(events.map(({ eventId }) => eventId)).toEqual([
      "run-source:0",
      "run-source:1",
      "run-fork:2",
      "run-fork:3",
    ]);
    for (const from of [0, 1, 2, 3])
      expect(await tested.store.read(FORK, { from, limit: 1 })).toEqual(events.slice(from, from + 1));
    const later = await tested.ledger.open();
    expect(await readAll(later.workflows, FORK)).toEqual(events);
    await later.close();
  });

  it("give those of a fork of a fork the ids of whoever wrote each first", async () => {
    await using tested = await open();
    await forkRun(tested);
    const origin: RunOrigin = {
      ...branchOf(FORK, "second", 3),
      ids: [
        { before: 2, runId: SOURCE },
        { before: 3, runId: FORK },
      ],
    };
    const author = createWorkflowAuthor("second", origin);
    const request = author.append([
      createRunStarted(),
      createNodeStarted("only"),
      createNodeStarted("again"),
      createNodeStarted("own"),
    ]);
    await tested.store.append(request);
    const ids = (await readAll(tested.store, author.runId)).map(({ eventId }) => eventId);
    expect(ids).toEqual(["run-source:0", "run-source:1", "run-fork:2", "run-second:3"]);
  });

  it("take the events of a log in any portions, also such as end within what is taken", async () => {
    await using tested = await open();
    const origin = branchOf(SOURCE, "fork", 40);
    const author = createWorkflowAuthor("fork", origin);
    const drafts = [
      createRunStarted(),
      ...Array.from({ length: 59 }, (_, index) => createNodeStarted(`n${index}`)),
    ];
    const requests = [0, 7, 20, 39, 41].map((from, index, all) =>
      author.append(drafts.slice(from, all[index + 1])),
    );
    await Promise.all(requests.map((request) => tested.store.append(request)));
    const events = await readAll(tested.store, FORK);
    expect(events).toEqual(requests.flatMap((request) => request.events));
    expect(events.map(({ eventId }) => eventId.split(":")[0])).toEqual([
      ...Array.from({ length: 40 }, () => SOURCE),
      ...Array.from({ length: 20 }, () => FORK),
    ]);
    expect(await tested.store.damage(FORK, { before: 60 })).toBeUndefined();
  });
}

function describeRefusals(open: Open): void {
  it("are refused for a run that has begun, and nothing of the append is written", async () => {
    await using tested = await open();
    const { author, request } = beginRun("source");
    await tested.store.append(request);
    const { author: fork } = await forkOf(tested.store);
    for (const [runId, next] of [
      [SOURCE, author.propose([createNodeStarted("more")])],
      [FORK, fork.propose([createNodeStarted("more")])],
    ] as const) {
      const before = await readAll(tested.store, runId);
      await expect(tested.store.append({ ...next, origin: BRANCH })).rejects.toMatchObject(brokenRule);
      expect(await readAll(tested.store, runId)).toEqual(before);
    }
    expect(await tested.store.entry(SOURCE)).not.toHaveProperty("origin");
  });

  it("refuse a second beginning as every run does", async () => {
    await using tested = await open();
    await forkOf(tested.store);
    const again = createWorkflowAuthor("fork", BRANCH).propose([createRunStarted()]);
    await expect(tested.store.append(again)).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
  });

  it("refuse events with ids that are not theirs, and do not harm what waits with them", async () => {
    await using tested = await open();
    const { author } = await forkOf(tested.store);
    const ownAppend = createWorkflowAuthor("new").propose([createRunStarted()]);
    const wrong = [
      // As if they were the run's own.
      {
        ...createWorkflowAuthor("other").propose([createRunStarted(), createNodeStarted("a")]),
        origin: BRANCH,
      },
      // As if they were another's.
      {
        ...ownAppend,
        events: ownAppend.events.map((event) => ({ ...event, eventId: idOf("run-source:0") })),
      },
      renameEvents(author.propose([createNodeStarted("b"), createNodeStarted("c")])),
    ];
    const good = createWholeRun("good");
    const appends = [...wrong, good, author.propose([createNodeStarted("b")])];
    const results = await Promise.allSettled(appends.map((request) => tested.store.append(request)));
    expect(results.map(({ status }) => status)).toEqual([
      ...wrong.map(() => "rejected"),
      ...["fulfilled", "fulfilled"],
    ]);
    for (const result of results.slice(0, wrong.length)) expect(result).toMatchObject({ reason: brokenRule });
    for (const name of ["other", "new"])
      expect(await tested.store.entry(nameWorkflowRun(name))).toBeUndefined();
    expect(await tested.store.entry(FORK)).toMatchObject({ length: 3 });
    expect(await readAll(tested.store, good.runId)).toEqual(good.events);
  });
}

async function forkOf(store: WorkflowStore): Promise<{ readonly author: WorkflowAuthor }> {
  const author = createWorkflowAuthor("fork", BRANCH);
  await store.append(author.append([createRunStarted(), createNodeStarted("first")]));
  return { author };
}

function idOf(text: string): WorkflowAppend["events"][number]["eventId"] {
  return text as WorkflowAppend["events"][number]["eventId"];
}

/** The last event with the id of the one before it. */
function renameEvents(request: WorkflowAppend): WorkflowAppend {
  const [first, last] = request.events;
  if (!first || !last) throw new Error("two events");
  return { ...request, events: [first, { ...last, eventId: first.eventId }] };
}

export function describeDamage(open: OpenSpoilable): void {
  it("is nowhere in a log that is whole, as far as is asked", async () => {
    await using tested = await open();
    const { requests } = await forkRun(tested);
    const length = requests.flatMap(({ events }) => events).length;
    for (let before = 0; before <= length; before += 1)
      expect(await tested.store.damage(FORK, { before })).toBeUndefined();
    expect(await tested.store.damage(SOURCE, { before: 3 })).toBeUndefined();
  });

  it("is behind the end of a log what is not there, and all of a run that is not there", async () => {
    await using tested = await open();
    await forkRun(tested);
    expect(await tested.store.damage(FORK, { before: 5 })).toEqual({ sequence: 4, problem: "event_missing" });
    const none = "run-none" as CoordinationId;
    expect(await tested.store.damage(none, { before: 1 })).toEqual({ sequence: 0, problem: "event_missing" });
    expect(await tested.store.damage(none, { before: 0 })).toBeUndefined();
  });

  it.each<[LedgerDamage["kind"], string]>([
    ["change", "event_changed"],
    ["remove", "event_missing"],
    ["garble", "event_unreadable"],
  ])("is the first event that somebody spoilt, and not looked for behind it: %s", async (kind, problem) => {
    for (const runId of [SOURCE, FORK])
      for (const sequence of [0, 1, 2]) {
        await using tested = await open();
        await forkRun(tested);
        await tested.ledger.spoil(runId, { kind, sequence } as LedgerDamage);
        const later = await tested.ledger.open();
        for (const before of [0, 1, 2, 3])
          expect(await later.workflows.damage(runId, { before })).toEqual(
            before > sequence ? { sequence, problem } : undefined,
          );
        const other = runId === FORK ? SOURCE : FORK;
        expect(await later.workflows.damage(other, { before: 3 })).toBeUndefined();
        await later.close();
      }
  });

  it.each<[string, unknown, string]>([
    ["another place", { ...BRANCH, until: 1 }, "event_changed"],
    ["another source", { ...BRANCH, sourceRunId: "run-else" }, "event_changed"],
    ["other options", { ...BRANCH, configurable: { a: 1 } }, "event_changed"],
    ["no origin", null, "event_changed"],
    ["nothing that is an origin", { mode: "sideways" }, "event_unreadable"],
  ])("is the first event where a fork has %s", async (_, origin, problem) => {
    await using tested = await open();
    await forkRun(tested);
    await tested.ledger.spoil(FORK, { kind: "origin", origin });
    const later = await tested.ledger.open();
    for (const before of [1, 4])
      expect(await later.workflows.damage(FORK, { before })).toEqual({ sequence: 0, problem });
    expect(await later.workflows.damage(SOURCE, { before: 3 })).toBeUndefined();
    await later.close();
  });

  it("to an origin stops reading and appending, and no other run", async () => {
    await using tested = await open();
    const { author } = await forkOf(tested.store);
    await tested.store.append(beginRun("other").request);
    await tested.ledger.spoil(FORK, { kind: "origin", origin: { mode: "sideways" } });
    const later = await tested.ledger.open();
    const { workflows } = later;
    const unreadable = { code: "EVENT_UNREADABLE" };
    await expect(readAll(workflows, FORK)).rejects.toMatchObject(unreadable);
    const [appended, beside] = await Promise.allSettled([
      workflows.append(author.propose([createNodeStarted("more")])),
      workflows.append(createWholeRun("beside")),
    ]);
    expect(appended).toMatchObject({ status: "rejected", reason: unreadable });
    expect(beside).toMatchObject({ status: "fulfilled" });
    const listed = await workflows.list({ status: "running", order: "oldest", limit: 9 });
    expect(listed.map(({ runId }) => runId)).toEqual([FORK, nameWorkflowRun("other")]);
    expect(listed[0]).not.toHaveProperty("origin");
    await later.close();
  });
}
