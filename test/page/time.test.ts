/** Owns: times on the page: they go on while nothing else happens, and are told by the server's clock. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { joinLedgerPath } from "../../src/plugins/ledger-setting.ts";
import { createAskedByOwner, createOpening, recordCommands } from "../cli/recorded-questions.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { serveGateway, type ServedGateway } from "./tab-stage.ts";
import { go } from "./visit.ts";

const ID = "co-time" as CoordinationId;
const MINUTE_MS = 60_000;
/** The server beats every ten seconds. */
const BEAT_WAIT = { timeout: 20_000 };

let folder: TempFolder;
let gateway: ServedGateway;
let browser: Browser;

beforeAll(async () => {
  folder = createTempFolder();
  await openWithQuestion(joinLedgerPath(folder.path));
  gateway = await serveGateway({ stateDir: folder.path });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Opens a coordination that runs, with a question that may be answered for an hour. */
async function openWithQuestion(ledger: string): Promise<void> {
  mkdirSync(dirname(ledger), { recursive: true });
  const store = await openTestLedger(ledger, { clock: createManualClock(Date.now()) });
  const atMs = Date.now() - TEST_EPOCH_MS;
  await recordCommands(store, ID, [
    [atMs, createOpening("trace-time"), [contentOf("objective of trace-time")]],
    createAskedByOwner(atMs, { text: "Which one?", answerMs: 60 * MINUTE_MS }),
  ]);
  await store.close();
}

/** Visits a place with a browser whose clock is so far ahead. */
async function visitAhead(
  aheadMs: number,
  place: string,
  play: (page: Page) => Promise<void>,
): Promise<void> {
  const { page, context, problems } = await openPage(browser, "about:blank");
  await context.addInitScript(`{ const now = Date.now; Date.now = () => now() + ${aheadMs}; }`);
  await page.goto(await gateway.mintAddress(["operator.read"]));
  await page.locator(".feed.live").waitFor();
  await go(page, place);
  await play(page);
  expect(problems).toEqual([]);
  await context.close();
}

it.concurrent.each([
  ["the age of work", "#/runs", "run-list time"],
  ["what is left to answer a question", "#/questions", ".card .quiet:text-matches('left$')"],
  ["how long work has run", `#/runs/${ID}`, ".facts strong"],
])("%s goes on while nothing happens, and nothing is asked of the server for it", (_, place, selector) =>
  visitAhead(0, place, async (page) => {
    const time = page.locator(selector);
    const before = await time.textContent();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await expect.poll(() => time.textContent(), BEAT_WAIT).not.toBe(before);
    expect(requests).toEqual([]);
  }),
);

it("tells times by the server's clock where that of the browser is two hours ahead", () =>
  visitAhead(120 * MINUTE_MS, "#/runs?since=1h", async (page) => {
    expect(await page.locator("run-list time").textContent()).toMatch(/^[^h]*s ago$/u);
    await go(page, "#/questions");
    await page.locator(".card", { hasText: /\dm \d\ds left/u }).waitFor();
  }));
