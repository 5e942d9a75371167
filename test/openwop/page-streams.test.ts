/** Owns: how the page's streams of changes begin, and that what is no stream opens none. */
import { expect, it } from "vitest";
import type { Arrival } from "../../src/agents/coordination/ports/ledger-queries.ts";
import { createLiveChanges, type Changes } from "../../src/plugins/page/server/live-changes.ts";
import { PAGE_BOUNDS } from "../../src/plugins/page/server/page-bounds.ts";
import { createPageSessions } from "../../src/plugins/page/server/page-sessions.ts";
import { readRights } from "../../src/plugins/page/server/rights.ts";
import type { ReportedLedger } from "../../src/plugins/reports/reported-ledger.ts";
import { quietLogger, runIdOf } from "../support/ledger-fixtures.ts";
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
  const signedIn = sessions.signIn(sessions.mintLink(readRights(["operator.read"])));
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
  const arrivals: Arrival[] = [];
  const answers: (() => void)[] = [];
  const append = (): void => {
    const sequence = arrivals.length;
    arrivals.push({
      runId: runIdOf(sequence),
      sequence,
      type: "coordination.created",
      atMs: TEST_EPOCH_MS,
    } as unknown as Arrival);
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
  const heard: Record<"first" | "second", Changes[]> = { first: [], second: [] };
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
