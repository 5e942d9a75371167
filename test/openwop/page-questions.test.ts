/** Owns: which questions and conflicts the page's server lists, and how it says that there are more. */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ConflictsList, QuestionsList } from "../../src/plugins/page/contract/questions.ts";
import { PRODUCTION, recordConflicts } from "../cli/recorded-conflicts.ts";
import {
  createAskedByOwner,
  createOpening,
  recordCommands,
  spawn,
  type RecordedCommand,
} from "../cli/recorded-questions.ts";
import { createAsk, createContest, createContestant, request } from "../core/claims-scene.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createPageClient, servePage, signIn, type PageClient, type ServedPage } from "./page-scene.ts";

async function openClient({ baseUrl, link }: ServedPage): Promise<PageClient> {
  return createPageClient(baseUrl, await signIn(baseUrl, link));
}

describe("questions beyond the limit", () => {
  const listIds = ({ questions }: QuestionsList): string[] =>
    questions.map(({ escalationId }) => escalationId);

  /** The first expires first, then the third, then the second. */
  async function recordThree(path: string): Promise<void> {
    const store = await openTestLedger(path, { clock: createManualClock() });
    await recordCommands(store, "co-three" as CoordinationId, [
      [0, createOpening("trace-three")],
      createAskedByOwner(1_000, { text: "Which one?", answerMs: 600_000 }),
      createAskedByOwner(2_000, { text: "Which two?", answerMs: 3_000_000 }),
      createAskedByOwner(3_000, { text: "Which three?", answerMs: 1_200_000 }),
    ]);
    await store.close();
  }

  it("are the open ones that expire last, and the list says that there are more", async () => {
    using folder = createTempFolder();
    await recordThree(folder.file("ledger.sqlite"));
    await using served = await servePage(folder.file("ledger.sqlite"));
    const client = await openClient(served);
    const first = await client.get<QuestionsList>("questions?limit=2");
    expect(listIds(first)).toEqual(["escalation-1", "escalation-3"]);
    expect(first.isMore).toBe(true);
    const whole = await client.get<QuestionsList>("questions?limit=3");
    expect(listIds(whole)).toEqual(["escalation-1", "escalation-3", "escalation-2"]);
    expect(whole.isMore).toBe(false);
  });

  it("are the oldest of all questions, and the list says that there are more", async () => {
    using folder = createTempFolder();
    await recordThree(folder.file("ledger.sqlite"));
    await using served = await servePage(folder.file("ledger.sqlite"));
    const client = await openClient(served);
    const newest = await client.get<QuestionsList>("questions?which=all&limit=2");
    expect(listIds(newest)).toEqual(["escalation-3", "escalation-2"]);
    expect(newest.isMore).toBe(true);
    expect((await client.get<QuestionsList>("questions?which=all&limit=3")).isMore).toBe(false);
  });
});

it("the answer to a question counts though somebody else's answer was refused since it was shown", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  const runId = "co-refused" as CoordinationId;
  const record = async (...commands: readonly RecordedCommand[]): Promise<void> => {
    const store = await openTestLedger(ledger, { clock: createManualClock() });
    await recordCommands(store, runId, commands);
    await store.close();
  };
  await record(
    [0, createOpening("trace-refused")],
    createAskedByOwner(1_000, { text: "Which one?", answerMs: 600_000 }),
  );
  await using served = await servePage(ledger);
  const client = await openClient(served);
  const readOpen = async () => (await client.get<QuestionsList>("questions")).questions;
  const [shown] = await readOpen();
  await record([
    2_000,
    {
      type: "answerEscalation",
      escalationId: "escalation-1",
      answer: "approve",
      through: "chat",
      by: { kind: "person", id: "telegram:42" },
    },
  ]);
  expect(await readOpen()).toMatchObject([{ refusedAnswers: 1, revision: shown?.revision }]);
});

it("a list of conflicts says that there are more, and the open ones are found behind newer ones", async () => {
  using folder = createTempFolder();
  await recordConflicts(folder.file("ledger.sqlite"), folder.path);
  await using served = await servePage(folder.file("ledger.sqlite"));
  const client = await openClient(served);
  const newest = await client.get<ConflictsList>("conflicts?which=all&limit=1");
  expect(newest).toMatchObject({ conflicts: [{ outcome: "refused" }], isMore: true });
  const open = await client.get<ConflictsList>("conflicts?which=open&limit=1");
  expect(open).toMatchObject({ conflicts: [{ resource: PRODUCTION, outcome: "open" }], isMore: false });
});

it("conflicts behind a damaged log are listed as if it were not there", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  const store = await openTestLedger(ledger, { clock: createManualClock() });
  const ids = ["co-oldest", "co-older", "co-damaged"] as CoordinationId[];
  for (const [index, runId] of ids.entries()) {
    const contest = createContest([createContestant(1, 10), createContestant(2, 20)]);
    await recordCommands(store, runId, [
      [0, createOpening(`trace-${runId}`)],
      [0, spawn("first", { threshold: 0 })],
      [0, spawn("second", { threshold: 0 })],
      [index, request(2, createAsk("queue:mail", index + 1, { contest }))],
    ]);
  }
  await store.close();
  const damaged = "run_key = (select run_key from run where run_id = 'co-damaged')";
  forge(ledger, `update event set payload = '{}' where sequence = 2 and ${damaged}`);
  await using served = await servePage(ledger);
  const client = await openClient(served);
  const newest = await client.get<ConflictsList>("conflicts?which=all&limit=1");
  expect(newest).toMatchObject({
    conflicts: [{ coordinationId: "co-older" }],
    isMore: true,
    unreadable: 1,
  });
  const all = await client.get<ConflictsList>("conflicts?which=all&limit=2");
  expect(all.conflicts.map(({ coordinationId }) => coordinationId)).toEqual(["co-older", "co-oldest"]);
});
