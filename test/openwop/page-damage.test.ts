import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { ConflictsList, QuestionsList } from "../../src/plugins/page/contract/questions.ts";
import { createHourCounter } from "../../src/plugins/page/server/read-health.ts";
import { createQuestionReads, findOnlyOpenQuestion } from "../../src/plugins/reports/find-questions.ts";
import { recordConflicts, STRANGERS, WRITERS } from "../cli/recorded-conflicts.ts";
import { OTHERS, recordQuestions, SPAWNS, STRANGER } from "../cli/recorded-questions.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { createPageClient, servePage, signIn, type PageClient, type ServedPage } from "./page-scene.ts";

const OF_SPAWNS = `run_key = (select run_key from run where run_id = '${SPAWNS}')`;

const DAMAGES = {
  "an unreadable event": `update event set payload = '{}' where sequence = 2 and ${OF_SPAWNS}`,
  "a missing event": `delete from event where sequence = 2 and ${OF_SPAWNS}`,
};

describe.each(Object.entries(DAMAGES))("beside %s of one coordination", (_, sql) => {
  async function serveDamaged(folder: TempFolder): Promise<{ page: ServedPage; client: PageClient }> {
    const ledger = folder.file("ledger.sqlite");
    await recordQuestions(ledger);
    forge(ledger, sql);
    const page = await servePage(ledger);
    return { page, client: createPageClient(page.baseUrl, await signIn(page.baseUrl, page.link)) };
  }

  it("the page has the questions of the others, and says how many it cannot read", async () => {
    using folder = createTempFolder();
    const { page, client } = await serveDamaged(folder);
    await using _page = page;
    const { questions, unreadable } = await client.get<QuestionsList>("questions");
    expect(questions.map(({ coordinationId }) => coordinationId)).toEqual([OTHERS]);
    expect(unreadable).toBe(1);
  });

  it.each(["runs", "conflicts", "health"])("the page has its %s", async (path) => {
    using folder = createTempFolder();
    const { page, client } = await serveDamaged(folder);
    await using _page = page;
    expect((await client.ask(path)).status).toBe(200);
  });

  it("the only open question of others is found, and of the damaged one's session refused", async () => {
    using folder = createTempFolder();
    const ledger = folder.file("ledger.sqlite");
    await recordQuestions(ledger);
    forge(ledger, sql);
    const store = await openTestLedger(ledger, { mode: "read" });
    const reads = createQuestionReads(store);
    expect(await findOnlyOpenQuestion(reads, STRANGER)).toMatchObject({ kind: "found" });
    await expect(findOnlyOpenQuestion(reads, OWNER)).rejects.toThrow(SPAWNS);
    await expect(findOnlyOpenQuestion(reads)).rejects.toThrow(SPAWNS);
    await store.close();
  });
});

it("the page has the conflicts of the others, and says how many coordinations it cannot read", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  await recordConflicts(ledger, folder.path);
  forge(
    ledger,
    `update event set payload = '{}' where sequence = 2 and run_key = (select run_key from run where run_id = '${WRITERS}')`,
  );
  await using page = await servePage(ledger);
  const client = createPageClient(page.baseUrl, await signIn(page.baseUrl, page.link));
  const { conflicts, unreadable } = await client.get<ConflictsList>("conflicts?which=all");
  expect(new Set(conflicts.map(({ coordinationId }) => coordinationId))).toEqual(new Set([STRANGERS]));
  expect(unreadable).toBe(1);
});

it("health counts what was appended behind an unreadable event", async () => {
  using folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  await recordQuestions(ledger);
  const store = await openTestLedger(ledger, { mode: "read" });
  const now = (TEST_EPOCH_MS + 200_000) as EpochMs;
  const countEvents = async (): Promise<number> =>
    (await createHourCounter().count(store, now)).hours.reduce((sum, { events }) => sum + events, 0);
  const before = await countEvents();
  forge(ledger, DAMAGES["an unreadable event"]);
  expect(await countEvents()).toBe(before - 1);
  await store.close();
});
