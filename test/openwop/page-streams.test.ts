/** Owns: how the page's streams of changes begin and go on, and that what is no stream opens none. */
import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { EventArrival } from "../../src/agents/coordination/ports/ledger-queries.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import {
  createLiveChanges,
  type ChangeBatch,
  type LiveChanges,
} from "../../src/plugins/page/server/live-changes.ts";
import { PAGE_BOUNDS } from "../../src/plugins/page/server/page-bounds.ts";
import { createPageSessions } from "../../src/plugins/page/server/page-sessions.ts";
import { deriveRights } from "../../src/plugins/page/server/rights.ts";
import type { ReportedLedger } from "../../src/plugins/reports/reported-ledger.ts";
import { admit, openPlan, planStep } from "../core/planned-scene.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createAuthor, openingOf, quietLogger, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
} from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createBarePage } from "./bare-page.ts";

it("a HEAD of the stream is answered like a GET, and opens none", async () => {
  using folder = createTempFolder();
  const clock = createManualClock();
  const sessions = createPageSessions(clock);
  const ledger = await openTestLedger(folder.file("ledger.sqlite"));
  const app = createBarePage(ledger, {
    clock,
    sessions,
    allowsOpaque: false,
  });
  const signedIn = sessions.signIn(sessions.mintLink(deriveRights(["operator.read"])));
  if (signedIn.kind !== "signed_in") throw new Error(signedIn.kind);
  const { session, token } = signedIn;
  const ask = (method: string): Promise<Response> => {
    const headers = { host: "localhost", authorization: `Bearer ${token}` };
    return app.fetch(new Request("http://localhost/api/live", { method, headers }));
  };
  for (let count = 0; count <= PAGE_BOUNDS.streamsOfSessionMax; count += 1) {
    const answered = await ask("HEAD");
    expect([answered.status, answered.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    expect(answered.body).toBeNull();
  }
  expect(session.streams).toBe(0);
  expect((await ask("GET")).status).toBe(200);
  expect(session.streams).toBe(1);
  app.close();
  await ledger.close();
});

interface SlowLedger {
  readonly reader: () => Promise<ReportedLedger>;
  /** Where the newest event is, as each question for it is answered later. */
  readonly answers: (() => void)[];
  readonly append: () => void;
}

function createSlowLedger(): SlowLedger {
  const arrivals: EventArrival[] = [];
  const answers: (() => void)[] = [];
  const append = (): void => {
    const sequence = arrivals.length;
    arrivals.push({
      runId: runIdOf(sequence),
      sequence,
      type: "step.admitted",
      atMs: TEST_EPOCH_MS,
    } as unknown as EventArrival);
  };
  const ledger = {
    newestPosition: () =>
      new Promise<number>((resolve) => {
        answers.push(() => {
          resolve(arrivals.length);
        });
      }),
    readArrivals: ({ after }: { readonly after: number }) =>
      Promise.resolve({ items: arrivals.slice(after), reached: arrivals.length }),
  };
  return { reader: () => Promise.resolve(ledger as unknown as ReportedLedger), answers, append };
}

it("two that begin to follow at the same time are each told all that is appended from then on", async () => {
  const { reader, answers, append } = createSlowLedger();
  const clock = createManualClock();
  const live = createLiveChanges({ reader, clock, logger: quietLogger });
  const heard: Record<"first" | "second", ChangeBatch[]> = { first: [], second: [] };
  append();
  const first = live.follow((changes) => heard.first.push(changes));
  const second = live.follow((changes) => heard.second.push(changes));
  await waitFor(() => answers.length > 0, { what: "the first question for the newest position" });
  answers.shift()?.();
  const { position } = await first;
  append();
  append();
  for (const answer of answers.splice(0)) answer();
  const { position: positionOfSecond } = await second;
  append();
  clock.set(clock.now() + PAGE_BOUNDS.pollMs);
  clock.fire();
  await waitFor(() => answers.length > 0, { what: "the next look" });
  for (const answer of answers.splice(0)) answer();
  await waitFor(() => heard.first.length > 0 && heard.second.length > 0, { what: "the changes" });
  const listIdsAfter = (from: number) => [1, 2, 3].filter((at) => at >= from).map((at) => runIdOf(at));
  const listIdsHeardBy = (follower: "first" | "second") =>
    heard[follower].flatMap(({ changes }) => changes.map(({ id }) => id));
  expect(position).toBe(1);
  expect(listIdsHeardBy("first")).toEqual(listIdsAfter(position));
  expect(listIdsHeardBy("second")).toEqual(listIdsAfter(positionOfSecond));
  live.close();
});

interface FollowedLedger {
  readonly path: string;
  readonly ledger: () => SqliteLedger;
  readonly live: LiveChanges;
  /** Returns which work the next look tells of, and the work whose agent opened it as a plan. */
  readonly look: () => Promise<(readonly [id: string, parentId: string | undefined])[]>;
  /** Closes the ledger, has something done to its file, and opens it again. */
  readonly reopenAfter: (change: () => void) => Promise<void>;
  readonly close: () => Promise<void>;
}

async function followLedger(path: string): Promise<FollowedLedger> {
  let ledger = await openTestLedger(path);
  const clock = createManualClock();
  const live = createLiveChanges({ reader: () => Promise.resolve(ledger), clock, logger: quietLogger });
  const looks: ChangeBatch[] = [];
  await live.follow((changes) => looks.push(changes));
  return {
    path,
    ledger: () => ledger,
    live,
    look: async () => {
      clock.set(clock.now() + PAGE_BOUNDS.pollMs);
      clock.fire();
      await waitFor(() => looks.length > 0, { what: "the changes", timeoutMs: 5_000 });
      return looks
        .splice(0)
        .flatMap(({ changes }) => changes.map(({ id, parentId }) => [id, parentId] as const));
    },
    reopenAfter: async (change) => {
      await ledger.close();
      change();
      ledger = await openTestLedger(path);
    },
    close: async () => {
      live.close();
      await ledger.close();
    },
  };
}

/** Returns the opening of a plan that an agent of another coordination submits. */
function openPlanOfAgent(coordinationId: CoordinationId): Command {
  const parent = { coordinationId, stepId: "step-1", attempt: 1 };
  return { ...openPlan({ steps: 1 }), ownerSession: "agent:main:subagent:child", parent } as Command;
}

it("tells those who follow whose agent opens a plan, with the opening alone, and nobody who comes back", async () => {
  using folder = createTempFolder();
  const followed = await followLedger(folder.file("ledger.sqlite"));
  const [around, inside] = [createAuthor("around"), createAuthor("inside")];
  await followed.ledger().append(around.append(openingOf("trace-around"), spawnOf("call-1")));
  await followed.ledger().append(inside.append(openPlanOfAgent(around.runId)));
  expect(await followed.look()).toEqual([
    [around.runId, undefined],
    [inside.runId, around.runId],
  ]);
  await followed.ledger().append(inside.append(admit(planStep("step-1"))));
  expect(await followed.look()).toEqual([[inside.runId, undefined]]);
  const missed = await followed.live.since(0, await followed.ledger().newestPosition());
  expect(missed?.map(({ id, parentId }) => [id, parentId])).toEqual([
    [around.runId, undefined],
    [inside.runId, undefined],
  ]);
  await followed.close();
});

const PAGE_BYTES = 4_096;
const ZERO = 0x30;

/** Fills the payloads with zeros, and has the pages of the file that hold them lead to a page that is not there. */
function breakLongPayload(path: string, where: string): void {
  forge(path, `update event set payload = json_object('filler', hex(zeroblob(10000))) where ${where}`);
  const bytes = readFileSync(path);
  for (let page = 0; page < bytes.length; page += PAGE_BYTES)
    if (bytes.subarray(page + 4, page + PAGE_BYTES).every((byte) => byte === ZERO))
      bytes.writeUInt32BE(0xff_ff_ff, page);
  writeFileSync(path, bytes);
}

it.each([
  {
    damage: "says something else",
    break: (path: string, where: string) => {
      forge(path, `update event set payload = '{}' where ${where}`);
    },
    code: "EVENT_UNREADABLE",
  },
  { damage: "cannot be read from the file", break: breakLongPayload, code: "LEDGER_CORRUPT" },
])("goes on telling what happens where an opening $damage", async ({ break: breakOpening, code }) => {
  using folder = createTempFolder();
  const followed = await followLedger(folder.file("ledger.sqlite"));
  const [around, damaged] = [createAuthor("around"), createAuthor("damaged")];
  await followed.ledger().append(damaged.append(openPlanOfAgent(around.runId)));
  await followed.reopenAfter(() => {
    const where = `sequence = 0 and run_key = (select run_key from run where run_id = '${damaged.runId}')`;
    breakOpening(followed.path, where);
  });
  await expect(followed.ledger().read(damaged.runId, { from: 0, limit: 1 })).rejects.toMatchObject({ code });
  expect(await followed.look()).toEqual([[damaged.runId, undefined]]);
  await followed.ledger().append(around.append(openingOf("trace-around"), spawnOf("call-1")));
  expect(await followed.look()).toEqual([[around.runId, undefined]]);
  await followed.close();
});
