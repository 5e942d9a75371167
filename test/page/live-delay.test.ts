/** Owns: how long a change takes from the disk to the pixel, while 100 events a second are appended by another process. */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { recordCommands } from "../cli/recorded-questions.ts";
import { contentOf, openingOf } from "../support/ledger-fixtures.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { openPage, startBrowser } from "./browser.ts";
import { fillLedger } from "./filled-ledger.ts";
import { startServe } from "./page-stage.ts";

/** Each opening appends two events. */
const OPENINGS_PER_SECOND = 50;
const SECONDS = 4;
const P95_MS_MAX = 250;

/** The best of several rounds counts: what else the machine does is not measured. The first one also compiles. */
const ROUNDS_MAX = 4;

it("shows 19 of 20 changes within 250 ms while 100 events a second are appended", async () => {
  using folder = createTempFolder();
  const ledger = join(folder.path, "ledger.sqlite");
  await fillLedger(ledger);
  const served = await startServe({ ledger });
  const browser = await startBrowser();
  const { page, problems } = await openPage(browser, served.address);
  await page.locator(".feed.live").waitFor();
  await page.evaluate(WATCH);
  let lowestMs = Infinity;
  for (let round = 0; round < ROUNDS_MAX && lowestMs >= P95_MS_MAX; round += 1)
    lowestMs = Math.min(lowestMs, await measureP95(page, ledger, round));
  await browser.close();
  await served.stop();
  expect(lowestMs).toBeLessThan(P95_MS_MAX);
  expect(problems).toEqual([]);
});

/** In milliseconds. */
async function measureP95(page: Page, ledger: string, round: number): Promise<number> {
  const appendedAtMs = await appendOpenings(ledger, round);
  const nameOpening = (index: number): string => `objective of delay-${round}-${index}`;
  await page.getByText(nameOpening(appendedAtMs.length - 1), { exact: true }).waitFor();
  const shownAtMs = await page.evaluate<Record<string, number>>(AFTER_FRAME);
  const delays = appendedAtMs.flatMap((atMs, index) => {
    const shown = shownAtMs[nameOpening(index)];
    return shown === undefined ? [] : [shown - atMs];
  });
  // Newer ones push older ones off the list's first page only after they were shown.
  expect(delays).toHaveLength(appendedAtMs.length);
  const sorted = delays.toSorted((a, b) => a - b);
  const [p50 = Infinity, p95 = Infinity] = [0.5, 0.95].map(
    (part) => sorted[Math.floor(part * sorted.length)],
  );
  console.error(
    `page tests: from the disk to the pixel ${p50} ms (median), ${p95} ms (p95) of ${sorted.length}`,
  );
  return p95;
}

/** Returns when each was on the disk. */
async function appendOpenings(ledger: string, round: number): Promise<number[]> {
  const store = await openTestLedger(ledger, { clock: createManualClock(Date.now()) });
  const beganAtMs = Date.now();
  const appendedAtMs: number[] = [];
  for (let index = 0; index < OPENINGS_PER_SECOND * SECONDS; index += 1) {
    const dueAtMs = beganAtMs + (index * 1_000) / OPENINGS_PER_SECOND;
    await delay(Math.max(0, dueAtMs - Date.now()));
    const objective = contentOf(`objective of delay-${round}-${index}`);
    const opening = { ...openingOf(`trace-delay-${round}-${index}`), objective: objective.ref } as Command;
    await recordCommands(store, `co-delay-${round}-${index}` as CoordinationId, [[0, opening, [objective]]]);
    appendedAtMs.push(Date.now());
  }
  await store.close();
  return appendedAtMs;
}

/** The texts that are in the document now are noted in the next frame, before this. */
const AFTER_FRAME = "new Promise((resolve) => requestAnimationFrame(() => resolve(shownAtMs)))";

/** Notes when a text is first painted: in the frame after the one that put it into the document. */
const WATCH = `{
  globalThis.shownAtMs = {};
  const look = () => {
    const texts = document.querySelector("coordination-page").textContent.match(/objective of delay-\\d+-\\d+/g) ?? [];
    requestAnimationFrame(() => { for (const text of texts) shownAtMs[text] ??= Date.now(); });
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}`;
